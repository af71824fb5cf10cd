/**
 * Measures the storage of the ledger every five minutes: days by state, bytes, age of the newest archive, and
 * free disk space of Postgres.
 */
import { statfs } from 'node:fs/promises';
import { DAY_MS, dayOf, startOf } from '../../domain/days.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { PostgresHosts } from '../../postgres/postgresUrl.js';
import { databaseBytes, dataDirectory, LedgerDays } from './ledgerDays.store.js';

const TURN_MS = 300_000;

interface LedgerUse {
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

export class LedgerStorage extends PeriodicService {
  readonly name = 'ledger storage';
  readonly #days: LedgerDays;
  #use: LedgerUse | undefined;

  constructor(
    private readonly sql: Sql,
    private readonly options: {
      /** Folder of the data of an embedded Postgres. Undefined: Postgres is asked for it, if it is local. */
      readonly folder: string | undefined;
      /** Whether a separate Postgres runs on this machine. */
      readonly isLocal: boolean;
      readonly events: EventEmitter;
      /** Called once, with the first measurement, if the free space of the disk can't be read. */
      readonly onDiskUnknown: () => void;
    },
  ) {
    super({ everyMs: TURN_MS, firstAfterMs: 0 });
    this.#days = new LedgerDays(sql);
  }

  /** Result of the latest storage measurement; undefined before the first. */
  get use(): LedgerUse | undefined {
    return this.#use;
  }

  protected async turn(): Promise<void> {
    const [days, bytes] = await Promise.all([this.#days.list(), databaseBytes(this.sql)]);
    const states = new Map(['OPEN', 'BOOKED', 'ARCHIVED', 'DROPPED'].map((state) => [state, 0]));
    for (const { state } of days) states.set(state, states.get(state)! + 1);
    const today = dayOf(Date.now());
    const disk = await this.#disk();
    if (this.#use === undefined && disk === undefined) this.options.onDiskUnknown();
    const newest = days.findLast(({ archiveBytes }) => archiveBytes !== null)?.day;
    const archivedTo = newest === undefined ? startOf(days[0]?.day ?? today) : startOf(newest) + DAY_MS;
    this.#use = {
      days: states,
      bytes: days.reduce((sum, day) => sum + day.bytes, 0),
      archiveBytes: days.reduce((sum, day) => sum + (day.archiveBytes ?? 0), 0),
      archiveAgeSeconds: Math.max(0, startOf(today) - archivedTo) / 1000,
      databaseBytes: bytes,
      disk,
    };
  }

  protected onTurnFailed(error: unknown): void {
    this.options.events.emit('TaskFailed', { task: 'ledger storage', error });
  }

  /** Returns the size and free space of the disk of Postgres, if the disk belongs to this machine. */
  async #disk(): Promise<LedgerUse['disk']> {
    const { folder, isLocal } = this.options;
    const place = folder ?? (isLocal ? await dataDirectory(this.sql) : undefined);
    if (place === undefined) return undefined;
    const found = await statfs(place).catch(() => undefined);
    return found && { bytes: found.bsize * found.blocks, freeBytes: found.bsize * found.bavail };
  }
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
