/** The partitions of the ledger that a flusher knows to be there. */
import { firstIdAt } from '../domain/entryId.js';
import type { Sql } from '../postgres/client.js';
import { ensurePartition } from '../postgres/ledger.js';

const DAY_MS = 86_400_000;

export class Partitions {
  readonly #sql: Sql;
  readonly #known = new Set<string>();

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Makes the partition of a UTC day, such as 2026-11-22, and of the next one ahead of its time, where they are not known. */
  async ensure(day: string): Promise<void> {
    const fromMs = Date.parse(`${day}T00:00:00Z`);
    for (const beginMs of [fromMs, fromMs + DAY_MS]) {
      const name = new Date(beginMs).toISOString().slice(0, 10);
      if (this.#known.has(name)) continue;
      await ensurePartition(this.#sql, name, { from: firstIdAt(beginMs), to: firstIdAt(beginMs + DAY_MS) });
      this.#known.add(name);
    }
  }

  /** A Postgres that was put back may lack them. */
  forget(): void {
    this.#known.clear();
  }
}
