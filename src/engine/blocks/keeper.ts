/**
 * Keeps the outcome queues of the owned cells filled. What is made, and when, is for each game's block maker to say (blockMaker.ts:
 * slotBlockMaker.ts, poolMaker.ts). The pace at which a game is dealt is read off the outbox, where each entry says which index was
 * dealt, and off what the scripts announce when a block is dealt out: a game that is new has few outcomes, and the ledger is behind.
 *
 *   make (piscina: draw, check, seal) ──> lease (Postgres, fenced) ──> public log ──> load (Redis) ──> dealt, booked ──> unlinked
 *
 * A block is leased, and lies in a published checkpoint of the public log (src/publicLog), before it is loaded. Whatever fails, the
 * game is read again from both stores before its next block: one that was leased and not loaded is loaded then, none is ever drawn again.
 */
import type { Piscina } from 'piscina';
import type { OnFailpoint } from '../../platform/failpoints.js';
import { ending } from '../../platform/runtime/ending.js';
import { HEALTHY, type Health, type Service, unhealthy } from '../../platform/runtime/service.js';
import type { Sql } from '../../postgres/connection.js';
import type { CellLease } from '../cells/cells.store.js';
import type { Consumption } from '../processEvents.js';
import type { DealtAnnouncement } from '../redis/announcements.js';
import type { RedisNodes } from '../redis/nodes.js';
import { type MadeBlock, paceAfter, type QueueState, readyBlocks } from './blockMaker.js';
import { BlockMakers, type BlockMakersOptions, type KeptGame } from './blockMakers.js';
import { blocksMade, leaseBlock } from './blocks.store.js';
import { FairTurns } from './fairTurns.js';
import { FillingTurns, retryMs } from './filling.js';
import { freeQueue } from './freeing.js';
import { learnDealtOut, newQueue, type Queue, queueSecondsLeft } from './queue.js';
import { readQueue } from './readQueue.js';

export interface QueueDepth {
  readonly gameId: number;
  readonly cell: number;
  readonly outcomes: number;
  readonly blocks: number;
  /** The reserve that the partner is to have; undefined where the game has none. */
  readonly minReadyBlocks: number | undefined;
}

export interface KeeperOptions extends BlockMakersOptions {
  readonly gamesOfCell: (cell: number) => readonly KeptGame[];
  /** Everything that Postgres has of the public log when it is called lies in a published checkpoint. */
  readonly published: () => Promise<void>;
  /** Blocks of a game that are published together, at the most. */
  readonly blocksAtOnce: number;
  /** A game is leased up to an index, in Postgres: nothing of that is loaded before this has succeeded. */
  readonly leased: (gameId: number, toIndex: number) => Promise<void>;
  /** Carries out what is on record of a game's rotation: its void is logged before the game's next block. */
  readonly finishRotation: (gameId: number) => Promise<void>;
  readonly onFailpoint: OnFailpoint;
}

const OUTCOME_BYTES = 2;
/** Between two looks at all queues: whatever changes one has it looked at at once, except the time for which a game is suspended. */
const TURN_MS = 1000;
/** A timer may be early by a millisecond. */
const TIMER_EARLY_MS = 2;
/** After so long a suspended game's blocks are freed: no front end deals from it any more. */
const FREE_AFTER_MS = 5000;
/** Blocks in the making for each thread: the next one is ready when it is free. */
const MAKING_PER_THREAD = 2;

/** A block that is leased and not loaded. */
interface LeasedNow {
  readonly fromIndex: number;
  readonly toIndex: number;
  /** As performance.now() counts. */
  readonly started: number;
  readonly block: MadeBlock;
}

export class BlockKeeper implements Service {
  readonly name = 'block keeper';
  readonly #sql: Sql;
  readonly #nodes: RedisNodes;
  readonly #options: KeeperOptions;
  readonly #leases = new Map<number, CellLease>();
  readonly #queues = new Map<number, Queue>();
  readonly #blockMakers: BlockMakers;
  readonly #running = new Set<Promise<void>>();
  readonly #filling = new FillingTurns();
  readonly #turns: FairTurns;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  /** Rejects once the keeper stops. */
  readonly #ended = ending('block keeper');
  /** By game: why its queue could not be replenished at the last try. */
  readonly #failing = new Map<number, string>();

  constructor(sql: Sql, nodes: RedisNodes, pool: Piscina, options: KeeperOptions) {
    this.#sql = sql;
    this.#nodes = nodes;
    this.#options = options;
    this.#blockMakers = new BlockMakers(sql, pool, options);
    this.#turns = new FairTurns(MAKING_PER_THREAD * pool.threads.length || MAKING_PER_THREAD);
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
    return unhealthy(`${this.#failing.size} games are not replenished; game ${gameId}: ${reason}`);
  }

