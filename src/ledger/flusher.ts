/**
 * Moves the outboxes of the cells that this worker owns into the ledger.
 *
 *   leased ──read after cursor──> entries ──one transaction: cursor, rows, totals──> committed ──> trim ──> read …
 *      │                                            │ failed, or unknown whether it committed
 *      │                                            └──> read fence and cursor again from Postgres, then go on
 *      ├── another owner has a higher fence ──> given up
 *      └── an entry is there already, or an index was skipped or dealt twice ──> halted, with an alarm
 *
 * Nothing is trimmed that is not committed; what is read again after a crash begins after the committed cursor.
 */
import { type CellLease, FencedError, haltCell } from '../postgres/cells.js';
import { isUniqueViolation, type Sql } from '../postgres/client.js';
import { bookEntries, ensurePartition, ProgressError } from '../postgres/ledger.js';
import type { RedisClient } from '../redis/client.js';
import { outboxKey } from '../redis/keys.js';
import { firstIdAt } from '../redis/records.js';
import { Transcoder } from './transcoder.js';

/** What a flush saw of a game: it is now at `nextIndex`. */
export interface Consumption {
  readonly gameId: number;
  readonly nextIndex: number;
  readonly count: number;
}

export interface FlusherOptions {
  readonly intervalMs: number;
  readonly onFlushed: (flush: { cell: number; entries: number; seconds: number; lagSeconds: number }) => void;
  readonly onConsumed: (cell: number, games: readonly Consumption[]) => void;
  readonly onHalted: (cell: number, reason: string) => void;
  /** A cell is not written any more, for another reason than that it was disowned. */
  readonly onGivenUp: (cell: number) => void;
  /** Something was booked whose particulars are not known here: who counts consumption must read it again. */
  readonly onUncertain: (cell: number) => void;
  readonly onError: (error: unknown, cell: number) => void;
}

const STREAM_ENTRIES_MAX = 128;
const BLOCK_MS = 200;
const DAY_MS = 86_400_000;
const SEQUENCE_MASK = 16_383n;

interface OwnedCell {
  readonly lease: CellLease;
  cursor: bigint;
}

export class Flusher {
  readonly #sql: Sql;
  readonly #redis: RedisClient;
  /** A connection of its own: its reads block. */
  readonly #reader: RedisClient;
  readonly #options: FlusherOptions;
  readonly #owned = new Map<number, OwnedCell>();
  readonly #records = new Transcoder();
  readonly #partitions = new Set<string>();
  #stopping = false;
  #running: Promise<void> | undefined;

  constructor(sql: Sql, redis: RedisClient, reader: RedisClient, options: FlusherOptions) {
    this.#sql = sql;
    this.#redis = redis;
    this.#reader = reader;
    this.#options = options;
  }

  start(): void {
    this.#running = this.#loop();
  }

  /** Takes a cell over; the lease's cursor is where it goes on. */
  own(lease: CellLease): void {
    this.#owned.set(lease.cell, { lease, cursor: lease.cursorId });
  }

  /** Writes no more for a cell. */
  disown(cell: number): void {
    this.#owned.delete(cell);
  }

  /** Flushes until the outboxes of all owned cells are empty, then ends; gives up at the deadline. */
  async stop(deadlineMs: number): Promise<void> {
    const deadline = performance.now() + deadlineMs;
    this.#stopping = true;
    await this.#running;
    while (performance.now() < deadline) {
      let entries = 0;
      try {
        entries = await this.#round(false);
      } catch {
        return;
      }
      if (entries === 0) return;
    }
  }

  async #loop(): Promise<void> {
    while (!this.#stopping) {
      const started = performance.now();
      try {
        await this.#round(true);
      } catch (error) {
        this.#options.onError(error, -1);
        await pause(200);
      }
      const rest = this.#options.intervalMs - (performance.now() - started);
      if (rest > 0 && !this.#stopping) await pause(rest);
    }
  }

