/**
 * Moves the outboxes of the cells that this worker owns into the ledger.
 *
 *   leased ──read after cursor──> entries ──one transaction: cursor, rows, totals──> committed ──> trim ──> read …
 *      │                                            │ failed, or unknown whether it committed
 *      │                                            └──> read fence and cursor again from Postgres, then go on
 *      ├── another owner has a higher fence ──> given up
 *      └── an entry is there already, an index was skipped or dealt twice, or Postgres refuses the data twice in a row
 *            ──> halted, with an alarm; the other cells go on
 *
 * Nothing is trimmed that is not committed; what is read again after a crash begins after the committed cursor.
 */
import { firstIdAt } from '../domain/entryId.js';
import { ENTRY_KINDS } from '../domain/ledgerEntry.js';
import type { NewEvent } from '../domain/webhook.js';
import type { Consumption, EventEmitter } from '../events.js';
import type { OnFailpoint } from '../failpoints.js';
import type { BookedAdjustment } from '../postgres/adjustments.js';
import { type CellLease, FencedError, haltCell } from '../postgres/cells.js';
import { isDataFault, isUniqueViolation, type Sql } from '../postgres/client.js';
import { PotError } from '../postgres/communalBooking.js';
import { bookEntries, ensurePartition, type FlushTotals, ProgressError } from '../postgres/ledger.js';
import type { Ticket } from '../postgres/raffles.js';
import type { CellStore } from '../redis/cellStore.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { OutboxBatch, OutboxReader } from '../redis/outboxReader.js';
import { NO_TOTALS, readOutbox, type Totals } from '../redis/records.js';
import { OutrunError } from '../redis/scriptErrors.js';
import { HEALTHY, type Health, type Service, unhealthy } from '../runtime/service.js';
import { type LargeWin, Transcoder } from './transcoder.js';

export interface FlusherOptions {
  readonly intervalMs: number;
  readonly events: EventEmitter;
  /** Payouts above this are large wins, micro-USD; undefined where the partner is not known yet. */
  readonly largeWinThreshold: (partnerId: number) => number | undefined;
  /** The events of what may be large wins; they are recorded with the entries. */
  readonly eventsOf: (wins: readonly LargeWin[]) => Promise<NewEvent[]>;
  readonly onFailpoint: OnFailpoint;
}

/** Booked of one cell in one transaction, which must be done well within its deadline. */
const LEDGER_ENTRIES_MAX = 20_000;
/** Likewise: each large win is written once for each webhook that wants it, and a partner may have fifty. */
const LARGE_WINS_MAX = 64;
const BLOCK_MS = 200;
/**
 * A round that took long is followed by a longer rest: what it costs beside the rows themselves (transactions, totals of
 * games) is then paid by more of them. Many busy cells are flushed every 0.4 s or so.
 */
const REST_SHARE = 2;
const REST_MAX_MS = 250;
const RETRY_MS = 200;
/** A stop flushes what is left for this long, and waits for the transaction under way for the rest. */
const FLUSH_AT_STOP_MS = 3000;
const STOP_TIMEOUT_MS = 5000;
const DAY_MS = 86_400_000;

interface OwnedCell {
  readonly lease: CellLease;
  readonly store: CellStore;
  readonly records: Transcoder;
  cursor: bigint;
  /** What is booked is not trimmed and noted yet; `true`: nor is it known how much that is. */
  unsettled: Totals | true | undefined;
  notBefore: number;
  /** The flush before failed for its own data. */
  hasDataFault: boolean;
}

/** The flushes of one node's cells: a node that is away holds up its own cells only. */
interface NodeLoop {
  readonly reader: OutboxReader;
  /** Somebody waits for what is booked: the next flush follows at once. */
  isAwaited: boolean;
  /** How long the last round booked, without the wait for what there is to book. */
  bookedMs: number;
  /** The last round found nothing to book. */
  wasEmpty: boolean;
}

