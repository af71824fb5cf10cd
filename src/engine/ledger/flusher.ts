/**
 * Moves the outboxes of the cells that this worker owns into the ledger.
 *
 *   leased ──read after cursor──> entries ──one transaction for all cells──> committed ──> trim ──> read …
 *      │                                            │ failed ──> each cell in a transaction of its own:
 *      │                                            │ failed, or unknown whether it committed
 *      │                                            └──> read fence and cursor again, then continue
 *      ├── another owner has a higher fence ──> released
 *      └── an entry exists already, an index was skipped or dealt twice, or the data was refused twice
 *            ──> halted, with an alarm; the other cells continue
 *
 * A cell is halted only for the failure of a transaction that had no other cell in it. Only committed entries
 * are trimmed. After a crash, reading begins after the committed cursor.
 */
import type { OnFailpoint } from '../../platform/failpoints.js';
import { HEALTHY, type Health, type Service, unhealthy } from '../../platform/runtime/service.js';
import type { Sql } from '../../postgres/connection.js';
import { isDataFault, isPostgresAway, isUniqueViolation } from '../../postgres/postgresErrors.js';
import { type CellLease, FencedError, haltCell, writtenOf } from '../cells/cells.store.js';
import { PotError } from '../communal/communalFlush.store.js';
import type { EventEmitter } from '../processEvents.js';
import type { RedisNode } from '../redis/node.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { CellRead, OutboxReader } from '../redis/outboxReader.js';
import { OutrunError } from '../redis/scriptErrors.js';
import type { CommittedRequestIds } from '../requestIds/committedRequestIds.js';
import { pauseMs } from './flushPause.js';
import { bookEntries, type CellFlush, ProgressError } from './ledger.store.js';
import { Partitions } from './partitions.js';
import {
  consumptionOf,
  EpochChangedError,
  type FlushEvents,
  newlyOwned,
  type OwnedCell,
  type Portion,
  positionOf,
  takePortion,
  transactionsOf,
  UnreadableEntryError,
} from './portion.js';
import { Transcoder } from './transcoder.js';
import { TRIM_EVERY_MS, Trimmer } from './trimmer.js';

const BLOCK_MS = 200;
const RETRY_MS = 200;
/**
 * Maximum time, in ms, for which a flusher that is being stopped flushes the remaining entries. The rest of
 * the stop timeout is for the transaction in progress.
 */
const FLUSH_AT_STOP_MS = 3000;
const STOP_TIMEOUT_MS = 5000;

/** Flush loop of the cells of one Redis node. A node that is unreachable delays only its own cells. */
interface NodeLoop {
  isOver: boolean;
  readonly reader: OutboxReader;
  /** Whether somebody waits for a commit of entries that the round has not read. */
  isAwaited: boolean;
  /** Ends the pause that is under way, as soon as somebody waits. Undefined outside of pauses. */
  endPause: (() => void) | undefined;
  readonly trimmer: Trimmer;
  /** Duration of the last flush without the wait for entries, in ms. */
  flushMs: number;
  /** Number of games whose totals the last flush wrote. */
  games: number;
  wasEmpty: boolean;
}

export class Flusher implements Service {
  readonly name = 'flusher';
  readonly stopTimeoutMs = STOP_TIMEOUT_MS;
  readonly #loops = new Map<NodeLoop, Promise<void>>();
  readonly #owned = new Map<number, OwnedCell>();
  readonly #partitions: Partitions;
  #stopping = false;
  #endLoops: (() => void) | undefined;
  /** Error message of the newest flush. Undefined if that flush succeeded. */
  #problem: string | undefined;

  constructor(
    private readonly sql: Sql,
    private readonly nodes: RedisNodes,
    private readonly openReader: (node: RedisNode) => OutboxReader,
    private readonly options: {
      /**
       * Time from the start of one round to the start of the next while no response waits for a commit, in
       * ms.
       */
      readonly intervalMs: number;
      /** Whether a response waits for every entry, as with `ACK=ledger`. */
      readonly isAwaited: boolean;
      readonly events: EventEmitter;
      /**
       * Returns the payout above which a win is large, in micro-USD. Undefined if this process does not know
       * the partner yet.
       */
      readonly largeWinThreshold: (partnerId: number) => number | undefined;
      /** Makes the events that are recorded in the transaction of their entries. */
      readonly eventsOf: FlushEvents;
      readonly committedIds: CommittedRequestIds;
      readonly onFailpoint: OnFailpoint;
    },
  ) {
    this.#partitions = new Partitions(sql);
  }