  /** Looks at all queues: partners may want other reserves. */
  considerAll(): void {
    for (const queue of this.#queues.values()) this.#consider(queue);
  }

  own(lease: CellLease): void {
    this.#leases.set(lease.cell, lease);
    this.learn(this.#options.gamesOfCell(lease.cell));
  }

  disown(cell: number): void {
    this.#leases.delete(cell);
    for (const queue of this.#queues.values()) {
      if (queue.lease.cell !== cell) continue;
      this.#queues.delete(queue.gameId);
      this.#failing.delete(queue.gameId);
    }
  }

  /** Games that are new or changed. */
  learn(games: readonly KeptGame[]): void {
    for (const game of games) {
      const lease = this.#leases.get(game.cell);
      const { gameId } = game;
      // Its partner has moved to another cell.
      if (this.#queues.get(gameId)?.lease.cell !== game.cell) this.#queues.delete(gameId);
      if (lease === undefined) continue;
      if (game.status === 'CLOSED') {
        // All its tickets are booked, or it is voided; whoever booked the last may not have removed the pool any more.
        this.#queues.delete(gameId);
        this.#failing.delete(gameId);
        this.#nodes
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
      // Nothing is dealt of it: its blocks are freed, and loaded or made once it is active again.
      if (game.status === 'SUSPENDED') queue.suspendedAt ??= performance.now();
      else queue.suspendedAt = undefined;
      this.#consider(queue);
    }
  }

  /** The ledger has booked a game up to an index. */
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
        this.#nodes
          .cell(cell)
          .unlinkBlocks(gameId, [fromIndex])
          .catch((error: unknown) => this.#report(error, gameId));
      }
      this.#dealt(queue, ready);
    }
  }

  /** A script has announced that a block of a game is dealt out: sooner than the ledger does. */
  dealtOut({ cell, token, gameId, nextIndex }: DealtAnnouncement): void {
    const queue = this.#queues.get(gameId);
    if (queue === undefined || queue.lease.cell !== cell) return;
    // Of another installation on the same server, or from before a rebuild.
    if (!this.#nodes.cell(cell).isTokenOf(queue.lease.token, token)) return;
    const ready = readyBlocks(queue);
    learnDealtOut(queue, nextIndex, performance.now());
    this.#dealt(queue, ready);
  }

  /** @param readyBefore how many blocks were ready before what is known now */
  #dealt(queue: Queue, readyBefore: number): void {
    const ready = readyBlocks(queue);
    if (ready < readyBefore) queue.blockMaker.reserve?.hasFallen(ready);
    this.#consider(queue);
  }

  /** What is known of a cell's queues may be wrong: they are read again from the stores. */
  readAgain(cell: number): void {
    for (const queue of this.#queues.values()) {
      if (queue.lease.cell !== cell) continue;
      queue.leaseEnd = undefined;
      this.#consider(queue);
    }
  }

  /** Queue depth by game; of a pool, the outcomes that are not booked. */
  depths(): QueueDepth[] {
    const kept = [...this.#queues.values()].filter(({ isFreed }) => !isFreed);
    return kept.map(({ gameId, lease, blockMaker, ...queue }) => ({
      gameId,
      cell: lease.cell,
      outcomes: Math.max(0, (queue.leaseEnd ?? queue.nextIndex) - queue.nextIndex),
      blocks: readyBlocks(queue),
      minReadyBlocks: blockMaker.reserve?.minReadyBlocks,
    }));
  }

  #consider(queue: Queue): void {
    const { suspendedAt } = queue;
    const now = performance.now();
    if (this.#stopped || queue.making || now < queue.notBefore) return;
    if (suspendedAt !== undefined) {
      // A pool is loaded whole, and there are few.
      const isDue = queue.blockMaker.reserve !== undefined && now - suspendedAt > FREE_AFTER_MS;
      if (isDue && !queue.isFreed && this.#filling.hasTurn(queue)) this.#run(queue, () => this.#free(queue));
      return;
    }
    if (queue.leaseEnd !== undefined && !queue.blockMaker.isLow(queue)) return;
    if (this.#filling.hasTurn(queue)) this.#run(queue, () => this.#fill(queue));
    else this.#filling.wait(queue);
  }

  /** Fills queues that wait, while there are turns. */
  #beginWaiting(): void {
    for (let next = this.#filling.next(); next !== undefined; next = this.#filling.next()) {
      if (this.#queues.get(next.gameId) === next) this.#consider(next);
    }
  }

  #run(queue: Queue, job: () => Promise<void>): void {
    queue.making = true;
    this.#filling.begin(queue);
    const work = job()
      .then(() => {
        this.#failing.delete(queue.gameId);
        queue.failures = 0;
      })
      .catch((error: unknown) => {
        // It was closed meanwhile, or what it waited for will be loaded by who owns the cell next.
        if (this.#stopped || this.#queues.get(queue.gameId) !== queue) return;
        // What is known of the queue may be wrong now: it is read again before the next block.
        queue.leaseEnd = undefined;
        const restMs = retryMs(++queue.failures);
        queue.notBefore = performance.now() + restMs;
        setTimeout(() => this.#considerAgain(queue), restMs + TIMER_EARLY_MS).unref();
        this.#failing.set(queue.gameId, error instanceof Error ? error.message : String(error));
        this.#report(error, queue.gameId);
      })
      .finally(() => {
        queue.making = false;
        this.#running.delete(work);
        this.#filling.end(queue);
        this.#beginWaiting();
        // What changed at the end of the job was not looked at while it ran.
        if (queue.suspendedAt === undefined) this.#considerAgain(queue);
      });
    this.#running.add(work);
  }

  #considerAgain(queue: Queue): void {
    if (this.#queues.get(queue.gameId) === queue) this.#consider(queue);
  }

  #report(error: unknown, gameId: number): void {
    this.#options.events.emit('TaskFailed', { task: 'block replenishment', error, gameId });
  }

  /** Removes a suspended game's blocks from Redis; they stay leased, and {@link readQueue} loads them again. */
  async #free(queue: Queue): Promise<void> {
    const { gameId, lease } = queue;
    // Whatever comes of it: what is known of the queue is read again.
    queue.leaseEnd = undefined;
    queue.isFreed = await freeQueue(this.#sql, this.#nodes.cell(lease.cell), lease, gameId);
    if (queue.isFreed) queue.blocks = [];
  }

  async #fill(queue: Queue): Promise<void> {
    queue.isFreed = false;
    if (queue.leaseEnd === undefined) {
      const store = this.#nodes.cell(queue.lease.cell);
      await readQueue(queue, {
        sql: this.#sql,
        store,
        leased: this.#options.leased,
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

  /** Makes the next blocks, as many as are published together, and loads them once they are. */
  async #make(queue: Queue): Promise<void> {
    const leased: LeasedNow[] = [];
    const planned = (): QueueState => ({
      ...queue,
      blocks: [...queue.blocks, ...leased],
      leaseEnd: leased.at(-1)?.toIndex ?? queue.leaseEnd,
      requested: Math.max(0, queue.requested - leased.length),
    });
    do leased.push(await this.#lease(queue, planned().leaseEnd!));
    while (leased.length < this.#options.blocksAtOnce && !this.#stopped && queue.blockMaker.isLow(planned()));
    await this.#published();
    this.#options.onFailpoint('block.published');
    await this.#options.leased(queue.gameId, leased.at(-1)!.toIndex);
    for (const block of leased) await this.#load(queue, block);
  }

  /** A block that is made and leased. */
  async #lease(queue: Queue, fromIndex: number): Promise<LeasedNow> {
    const started = performance.now();
    const { lease, gameId } = queue;
    const { onFailpoint, finishRotation } = this.#options;
    const block = await this.#turns.run(
      queue.partnerId,
      () => queueSecondsLeft(queue),
      () => queue.blockMaker.make(fromIndex, queue.pace),
    );
    onFailpoint('block.made');
    const toIndex = fromIndex + block.outcomes.byteLength / OUTCOME_BYTES;
    const sealed = { gameId, fromIndex, toIndex, ...block };
    while (!(await leaseBlock(this.#sql, lease, sealed))) await finishRotation(gameId);
    onFailpoint('block.leased');
    return { fromIndex, toIndex, started, block };
  }

  async #load(queue: Queue, { fromIndex, toIndex, started, block }: LeasedNow): Promise<void> {
    const { lease, gameId } = queue;
    const outcomes = Buffer.from(block.outcomes.buffer, block.outcomes.byteOffset, block.outcomes.byteLength);
    await this.#nodes.cell(lease.cell).loadBlock(lease, gameId, fromIndex, outcomes);
    this.#options.onFailpoint('block.loaded');
    queue.leaseEnd = toIndex;
    queue.blocks.push({ fromIndex, toIndex });
    await queue.blockMaker.loaded();
    if (queue.requested > 0) {
      queue.requested -= 1;
      await blocksMade(this.#sql, gameId, 1);
    }
    this.#options.events.emit('BlockMade', {
      gameId,
      outcomes: toIndex - fromIndex,
      makeSeconds: block.elapsedMs / 1000,
      totalSeconds: (performance.now() - started) / 1000,
    });
  }

  /** As the options have it; a quorum of witnesses may be long in coming, and a stop does not wait for that. */
  #published(): Promise<void> {
    return Promise.race([this.#options.published(), this.#ended.promise]);
  }
}