/** The outbox that was read is not that of the lease's epoch: Redis holds something else by now. Nothing was written. */
class EpochChangedError extends Error {
  constructor(cell: number) {
    super(`Cell ${cell} of Redis is not at the epoch of its lease: its outbox is not booked`);
  }
}

export class Flusher implements Service {
  readonly name = 'flusher';
  readonly stopTimeoutMs = STOP_TIMEOUT_MS;
  readonly #sql: Sql;
  readonly #nodes: RedisNodes;
  readonly #loops: readonly NodeLoop[];
  readonly #options: FlusherOptions;
  readonly #owned = new Map<number, OwnedCell>();
  readonly #partitions = new Set<string>();
  #stopping = false;
  #running: Promise<unknown> | undefined;
  /** Of the newest flush; undefined: it succeeded. */
  #problem: string | undefined;

  /** @param readers one for each node */
  constructor(sql: Sql, nodes: RedisNodes, readers: readonly OutboxReader[], options: FlusherOptions) {
    this.#sql = sql;
    this.#nodes = nodes;
    this.#loops = readers.map((reader) => ({ reader, isAwaited: false, bookedMs: 0, wasEmpty: false }));
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#running = Promise.all(this.#loops.map((loop) => this.#run(loop)));
  }

  health(): Health {
    return this.#problem === undefined ? HEALTHY : unhealthy(this.#problem);
  }