  async start(): Promise<void> {
    this.#endLoops = this.nodes.each((node) => {
      const reader = this.openReader(node);
      const state = {
        isOver: false,
        isAwaited: false,
        endPause: undefined,
        flushMs: 0,
        games: 0,
        wasEmpty: false,
      };
      const loop: NodeLoop = { ...state, reader, trimmer: this.#newTrimmer() };
      this.#loops.set(loop, this.#run(loop));
      return () => {
        loop.isOver = true;
        this.#loops.delete(loop);
        reader.close();
      };
    });
  }

  health(): Health {
    return this.#problem === undefined ? HEALTHY : unhealthy(this.#problem);
  }

  /**
   * Starts to flush a cell, from the cursor of the lease.
   * @param token token that the cell must have in Redis. It is given for a cell that no front end deals from
   * any more
   */
  own(lease: CellLease, token?: string): void {
    const records = new Transcoder(this.options.largeWinThreshold);
    this.options.committedIds.forget(lease.cell);
    this.#owned.set(lease.cell, newlyOwned(lease, token, this.nodes.cell(lease.cell), records));
  }

  /**
   * Returns the committed cursor of a cell under a lease. Undefined if the flusher no longer holds the cell
   * under that lease.
   */
  cursorOf({ cell, fence }: CellLease): bigint | undefined {
    const owned = this.#owned.get(cell);
    return owned?.lease.fence === fence ? owned.cursor : undefined;
  }

  /**
   * Commits what the cell's outbox has as soon as the pause between two flushes permits, because somebody
   * waits.
   * @returns false if this process does not flush the cell
   */
  commitSoon(cell: number): boolean {
    const node = this.#owned.get(cell)?.store.node;
    for (const loop of this.#loops.keys()) {
      if (loop.reader.node !== node) continue;
      loop.isAwaited = true;
      loop.endPause?.();
      return true;
    }
    return false;
  }

  disown(cell: number): void {
    this.options.committedIds.forget(cell);
    this.#owned.delete(cell);
  }

  /** Flushes until the outboxes of all owned cells are empty, or until the deadline. */
  async stop(): Promise<void> {
    const deadline = performance.now() + FLUSH_AT_STOP_MS;
    this.#stopping = true;
    for (const { endPause } of this.#loops.keys()) endPause?.();
    await Promise.all(this.#loops.values());
    const loops = [...this.#loops.keys()];
    await Promise.all(loops.map((loop) => this.#empty(loop, deadline)));
    await Promise.all(loops.map(({ trimmer }) => trimmer.underWay));
    this.#endLoops?.();
  }

  #newTrimmer(): Trimmer {
    const onFailed = (owned: OwnedCell, error: unknown): void => {
      if (error instanceof OutrunError) this.#giveUp(owned);
      this.#report(error, owned.lease.cell);
    };
    return new Trimmer({ nodes: this.nodes, onFailpoint: this.options.onFailpoint, onFailed });
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
    while (!this.#stopping && !loop.isOver) {
      const started = performance.now();
      let isMore = false;
      try {
        isMore = await this.#round(loop, BLOCK_MS);
      } catch (error) {
        this.#report(error);
        await pause(RETRY_MS);
      }
      // No pause while entries remain after a read, because the backlog must shrink after an outage.
      if (!isMore && !this.#stopping) await this.#pause(loop, performance.now() - started);
    }
  }

  /** Waits for the short pause, and then until somebody waits, at most for the long pause. */
  async #pause(loop: NodeLoop, roundMs: number): Promise<void> {
    const round = { ...loop, roundMs };
    const shortMs = pauseMs({ ...round, isAwaited: true }, this.options.intervalMs);
    const longMs = pauseMs({ ...round, isAwaited: false }, this.options.intervalMs);
    if (shortMs > 0) await pause(shortMs);
    const isOver = this.#stopping || loop.isAwaited || this.options.isAwaited;
    if (isOver || longMs <= shortMs) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, longMs - shortMs);
      loop.endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    loop.endPause = undefined;
  }

  /**
   * Reads the outboxes of all cells of a node once and flushes the entries that it found.
   * @param waitMs maximum time to wait for entries, in ms; 0 means no wait
   * @returns whether more entries can be flushed at once
   */
  async #round(loop: NodeLoop, waitMs: number): Promise<boolean> {
    const { reader } = loop;
    const now = performance.now();
    loop.flushMs = 0;
    loop.games = 0;
    const cells = [...this.#owned.values()].filter(
      ({ store, notBefore }) => store.node === reader.node && notBefore <= now,
    );
    // After a restart, the two connections to a node may lead to different servers for a moment.
    if (cells.length === 0 || !reader.isAtNode) {
      await pause(20);
      loop.wasEmpty = true;
      return false;
    }
    const { trimmer } = loop;
    const isAwaited = loop.isAwaited || this.options.isAwaited;
    await trimmer.underWay;
    if (trimmer.isDue(isAwaited)) await trimmer.trim(cells);
    const isTrimmed = cells.every(({ untrimmed }) => untrimmed === undefined);
    const read = await reader.read(
      cells.map(positionOf),
      isTrimmed ? waitMs : Math.min(waitMs, TRIM_EVERY_MS),
    );
    const readAt = performance.now();
    loop.isAwaited = false;
    const byCell = new Map(cells.map((owned) => [owned.lease.cell, owned]));
    const prepared = read.cells.map((each) => this.#prepare(byCell.get(each.cell)!, each));
    const portions = (await Promise.all(prepared)).filter((portion) => portion !== undefined);
    const areBooked = await Promise.all(transactionsOf(portions).map((together) => this.#book(together)));
    loop.flushMs = performance.now() - readAt;
    loop.games = portions.reduce((sum, { flush }) => sum + flush.totals.games.length, 0);
    loop.wasEmpty = read.cells.length === 0;
    // The trim runs in the background. The next round of the flusher waits for the trim before it reads the
    // outboxes.
    if (loop.wasEmpty || trimmer.isDue(isAwaited)) void trimmer.trim(cells);
    // Entries that did not fit into the transaction are read again at once.
    return read.isMore || areBooked.includes(false) || portions.some(({ isAll }) => !isAll);
  }

  /**
   * Prepares the next portion of a cell: entries for one transaction. Returns undefined if the preparation
   * failed.
   */
  async #prepare(owned: OwnedCell, { batches, isOfEpoch }: CellRead): Promise<Portion | undefined> {
    const { lease } = owned;
    try {
      this.options.onFailpoint('flush.read');
      if (!isOfEpoch) throw new EpochChangedError(lease.cell);
      const portion = await takePortion(owned, batches, this.options.eventsOf);
      return this.#owned.get(lease.cell) === owned ? portion : undefined;
    } catch (error) {
      await this.#failed(owned, error);
      return undefined;
    }
  }

  /**
   * Commits portions of different cells in one transaction.
   * @returns false if the transaction failed and each cell must be retried alone at once. True also if a
   * single cell failed, because that cell is retried later
   */
  async #book(portions: readonly Portion[]): Promise<boolean> {
    const { onFailpoint, events } = this.options;
    const started = performance.now();
    try {
      for (const { days } of portions) for (const day of days) await this.#partitions.ensure(day);
      const flushes = portions.map(({ flush }) => flush);
      const deliveries = await bookEntries(this.sql, flushes, onFailpoint);
      onFailpoint('flush.committed');
      for (const { owned, flush, addedBytesAndEntries } of portions) {
        owned.cursor = flush.cursor.to;
        this.#keepIds(owned, flush);
        owned.hasDataFault = false;
        owned.isAlone = false;
        owned.untrimmed = addedBytesAndEntries;
      }
      this.#problem = undefined;
      const seconds = (performance.now() - started) / 1000;
      events.emit('FlushCommitted', { cells: portions.length, seconds });
      if (deliveries > 0) events.emit('EventsRecorded', { deliveries });
      this.nodes.pipelined(() => {
        for (const portion of portions) this.#announceCommitted(portion);
      });
      return true;
    } catch (error) {
      return this.#notBooked(portions, error);
    }
  }

  /**
   * Keeps the request ids of a commit. If the cell was released before the commit was reported, the ids are
   * dropped, because nobody would use them.
   */
  #keepIds(owned: OwnedCell, { cursor: { from, to } }: CellFlush): void {
    const { cell } = owned.lease;
    if (this.#owned.get(cell) === owned)
      this.options.committedIds.add(cell, from, to, owned.records.requestIds);
  }

  #announceCommitted({ owned, flush, entries, oldestMs }: Portion): void {
    const { events } = this.options;
    const { lease } = owned;
    const { cursor, totals, communal } = flush;
    events.emit('CursorAdvanced', { lease, cursor: cursor.to });
    const fired = communal?.events ?? [];
    if (fired.length > 0) events.emit('CommunalEventsCommitted', { events: fired });
    events.emit('LedgerCommitted', {
      cell: lease.cell,
      from: cursor.from,
      to: cursor.to,
      games: totals.games,
      rounds: totals.rounds,
      entries,
      lagSeconds: Math.max(0, Date.now() - oldestMs) / 1000,
    });
    events.emit('OutcomesConsumed', { cell: lease.cell, games: totals.progress.map(consumptionOf) });
  }

  /**
   * Handles a failed transaction. If it had several cells, each is retried alone, because the failure can't
   * be attributed to one of them.
   */
  async #notBooked(portions: readonly Portion[], error: unknown): Promise<boolean> {
    const [first, ...others] = portions as [Portion, ...Portion[]];
    if (others.length === 0) {
      await this.#failed(first.owned, error);
      return true;
    }
    this.#partitions.forget();
    this.#report(error);
    for (const { owned } of portions) {
      owned.isAlone = true;
      if (isPostgresAway(error)) owned.notBefore = performance.now() + RETRY_MS;
    }
    return false;
  }

  async #failed(owned: OwnedCell, error: unknown): Promise<void> {
    const { cell } = owned.lease;
    // A restored Postgres that lacks a partition also causes a data error. The partition is made before the
    // second attempt, so only a second failure halts the cell.
    const isRefused = isDataFault(error) && owned.hasDataFault;
    const isWrong =
      error instanceof ProgressError || error instanceof PotError || error instanceof UnreadableEntryError;
    if (isWrong || isUniqueViolation(error) || isRefused) {
      this.#giveUp(owned);
      const reason = error instanceof Error ? error.message : String(error);
      this.options.events.emit('CellHalted', { cell, reason });
      await haltCell(this.sql, cell, reason).catch((again: unknown) => this.#report(again, cell));
      return;
    }
    if (error instanceof EpochChangedError) {
      this.#report(error, cell);
      this.#giveUp(owned);
      return;
    }
    if (error instanceof FencedError) {
      // Either another worker owns the cell, or this worker's own commit moved the cursor but its reply was
      // lost.
      await this.#readAgain(owned, error).catch((again: unknown) => this.#report(again, cell));
      return;
    }
    owned.hasDataFault = isDataFault(error);
    this.#partitions.forget();
    this.#report(error, cell);
    owned.notBefore = performance.now() + RETRY_MS;
  }

  async #readAgain(owned: OwnedCell, cause: unknown): Promise<void> {
    const { cell, fence } = owned.lease;
    const written = await writtenOf(this.sql, cell);
    if (written !== undefined && written.fence === fence && written.cursor > owned.cursor) {
      owned.cursor = written.cursor;
      owned.untrimmed = true;
      this.options.events.emit('CursorAdvanced', { lease: owned.lease, cursor: owned.cursor });
      this.options.events.emit('CommitFoundLater', { cell });
    } else {
      this.#report(cause, cell);
      this.#giveUp(owned);
    }
  }

  /**
   * Stops flushing under this lease. A newer lease of the same cell that arrived meanwhile stays in force.
   */
  #giveUp(owned: OwnedCell): void {
    const { cell } = owned.lease;
    if (this.#owned.get(cell) !== owned) return;
    this.options.committedIds.forget(cell);
    this.#owned.delete(cell);
    this.options.events.emit('CellAbandoned', { cell });
  }

  /** @param cell cell whose flush failed; undefined if the whole round failed */
  #report(error: unknown, cell?: number): void {
    this.#problem = error instanceof Error ? error.message : String(error);
    this.options.events.emit('TaskFailed', {
      task: 'flush',
      error,
      ...(cell === undefined ? {} : { cell }),
    });
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
