/**
 * Creates the partitions of the ledger, one for each UTC day. They are made days in advance, so that no flush
 * waits for a lock of the ledger.
 */

import { DAY_MS } from '../../domain/days.js';
import { firstIdAt } from '../../domain/entryId.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { type EventEmitter, taskFailed } from '../processEvents.js';
import { ensurePartition, indexedDays, indexFeed, partitionDays } from './ledger.store.js';

/**
 * Number of days for which partitions are made in advance. Even if other sessions lock the ledger for almost
 * this long, no flush is delayed.
 */
const DAYS_AHEAD = 4;
const TURN_MS = 10_000;

const nameOf = (beginMs: number): string => new Date(beginMs).toISOString().slice(0, 10);

const ensureDay = (sql: Sql, beginMs: number): Promise<void> =>
  ensurePartition(sql, nameOf(beginMs), { from: firstIdAt(beginMs), to: firstIdAt(beginMs + DAY_MS) });

/** Partitions of the ledger that a flusher has found to exist. */
export class Partitions {
  readonly #known = new Set<string>();

  constructor(private readonly sql: Sql) {}

  /** Creates the partition of a UTC day, such as 2026-11-22, if it is missing. */
  async ensure(day: string): Promise<void> {
    if (this.#known.has(day)) return;
    await ensureDay(this.sql, Date.parse(`${day}T00:00:00Z`));
    this.#known.add(day);
  }

  /** Forgets all partitions, because a restored Postgres may lack them. */
  forget(): void {
    this.#known.clear();
  }
}

export class PartitionMaker extends PeriodicService {
  readonly name = 'ledger partitions';
  #daysAhead = 0;

  constructor(
    private readonly sql: Sql,
    private readonly events: EventEmitter,
  ) {
    super({ everyMs: TURN_MS, firstAfterMs: 0 }, taskFailed(events, 'ledger partition'));
  }

  /** Number of consecutive days, from tomorrow on, that have a partition. */
  get daysAhead(): number {
    return this.#daysAhead;
  }

  protected async turn(): Promise<void> {
    const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
    const days = Array.from({ length: DAYS_AHEAD + 1 }, (_, i) => today + i * DAY_MS);
    try {
      const found = await partitionDays(this.sql, days.map(nameOf));
      for (const day of days) {
        if (this.isStopped) return;
        if (!found.has(nameOf(day))) await ensureDay(this.sql, day);
      }
      // Version 1.5.0 made partitions without this index.
      const ahead = days.slice(1).map(nameOf);
      const indexed = new Set(await indexedDays(this.sql, ahead));
      for (const day of ahead) if (!this.isStopped && !indexed.has(day)) await indexFeed(this.sql, day);
    } finally {
      await this.#look(days);
    }
  }

  async #look(days: readonly number[]): Promise<void> {
    if (this.isStopped) return;
    const [, ...next] = days;
    const found = await partitionDays(this.sql, next.map(nameOf));
    const missing = next.findIndex((day) => !found.has(nameOf(day)));
    this.#daysAhead = missing === -1 ? next.length : missing;
    if (missing === 0) this.events.emit('PartitionsMissing', {});
  }
}
