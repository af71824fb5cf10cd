/**
 * Replenishes the outcome queues of the cells that this worker owns. The block maker of each game decides
 * what to make and when (blockMakers.ts, poolMaker.ts).
 *
 * The keeper measures the dealing rate of a game in two ways: from the outbox, whose entries have the indices
 * that were dealt, and from the announcements of the scripts when a block is dealt out. The announcements
 * matter for a new game, which has few outcomes while the ledger lags behind.
 *
 *   make (piscina: draw, check, seal) ──> lease (Postgres, fenced) ──> public log
 *     ──> load (Redis) ──> dealt, committed ──> unlinked
 *
 * A block must be leased and covered by a published checkpoint of the public log (src/publicLog) before it is
 * loaded. After any failure the game is read again from both stores before its next block. A block that was
 * leased but not loaded is loaded at that time; no block is ever drawn again.
 */

import type { Piscina } from 'piscina';
import type { OnFailpoint } from '../../platform/failpoints.js';
import { ending } from '../../platform/runtime/ending.js';
import { type FairLimits, FairQueue } from '../../platform/runtime/fairQueue.js';
import { HEALTHY, type Health, type Service, unhealthy } from '../../platform/runtime/service.js';
import type { Sql } from '../../postgres/connection.js';
import type { CellLease } from '../cells/cells.store.js';
import type { Consumption } from '../processEvents.js';
import type { DealtAnnouncement } from '../redis/announcements.js';
import type { CellStore } from '../redis/cellStore.js';
import type { RedisNodes } from '../redis/nodes.js';
import { type MadeBlock, paceAfter, type QueueState, readyBlocks } from './blockMaker.js';
import { BlockMakers, type BlockMakersOptions, type KeptGame } from './blockMakers.js';
import { blocksMade, leaseBlock, openBlocks } from './blocks.store.js';
import { learnDealtOut, newQueue, type Queue, queueSecondsLeft } from './queue.js';
import { readQueue } from './readQueue.js';

export interface QueueDepth {
  readonly gameId: number;
  readonly cell: number;
  readonly outcomes: number;
  readonly blocks: number;
  /** Minimum number of ready blocks that the partner wants. Undefined if the game has no reserve. */
  readonly minReadyBlocks: number | undefined;
}

export interface KeeperOptions extends BlockMakersOptions {
  readonly gamesOfCell: (cell: number) => readonly KeptGame[];
  /**
   * Resolves once a published checkpoint covers all entries of the public log that were in Postgres at the
   * time of the call.
   */
  readonly published: () => Promise<void>;
  /** Maximum number of blocks of a game whose records are published by one checkpoint. */
  readonly blocksAtOnce: number;
  /**
   * Reports that the outcomes of a game are leased in Postgres up to an index. No outcome of the new lease
   * may be loaded before this call has succeeded.
   */
  readonly leased: (gameId: number, toIndex: number) => Promise<void>;
  /**
   * Carries out the recorded rotation of a game. The record of its void must be in the public log before the
   * game's next block.
   */
  readonly finishRotation: (gameId: number) => Promise<void>;
  readonly onFailpoint: OnFailpoint;
}

const OUTCOME_BYTES = 2;
/**
 * Interval at which all queues are considered, in ms. Other changes cause their queue to be considered at
 * once. Only the time since a game's suspension is checked at this interval alone.
 */
const TURN_MS = 1000;
/** Margin, in ms, for timers, which may fire a millisecond early. */
const TIMER_EARLY_MS = 2;
/**
 * Time after the suspension of a game at which its blocks are freed, in ms. By then, no front end deals from
 * the game any more.
 */
const FREE_AFTER_MS = 5000;
/**
 * Number of blocks that are being made at once for each thread. It is more than one, so that a thread that
 * becomes free has its next block ready to be made.
 */
const MAKING_PER_THREAD = 2;

/**
 * How many queues are filled at once, in total and for each partner. Most of them only wait for the public
 * log. At a start with many games, connections thus remain for the renewal of leases and for the ledger.
 */
export const FILLING: FairLimits = { atOnce: 64, atOnceOfOwner: 16, runningCost: 1 };

/**
 * Shares the threads that make blocks between partners by the thread time that they have used, in ms. A block
 * that is still being made counts as far more than a block usually takes, so that other partners come before
 * a second block of the same partner.
 */
export const MAKING = {
  limits: (threads: number): FairLimits => ({ atOnce: MAKING_PER_THREAD * threads, runningCost: 10_000 }),
  cost: ({ elapsedMs }: { readonly elapsedMs: number }): number => elapsedMs,
};

const RETRY_MS = 250;
const RETRY_MS_MAX = 8000;

/**
 * Returns the back-off before a queue is filled again, after this many failures in a row. The back-off
 * doubles with each failure and has a jitter of up to a third.
 */