  /** Reads and books what there is, once; gives the number of entries booked. */
  async #round(block: boolean): Promise<number> {
    const cells = [...this.#owned.values()];
    if (cells.length === 0) {
      await pause(20);
      return 0;
    }
    const keys = cells.map((owned) => outboxKey(owned.lease.cell));
    const after = cells.map((owned) => streamId(owned.cursor));
    const answer = (await this.#reader.callBuffer(
      'XREAD',
      'COUNT',
      STREAM_ENTRIES_MAX,
      ...(block ? ['BLOCK', BLOCK_MS] : []),
      'STREAMS',
      ...keys,
      ...after,
    )) as [Buffer, [Buffer, Buffer[]][]][] | null;
    let entries = 0;
    for (const [key, streamEntries] of answer ?? []) {
      const owned = cells[keys.indexOf(key.toString())]!;
      entries += await this.#book(owned, streamEntries);
    }
    return entries;
  }

  async #book(owned: OwnedCell, streamEntries: readonly [Buffer, Buffer[]][]): Promise<number> {
    const { lease } = owned;
    const records = this.#records;
    if (streamEntries.length === 0 || this.#owned.get(lease.cell) !== owned) return 0;
    const started = performance.now();
    try {
      records.reset();
      for (const [, fields] of streamEntries) records.add(fields[1]!);
      const { entries, newestId, oldestMs } = records;
      const totals = records.totals();
      for (const { day } of [...totals.games, ...totals.openings]) await this.#partition(day);
      await bookEntries(this.#sql, lease, { from: owned.cursor, to: newestId }, records.rows(), totals);
      owned.cursor = newestId;
      this.#options.onFlushed({
        cell: lease.cell,
        entries,
        seconds: (performance.now() - started) / 1000,
        lagSeconds: Math.max(0, Date.now() - oldestMs) / 1000,
      });
      this.#options.onConsumed(
        lease.cell,
        totals.progress.map((game) => ({
          gameId: game.gameId,
          nextIndex: game.toIndex,
          count: game.toIndex - game.fromIndex,
        })),
      );
      // What is committed only: a trim that fails is made up for by the next one.
      await this.#redis.call('XTRIM', outboxKey(lease.cell), 'MINID', streamIdAfter(newestId));
      return entries;
    } catch (error) {
      await this.#failed(owned, error);
      return 0;
    }
  }

  async #failed(owned: OwnedCell, error: unknown): Promise<void> {
    const { cell } = owned.lease;
    if (error instanceof ProgressError || isUniqueViolation(error)) {
      this.#giveUp(owned);
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.onHalted(cell, reason);
      await haltCell(this.#sql, cell, reason).catch((again: unknown) => this.#options.onError(again, cell));
      return;
    }
    if (error instanceof FencedError) {
      // Either another worker has the cell, or a commit of ours whose answer was lost moved the cursor.
      await this.#readAgain(owned, error);
      return;
    }
    this.#options.onError(error, cell);
    await pause(200);
  }

  async #readAgain(owned: OwnedCell, cause: unknown): Promise<void> {
    const { cell, fence } = owned.lease;
    const [row] = await this.#sql<{ fence: bigint; cursor_id: bigint }[]>`
      SELECT fence, cursor_id FROM cells WHERE cell = ${cell}`;
    if (row !== undefined && row.fence === fence && row.cursor_id > owned.cursor) {
      owned.cursor = row.cursor_id;
      this.#options.onUncertain(cell);
    } else {
      this.#options.onError(cause, cell);
      this.#giveUp(owned);
    }
  }

  /** Writes no more under this lease; under a newer one that came meanwhile it goes on. */
  #giveUp(owned: OwnedCell): void {
    const { cell } = owned.lease;
    if (this.#owned.get(cell) !== owned) return;
    this.#owned.delete(cell);
    this.#options.onGivenUp(cell);
  }

  /** Makes the partition of a day, and of the next one ahead of its time. */
  async #partition(day: string): Promise<void> {
    const fromMs = Date.parse(`${day}T00:00:00Z`);
    for (const beginMs of [fromMs, fromMs + DAY_MS]) {
      const name = new Date(beginMs).toISOString().slice(0, 10);
      if (this.#partitions.has(name)) continue;
      await ensurePartition(this.#sql, name, { from: firstIdAt(beginMs), to: firstIdAt(beginMs + DAY_MS) });
      this.#partitions.add(name);
    }
  }
}

/** The stream entry that ends with this ledger entry, or would. */
const streamId = (id: bigint): string => `${id >> 22n}-${id & SEQUENCE_MASK}`;

/** The smallest stream id that is not to be trimmed once this entry is booked. */
const streamIdAfter = (id: bigint): string => `${id >> 22n}-${(id & SEQUENCE_MASK) + 1n}`;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
