/**
 * Measures the storage of the ledger every five minutes: days by state, bytes, age of the newest archive, and
 * free disk space of Postgres.
 */
import { statfs } from 'node:fs/promises';
import { DAY_MS, dayOf, startOf } from '../../domain/days.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { databaseBytes, LedgerDays } from './ledgerDays.store.js';

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

/**
 * Place where Postgres stores its data: a folder of this machine, a disk of configured size, or undefined if
 * unknown.
 */
export type DatabaseDisk = { readonly folder: string } | { readonly bytes: number } | undefined;

export class LedgerStorage extends PeriodicService {
  readonly name = 'ledger storage';
  readonly #sql: Sql;
  readonly #days: LedgerDays;
  readonly #disk: DatabaseDisk;
  readonly #events: EventEmitter;
  #use: LedgerUse | undefined;

  constructor(sql: Sql, disk: DatabaseDisk, events: EventEmitter) {
    super({ everyMs: TURN_MS, firstAfterMs: 0 });
    this.#sql = sql;
    this.#days = new LedgerDays(sql);
    this.#disk = disk;
    this.#events = events;
  }

  /** Result of the latest storage measurement; undefined before the first. */
  get use(): LedgerUse | undefined {
    return this.#use;
  }

  protected async turn(): Promise<void> {
    const [days, bytes] = await Promise.all([this.#days.list(), databaseBytes(this.#sql)]);
    const states = new Map(['OPEN', 'BOOKED', 'ARCHIVED', 'DROPPED'].map((state) => [state, 0]));
    for (const { state } of days) states.set(state, states.get(state)! + 1);
    const today = dayOf(Date.now());
    const newest = days.findLast(({ archiveBytes }) => archiveBytes !== null)?.day;
    const archivedTo = newest === undefined ? startOf(days[0]?.day ?? today) : startOf(newest) + DAY_MS;
    this.#use = {
      days: states,
      bytes: days.reduce((sum, day) => sum + day.bytes, 0),
      archiveBytes: days.reduce((sum, day) => sum + (day.archiveBytes ?? 0), 0),
      archiveAgeSeconds: Math.max(0, startOf(today) - archivedTo) / 1000,
      databaseBytes: bytes,
      disk: await diskUse(this.#disk, bytes),
    };
  }

  protected onTurnFailed(error: unknown): void {
    this.#events.emit('TaskFailed', { task: 'ledger storage', error });
  }
}

async function diskUse(disk: DatabaseDisk, used: number): Promise<LedgerUse['disk']> {
  if (disk === undefined) return undefined;
  if ('bytes' in disk) return { bytes: disk.bytes, freeBytes: Math.max(0, disk.bytes - used) };
  const { bsize, blocks, bavail } = await statfs(disk.folder);
  return { bytes: bsize * blocks, freeBytes: bsize * bavail };
}