export const retryMs = (failures: number): number =>
  Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (failures - 1)) * (1 - Math.random() / 3);

interface LeasedNow {
  readonly fromIndex: number;
  readonly toIndex: number;
  /** Time at which the making of the block began, on the scale of performance.now(). */
  readonly started: number;
  readonly block: MadeBlock;
}

export class BlockKeeper implements Service {
  readonly name = 'block keeper';
  readonly #leases = new Map<number, CellLease>();
  readonly #queues = new Map<number, Queue>();
  readonly #blockMakers: BlockMakers;
  readonly #running = new Set<Promise<void>>();
  readonly #filling = new FairQueue(FILLING);
  readonly #making: FairQueue;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  readonly #ended = ending('block keeper');
  readonly #failing = new Map<number, string>();

  constructor(
    private readonly sql: Sql,
    private readonly nodes: RedisNodes,
    pool: Piscina,
    private readonly options: KeeperOptions,
  ) {
    this.#blockMakers = new BlockMakers(sql, pool, options);
    this.#making = new FairQueue(MAKING.limits(pool.options.maxThreads));
  }

  async start(): Promise<void> {
    const turn = (): void => {
      this.considerAll();
      if (!this.#stopped) this.#timer = setTimeout(turn, TURN_MS);
    };
    turn();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#ended.end();
    clearTimeout(this.#timer);
    await Promise.all(this.#running);
  }

  health(): Health {
    const [first] = this.#failing;
    if (first === undefined) return HEALTHY;
    const [gameId, reason] = first;
    return unhealthy(
      `${this.#failing.size} games are not replenished, for example game ${gameId}: ${reason}`,
    );
  }

  /** Considers all queues, for example after partners have changed the reserves of their games. */
  considerAll(): void {
    for (const queue of this.#queues.values()) this.#consider(queue);
  }

  own(lease: CellLease): void {
    this.#leases.set(lease.cell, lease);
    this.learn(this.options.gamesOfCell(lease.cell));
  }

  disown(cell: number): void {
    this.#leases.delete(cell);
    for (const queue of this.#queues.values()) {
      if (queue.lease.cell !== cell) continue;
      this.#queues.delete(queue.gameId);
      this.#failing.delete(queue.gameId);
    }
  }

  learn(games: readonly KeptGame[]): void {
    for (const game of games) {
      const lease = this.#leases.get(game.cell);
      const { gameId } = game;
      // Discards the queue of a game whose partner has moved to another cell.
      if (this.#queues.get(gameId)?.lease.cell !== game.cell) this.#queues.delete(gameId);
      if (lease === undefined) continue;
      if (game.status === 'CLOSED') {
        // All tickets of the raffle are committed, or the raffle is voided. The worker that committed the
        // last ticket may have failed to remove the pool from Redis, so this worker removes it.
        this.#queues.delete(gameId);
        this.#failing.delete(gameId);
        this.nodes
          .cell(game.cell)
          .unlinkBlocks(gameId, [0])
          .catch((error: unknown) => this.#report(error, gameId));
        continue;
      }
      let queue = this.#queues.get(game.gameId);
      if (queue === undefined) {
        queue = newQueue(game, lease, this.#blockMakers.of(game, lease));
        this.#queues.set(game.gameId, queue);
      }
      queue.requested = game.blocksRequested;
      // No outcome of a suspended game is dealt. Its blocks are freed, and loaded or made once the game is
      // active again.
      if (game.status === 'SUSPENDED') queue.suspendedAt ??= performance.now();
      else queue.suspendedAt = undefined;
      this.#consider(queue);
    }
  }

  /**
   * Updates queues to the committed progress of their games: the ledger has a game's outcomes up to
   * `nextIndex`.
   */
  consumed(cell: number, games: readonly Consumption[]): void {
    const now = performance.now();
    for (const { gameId, nextIndex, count } of games) {
      const queue = this.#queues.get(gameId);
      if (queue === undefined) continue;
      queue.pace = paceAfter(queue.pace, count, (now - queue.seenAt) / 1000);
      queue.seenAt = now;
      queue.nextIndex = Math.max(queue.nextIndex, nextIndex);
      const ready = readyBlocks(queue);
      queue.dealtIndex = Math.max(queue.dealtIndex, nextIndex);
      while (queue.blocks.length > 0 && queue.blocks[0]!.toIndex <= queue.nextIndex) {
        const { fromIndex } = queue.blocks.shift()!;
        this.nodes
          .cell(cell)
          .unlinkBlocks(gameId, [fromIndex])
          .catch((error: unknown) => this.#report(error, gameId));
      }
      this.#dealt(queue, ready);
    }
  }

  /**
   * Updates a queue after a script has announced that a block is dealt out. The announcement arrives sooner
   * than the ledger's commit.
   */
  dealtOut({ cell, token, gameId, nextIndex }: DealtAnnouncement): void {
    const queue = this.#queues.get(gameId);
    if (queue === undefined || queue.lease.cell !== cell) return;
    // The announcement comes from another installation on the same server, or was sent before a rebuild.
    if (!this.nodes.cell(cell).isTokenOf(queue.lease.token, token)) return;
    const ready = readyBlocks(queue);
    learnDealtOut(queue, nextIndex, performance.now());
    this.#dealt(queue, ready);
  }

  /** Informs the reserve of a game that its queue has fewer ready blocks, and considers the queue. */
  #dealt(queue: Queue, readyBefore: number): void {
    const ready = readyBlocks(queue);
    if (ready < readyBefore) queue.blockMaker.reserve?.hasFallen(ready);
    this.#consider(queue);
  }

  /** Discards the state of a cell's queues, which may be wrong, so that it is read again from the stores. */
  readAgain(cell: number): void {
    for (const queue of this.#queues.values()) {
      if (queue.lease.cell !== cell) continue;
      queue.leaseEnd = undefined;
      this.#consider(queue);
    }
  }

  /** Queue depth by game. For a pool, the depth is the number of outcomes that are not committed. */
  depths(): QueueDepth[] {
    const kept = [...this.#queues.values()].filter(({ isFreed }) => !isFreed);
    return kept.map(({ gameId, lease, blockMaker, ...queue }) => {
      // After a failed replenishment the end of the leases is not known, but the loaded blocks still are.
      const end = queue.leaseEnd ?? queue.blocks.at(-1)?.toIndex ?? 0;
      const { reserve } = blockMaker;
      return {
        gameId,
        cell: lease.cell,
        outcomes: Math.max(0, end - (reserve === undefined ? queue.nextIndex : queue.dealtIndex)),
        blocks: readyBlocks(queue),
        minReadyBlocks: reserve?.minReadyBlocks,
      };
    });
  }

  /** Returns what a queue needs now. */
  #jobFor(queue: Queue): (() => Promise<void>) | undefined {
    const { suspendedAt, blockMaker } = queue;
    const now = performance.now();
    if (this.#stopped || this.#queues.get(queue.gameId) !== queue || now < queue.notBefore) return undefined;
    if (suspendedAt === undefined) {
      const isLow = queue.leaseEnd === undefined || blockMaker.isLow(queue);
      return isLow ? () => this.#fill(queue) : undefined;
    }
    // A pool is never freed: it can only be loaded whole, and there are few pools.
    const isDue = blockMaker.reserve !== undefined && now - suspendedAt > FREE_AFTER_MS && !queue.isFreed;
    return isDue ? () => this.#free(queue) : undefined;
  }

  /** Of a partner's queues, the one that runs dry first has the next turn. */
  #consider(queue: Queue): void {
    if (queue.hasJob || this.#jobFor(queue) === undefined) return;
    queue.hasJob = true;
    const work = this.#filling
      .run(queue.partnerId, () => this.#work(queue), { rank: () => queueSecondsLeft(queue) })
      .catch((error: unknown) => {
        // Ignore the error if the game was closed or its cell lost meanwhile. The next owner of the cell will
        // load the leased blocks.
        if (this.#stopped || this.#queues.get(queue.gameId) !== queue) return;
        // The state of the queue may be wrong after an error, so it is read again before the next block.
        queue.leaseEnd = undefined;
        const restMs = retryMs(++queue.failures);
        queue.notBefore = performance.now() + restMs;
        setTimeout(() => this.#consider(queue), restMs + TIMER_EARLY_MS).unref();
        this.#failing.set(queue.gameId, error instanceof Error ? error.message : String(error));
        this.#report(error, queue.gameId);
      })
      .finally(() => {
        queue.hasJob = false;
        this.#running.delete(work);
        // Changes of the queue near the end of the job were ignored because the job was still running, so the
        // queue is considered once more.
        if (queue.suspendedAt === undefined) this.#consider(queue);
      });
    this.#running.add(work);
  }

  /** Does what a queue needs now that its turn has come, which may be nothing any more. */
  async #work(queue: Queue): Promise<void> {
    const job = this.#jobFor(queue);
    if (job === undefined) return;
    await job();
    this.#failing.delete(queue.gameId);
    queue.failures = 0;
  }

  #report(error: unknown, gameId: number): void {
    this.options.events.emit('TaskFailed', { task: 'block replenishment', error, gameId });
  }

  /**
   * Removes the blocks of a suspended game from Redis. The blocks stay leased, and {@link readQueue} loads
   * them again.
   */
  async #free(queue: Queue): Promise<void> {
    const { gameId, lease } = queue;
    // Whether the blocks were freed or not, the state of the queue must be read again.
    queue.leaseEnd = undefined;
    queue.isFreed = await freeQueue(this.sql, this.nodes.cell(lease.cell), lease, gameId);
    if (queue.isFreed) queue.blocks = [];
  }

  async #fill(queue: Queue): Promise<void> {
    queue.isFreed = false;
    if (queue.leaseEnd === undefined) {
      const store = this.nodes.cell(queue.lease.cell);
      await readQueue(queue, {
        sql: this.sql,
        store,
        leased: this.options.leased,
        published: () => this.#published(),
      });
      queue.blockMaker.reserve?.hasFallen(readyBlocks(queue));
    }
    await queue.blockMaker.reserve?.note(() => readyBlocks(queue));
    while (!this.#stopped && this.#queues.get(queue.gameId) === queue && queue.blockMaker.isLow(queue)) {
      await this.#make(queue);
      await queue.blockMaker.reserve?.note(() => readyBlocks(queue));
    }
  }

  /**
   * Makes and leases the next blocks, waits until a published checkpoint covers all of them, and loads them.
   */
  async #make(queue: Queue): Promise<void> {
    const leased: LeasedNow[] = [];
    const planned = (): QueueState => ({
      ...queue,
      blocks: [...queue.blocks, ...leased],
      leaseEnd: leased.at(-1)?.toIndex ?? queue.leaseEnd,
      requested: Math.max(0, queue.requested - leased.length),
    });
    do leased.push(await this.#lease(queue, planned().leaseEnd!));
    while (leased.length < this.options.blocksAtOnce && !this.#stopped && queue.blockMaker.isLow(planned()));
    await this.#published();
    this.options.onFailpoint('block.published');
    await this.options.leased(queue.gameId, leased.at(-1)!.toIndex);
    for (const block of leased) await this.#load(queue, block);
  }

  /** If a rotation is pending, the rotation is finished first. */
  async #lease(queue: Queue, fromIndex: number): Promise<LeasedNow> {
    const started = performance.now();
    const { lease, gameId } = queue;
    const { onFailpoint, finishRotation } = this.options;
    const make = (): Promise<MadeBlock> => queue.blockMaker.make(fromIndex, queue.pace);
    const rank = (): number => queueSecondsLeft(queue);
    const block = await this.#making.run(queue.partnerId, make, { rank, cost: MAKING.cost });
    onFailpoint('block.made');
    const toIndex = fromIndex + block.outcomes.byteLength / OUTCOME_BYTES;
    const sealed = { gameId, fromIndex, toIndex, ...block };
    while (!(await leaseBlock(this.sql, lease, sealed))) await finishRotation(gameId);
    onFailpoint('block.leased');
    return { fromIndex, toIndex, started, block };
  }

  async #load(queue: Queue, { fromIndex, toIndex, started, block }: LeasedNow): Promise<void> {
    const { lease, gameId } = queue;
    const outcomes = Buffer.from(block.outcomes.buffer, block.outcomes.byteOffset, block.outcomes.byteLength);
    await this.nodes.cell(lease.cell).loadBlock(lease, gameId, fromIndex, outcomes);
    this.options.onFailpoint('block.loaded');
    queue.leaseEnd = toIndex;
    queue.blocks.push({ fromIndex, toIndex });
    await queue.blockMaker.loaded();
    if (queue.requested > 0) {
      queue.requested -= 1;
      await blocksMade(this.sql, gameId, 1);
    }
    this.options.events.emit('BlockMade', {
      gameId,
      outcomes: toIndex - fromIndex,
      makeSeconds: block.elapsedMs / 1000,
      totalSeconds: (performance.now() - started) / 1000,
    });
  }

  /**
   * Waits for `options.published`, but no longer than until the keeper stops, because a quorum of witnesses
   * may take long.
   */
  #published(): Promise<void> {
    return Promise.race([this.options.published(), this.#ended.promise]);
  }
}

/**
 * Frees the queue of a suspended game by removing its blocks from Redis. The blocks stay leased and sealed in
 * Postgres, and the keeper loads the same blocks again once the game is active. So nothing is drawn anew,
 * skipped or dealt twice (lua/freeBlocks.lua).
 * @returns false if the caller must try again
 */
async function freeQueue(sql: Sql, store: CellStore, lease: CellLease, gameId: number): Promise<boolean> {
  const game = await store.findGame(gameId);
  if (game === undefined) return true;
  const blocks = await openBlocks(sql, gameId, Number.MAX_SAFE_INTEGER);
  const fromIndices = blocks.map(({ fromIndex }) => fromIndex);
  return store.freeBlocks(lease, gameId, game.queueEnd, fromIndices);
}
