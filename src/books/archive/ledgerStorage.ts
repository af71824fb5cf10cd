/** Measures the ledger: days by state, bytes, age of the newest archive, and free disk space. */
import { statfs } from 'node:fs/promises';
import { DAY_MS, dayOf, startOf } from '../../domain/days.js';
import type { Sql } from '../../postgres/connection.js';
import { PostgresHosts } from '../../postgres/postgresUrl.js';
import { databaseBytes, dataDirectory, LedgerDays } from './ledgerDays.store.js';

export interface LedgerUse {
  readonly days: ReadonlyMap<string, number>;
  /** Size of the tables and indexes of all days in the ledger, in bytes. */
  readonly bytes: number;
  /** Sum of the sizes that all archives had when they were made, in bytes. */
  readonly archiveBytes: number;
  /**
   * Time between the end of the newest archived day and the start of today, in seconds. If no day is
   * archived, the time counts from the start of the oldest day.
   */
  readonly archiveAgeSeconds: number;
  readonly databaseBytes: number;
  /** Size and free space of the disk of Postgres, in bytes; undefined if the disk is unknown. */
  readonly disk: { readonly bytes: number; readonly freeBytes: number } | undefined;
}

/**
 * @param folder data folder of an embedded Postgres. If undefined, a Postgres on this machine (`isLocal`) is
 * asked for it.
 */
export async function measureLedger(
  sql: Sql,
  folder: string | undefined,
  isLocal: boolean,
): Promise<LedgerUse> {
  const [days, bytes] = await Promise.all([new LedgerDays(sql).list(), databaseBytes(sql)]);
  const states = new Map(['OPEN', 'BOOKED', 'ARCHIVED', 'DROPPED'].map((state) => [state, 0]));
  for (const { state } of days) states.set(state, states.get(state)! + 1);
  const today = dayOf(Date.now());
  const newest = days.findLast(({ archiveBytes }) => archiveBytes !== null)?.day;
  const archivedTo = newest === undefined ? startOf(days[0]?.day ?? today) : startOf(newest) + DAY_MS;
  const place = folder ?? (isLocal ? await dataDirectory(sql) : undefined);
  const disk = place === undefined ? undefined : await statfs(place).catch(() => undefined);
  return {
    days: states,
    bytes: days.reduce((sum, day) => sum + day.bytes, 0),
    archiveBytes: days.reduce((sum, day) => sum + (day.archiveBytes ?? 0), 0),
    archiveAgeSeconds: Math.max(0, startOf(today) - archivedTo) / 1000,
    databaseBytes: bytes,
    disk: disk && { bytes: disk.bsize * disk.blocks, freeBytes: disk.bsize * disk.bavail },
  };
}

const LOOPBACK = ['localhost', '127.0.0.1', '::1'];

/** Returns whether a database URL leads to this machine, by a socket or the loopback interface. */
export function isOnThisMachine(databaseUrl: string | undefined): boolean {
  if (databaseUrl === undefined) return true;
  const { options, count } = new PostgresHosts(databaseUrl);
  const { host = '' } = options;
  if (count > 1) return false;
  return host === '' || host.startsWith('/') || LOOPBACK.includes(host);
}