  /** Takes a cell over; the lease's cursor is where it goes on. */
  own(lease: CellLease): void {
    this.#owned.set(lease.cell, {
      lease,
      store: this.#nodes.cell(lease.cell),
      records: new Transcoder(this.#options.largeWinThreshold),
      cursor: lease.cursorId,
      unsettled: undefined,
      notBefore: 0,
      hasDataFault: false,
    });
  }

  /** Writes no more for a cell. */
  disown(cell: number): void {
    this.#owned.delete(cell);
  }

  /** Flushes until the outboxes of all owned cells are empty, then ends; gives up at the deadline. */
  async stop(): Promise<void> {
    const deadline = performance.now() + FLUSH_AT_STOP_MS;
    this.#stopping = true;
    await this.#running;
    await Promise.all(this.#loops.map((loop) => this.#empty(loop, deadline)));
  }

  async #empty(loop: NodeLoop, deadline: number): Promise<void> {
    while (performance.now() < deadline) {
      try {
        await this.#round(loop, 0);
        if (loop.wasEmpty) return;
      } catch {
        return;
      }
    }
  }

  async #run(loop: NodeLoop): Promise<void> {
    while (!this.#stopping) {
      const started = performance.now();
      let isMore = false;
      loop.isAwaited = false;
      try {
        isMore = await this.#round(loop, BLOCK_MS);
      } catch (error) {
        this.#tell(error);
        await pause(RETRY_MS);
      }
      const { intervalMs } = this.#options;
      const rest = Math.max(
        intervalMs - (performance.now() - started),
        intervalMs === 0 ? 0 : Math.min(REST_SHARE * loop.bookedMs, REST_MAX_MS),
      );
      // No rest while there is more than one read takes: after an outage the backlog must shrink.
      if (rest > 0 && !isMore && !loop.isAwaited && !this.#stopping) await pause(rest);
    }
  }

  /**
   * Reads and books what there is, once, all cells of a node side by side.
   * @param waitMs how long to wait while there is nothing to read; 0: not at all
   * @returns whether there is more to be booked at once
   */
  async #round(loop: NodeLoop, waitMs: number): Promise<boolean> {
    const { reader } = loop;
    const now = performance.now();
    loop.bookedMs = 0;
    const cells = [...this.#owned.values()].filter(
      ({ store, notBefore }) => store.node === reader.node && notBefore <= now,
    );
    // After a restart the two connections may lead to different servers for a moment.
    if (cells.length === 0 || !reader.isAtNode) {
      await pause(20);
      loop.wasEmpty = true;
      return false;
    }
    await Promise.all(cells.map((owned) => this.#settle(owned)));
    const positions = cells.map(({ lease: { cell }, cursor }) => ({ cell, cursor }));
    const read = await reader.read(positions, waitMs);
    const readAt = performance.now();
    const areBooked = await Promise.all(
      read.cells.map(([cell, batches]) =>
        this.#book(loop, cells.find(({ lease }) => lease.cell === cell)!, batches),
      ),
    );
    loop.bookedMs = performance.now() - readAt;
    loop.wasEmpty = read.cells.length === 0;
    // What was left over is read again at once.
    return read.isMore || areBooked.includes(false);
  }

  /** Books them, or the first of them: false. True also where it failed, and is tried again later. */
  async #book(loop: NodeLoop, owned: OwnedCell, batches: readonly OutboxBatch[]): Promise<boolean> {
    const { lease, records } = owned;
    if (this.#owned.get(lease.cell) !== owned) return true;
    const { onFailpoint, events } = this.#options;
    const started = performance.now();
    try {
      onFailpoint('flush.read');
      records.begin();
      let entriesBefore = 0;
      let taken = 0;
      for (const batch of batches) {
        if (records.entries >= LEDGER_ENTRIES_MAX || records.largeWins.length >= LARGE_WINS_MAX) break;
        entriesBefore = records.entries;
        records.add(batch.records);
        taken++;
      }
      if (!(await owned.store.isOpen(lease.token))) throw new EpochChangedError(lease.cell);
      const { entries, oldestId, newestId, oldestMs } = records;
      const newest = batches[taken - 1]!;
      const totals = records.totals();
      for (const day of records.days) await this.#partition(day);
      const cursor = { from: owned.cursor, first: oldestId, to: newestId };
      const newEvents = records.largeWins.length === 0 ? [] : await this.#options.eventsOf(records.largeWins);
      const { deliveries, hasTickets } = await bookEntries(
        this.#sql,
        lease,
        cursor,
        records.rows(),
        totals,
        (raffles) => ticketsOf(batches.slice(0, taken), raffles),
        totals.adjustments.length === 0 ? [] : adjustmentsOf(batches.slice(0, taken)),
        newEvents,
        records.communal.booking,
        onFailpoint,
      );
      onFailpoint('flush.committed');
      owned.cursor = newestId;
      owned.hasDataFault = false;
      loop.isAwaited ||= hasTickets;
      owned.unsettled =
        newest.before === undefined
          ? NO_TOTALS
          : {
              entries: newest.before.entries + entries - entriesBefore,
              bytes: newest.before.bytes + newest.records.length,
            };
      this.#problem = undefined;
      events.emit('CursorAdvanced', { lease, cursor: newestId });
      if (deliveries > 0) events.emit('EventsRecorded', { deliveries });
      const fired = records.communal.booking?.events ?? [];
      if (fired.length > 0) events.emit('CommunalEventsBooked', { events: fired });
      events.emit('LedgerCommitted', {
        cell: lease.cell,
        from: cursor.from,
        to: cursor.to,
        games: totals.games,
        ...{ rounds: totals.rounds, entries },
        seconds: (performance.now() - started) / 1000,
        lagSeconds: Math.max(0, Date.now() - oldestMs) / 1000,
      });
      events.emit('OutcomesConsumed', { cell: lease.cell, games: totals.progress.map(consumptionOf) });
      await this.#settle(owned);
      return taken === batches.length;
    } catch (error) {
      await this.#failed(owned, error);
      return true;
    }
  }

  /** Trims what is committed, and nothing else, and notes how far that is. Where it fails it comes again. */
  async #settle(owned: OwnedCell): Promise<void> {
    const { lease, store, cursor, unsettled } = owned;
    if (unsettled === undefined) return;
    const { onFailpoint } = this.#options;
    try {
      // The trim first: a Redis without memory takes nothing else until something is gone.
      await store.trimOutbox(cursor);
      onFailpoint('flush.trimmed');
      const totals = unsettled === true ? await store.totalsAt(cursor) : unsettled;
      await store.markBooked({ fence: lease.fence }, { id: cursor, totals });
      onFailpoint('flush.marked');
      if (owned.unsettled === unsettled) owned.unsettled = undefined;
    } catch (error) {
      if (error instanceof OutrunError) this.#giveUp(owned);
      this.#tell(error, lease.cell);
    }
  }

  async #failed(owned: OwnedCell, error: unknown): Promise<void> {
    const { cell } = owned.lease;
    // A partition that is missing in a Postgres that was put back fails so, too: the second time it was made anew.
    const isRefused = isDataFault(error) && owned.hasDataFault;
    const isOutOfStep = error instanceof ProgressError || error instanceof PotError;
    if (isOutOfStep || isUniqueViolation(error) || isRefused) {
      this.#giveUp(owned);
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.events.emit('CellHalted', { cell, reason });
      await haltCell(this.#sql, cell, reason).catch((again: unknown) => this.#tell(again, cell));
      return;
    }
    if (error instanceof EpochChangedError) {
      this.#tell(error, cell);
      this.#giveUp(owned);
      return;
    }
    if (error instanceof FencedError) {
      // Either another worker has the cell, or a commit of ours whose answer was lost moved the cursor.
      await this.#readAgain(owned, error).catch((again: unknown) => this.#tell(again, cell));
      return;
    }
    owned.hasDataFault = isDataFault(error);
    // A Postgres that was put back may lack them.
    this.#partitions.clear();
    this.#tell(error, cell);
    owned.notBefore = performance.now() + RETRY_MS;
  }

  async #readAgain(owned: OwnedCell, cause: unknown): Promise<void> {
    const { cell, fence } = owned.lease;
    const [row] = await this.#sql<{ fence: bigint; cursor_id: bigint }[]>`
      SELECT fence, cursor_id FROM cells WHERE cell = ${cell}`;
    if (row !== undefined && row.fence === fence && row.cursor_id > owned.cursor) {
      owned.cursor = row.cursor_id;
      owned.unsettled = true;
      this.#options.events.emit('CursorAdvanced', { lease: owned.lease, cursor: owned.cursor });
      this.#options.events.emit('CommitFoundLater', { cell });
    } else {
      this.#tell(cause, cell);
      this.#giveUp(owned);
    }
  }

  /** Writes no more under this lease; under a newer one that came meanwhile it goes on. */
  #giveUp(owned: OwnedCell): void {
    const { cell } = owned.lease;
    if (this.#owned.get(cell) !== owned) return;
    this.#owned.delete(cell);
    this.#options.events.emit('CellGivenUp', { cell });
  }

  /** @param cell undefined: no cell's flush could begin. */
  #tell(error: unknown, cell?: number): void {
    this.#problem = error instanceof Error ? error.message : String(error);
    this.#options.events.emit('TaskFailed', {
      task: 'flush',
      error,
      ...(cell === undefined ? {} : { cell }),
    });
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

const consumptionOf = ({ gameId, fromIndex, toIndex }: FlushTotals['progress'][number]): Consumption => ({
  gameId,
  nextIndex: toIndex,
  count: toIndex - fromIndex,
});

/** The tickets of raffles among stream entries, as far as they have a requestId. */
function ticketsOf(batches: readonly OutboxBatch[], raffles: ReadonlySet<number>): Ticket[] {
  return batches
    .flatMap(({ records }) => readOutbox(records))
    .flatMap(({ kind, gameId, requestId, id }) =>
      ENTRY_KINDS[kind].requestIds === 'spins' && requestId !== null && raffles.has(gameId)
        ? [{ gameId, requestId, entryId: id }]
        : [],
    );
}

function adjustmentsOf(batches: readonly OutboxBatch[]): BookedAdjustment[] {
  return batches
    .flatMap(({ records }) => readOutbox(records))
    .flatMap(({ kind, partnerId, requestId, id }) =>
      ENTRY_KINDS[kind].requestIds === 'adjustments' && requestId !== null
        ? [{ partnerId, requestId, entryId: id }]
        : [],
    );
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
