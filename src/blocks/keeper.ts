/**
 * Keeps the outcome queues of the owned cells filled, and seals the pools of raffles: a pool is the one block of its game.
 *
 * A game has at least `minReadyBlocks` + 1 blocks, and outcomes for the next seconds at the pace at which it was lately
 * consumed; the size of a block follows that pace. The pace is read off the outbox: each entry tells which index was
 * dealt, so the spin path reports low water without a word of its own.
 *
 *   make (piscina: draw, check, seal) ──> lease (Postgres, fenced) ──> load (Redis) ──> dealt, booked ──> unlinked
 *
 * A block is leased before it is loaded. Whatever fails, the game is read again from both stores before its next block:
 * one that was leased and not loaded is loaded then, none is ever drawn again.
 */
import type { Piscina } from 'piscina';
import type { GameStatus } from '../domain/game.js';
import type { ParSheet } from '../domain/par.js';
import type { PrizeTableUsd } from '../domain/raffle.js';
import type { OnFailpoint } from '../failpoints.js';
import { blocksMade, bookedBlocks, leaseBlock, leaseEnds, openBlocks } from '../postgres/blocks.js';
import { sheetsOf } from '../postgres/catalog.js';
import type { CellLease } from '../postgres/cells.js';
import type { Sql } from '../postgres/client.js';
import { reserveFell, reserveIsBack } from '../postgres/notices.js';
import { openRaffle } from '../postgres/raffles.js';
import type { RedisNodes } from '../redis/nodes.js';

/** What piscina is asked for, and what it gives (workers/makeBlock.ts, workers/sealRaffle.ts). */
export interface BlockOrder {
  readonly sheetId: number;
  readonly sheet: ParSheet;
  readonly gameId: number;
  readonly fromIndex: number;
  readonly count: number;
}
export interface PoolOrder {
  readonly gameId: number;
  readonly table: PrizeTableUsd;
}
export interface MadeBlock {
  readonly seed: Uint8Array;
  readonly nonce: Uint8Array;
  readonly outcomes: Uint8Array;
  readonly commitment: Uint8Array;
  readonly elapsedMs: number;
}

export interface KeptGame {
  readonly gameId: number;
  readonly partnerId: number;
  readonly cell: number;
  /** Of a slot game. */
  readonly parSheetId: number | null;
  /** Of a raffle. */
  readonly prizeTable: PrizeTableUsd | null;
  /** Of a raffle whose pool is open to spins, or was. */
  readonly sealedAt: Date | null;
  readonly status: GameStatus;
  readonly blocksRequested: number;
}

export interface QueueDepth {
  readonly gameId: number;
  readonly cell: number;
  readonly outcomes: number;
  readonly blocks: number;
  /** The reserve that the partner is to have; undefined of a raffle, which has none. */
  readonly minReadyBlocks: number | undefined;
}

export interface KeeperOptions {
  readonly gamesOfCell: (cell: number) => readonly KeptGame[];
  readonly minReadyBlocks: (partnerId: number) => number;
  /** The worker of the thread pool that seals a raffle. */
  readonly sealer: string;
  readonly onMade: (block: {
    gameId: number;
    outcomes: number;
    makeSeconds: number;
    totalSeconds: number;
  }) => void;
  /** So many deliveries of events were recorded. */
  readonly onEvents: (deliveries: number) => void;
  readonly onError: (error: unknown, gameId: number) => void;
  readonly onFailpoint: OnFailpoint;
}

const OUTCOME_BYTES = 2;
/** Outcomes in a block of an idle game: 4 KB of Redis. */
const BLOCK_OUTCOMES_MIN = 2048;
const BLOCK_OUTCOMES_MAX = 262_144;
/** A block lasts about this long at the present pace; twice that is kept ready. */
const BLOCK_SECONDS = 2;
/** The pace that is planned for halves in this time once a game slows down. */
const PACE_HALF_LIFE_SECONDS = 10;
const TURN_MS = 200;
const RETRY_MS = 250;
const MAKING_MAX = 64;
const UNLINKED_ANEW = 64;

interface Queue {
  readonly gameId: number;
  readonly partnerId: number;
  readonly lease: CellLease;
  /** What its outcomes are made of. */
  readonly source: { readonly sheetId: number } | { readonly raffle: PrizeTableUsd };
  /** A raffle whose pool is not known to be open to spins. */
  isSealing: boolean;
  /** Blocks that are loaded and not wholly booked, oldest first. */
  blocks: { fromIndex: number; toIndex: number }[];
  nextIndex: number;
  /** End of the newest lease; undefined: to be read again from the stores. */
  leaseEnd: number | undefined;
  requested: number;
  /** What is noted of the reserve; undefined: not known. */
  reserve: 'full' | 'low' | undefined;
  /** To how many blocks the reserve has fallen, below the minimum, where that is not noted yet. */
  fellTo: number | undefined;
  making: boolean;
  notBefore: number;
  pace: number;
  seenAt: number;
}

export class BlockKeeper {
  readonly #sql: Sql;
  readonly #nodes: RedisNodes;
  readonly #pool: Piscina;
  readonly #options: KeeperOptions;
  readonly #leases = new Map<number, CellLease>();
  readonly #queues = new Map<number, Queue>();
  readonly #sheets = new Map<number, Promise<ParSheet>>();
  readonly #running = new Set<Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(sql: Sql, nodes: RedisNodes, pool: Piscina, options: KeeperOptions) {
    this.#sql = sql;
    this.#nodes = nodes;
    this.#pool = pool;
    this.#options = options;
  }

  start(): void {
    const turn = (): void => {
      for (const queue of this.#queues.values()) this.#consider(queue);
      if (!this.#stopped) this.#timer = setTimeout(turn, TURN_MS);
    };
    turn();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await Promise.all(this.#running);
  }

  own(lease: CellLease): void {
    this.#leases.set(lease.cell, lease);
    this.learn(this.#options.gamesOfCell(lease.cell));
  }

  disown(cell: number): void {
    this.#leases.delete(cell);
    for (const queue of this.#queues.values()) {
      if (queue.lease.cell === cell) this.#queues.delete(queue.gameId);
    }
  }

  /** Games that are new or changed. */
  learn(games: readonly KeptGame[]): void {
    for (const game of games) {
      const lease = this.#leases.get(game.cell);
      const { gameId, parSheetId, prizeTable, sealedAt } = game;
      if (lease === undefined) continue;
      if (game.status === 'CLOSED') {
        // All its tickets are booked; whoever booked the last may not have removed the pool any more.
        this.#queues.delete(gameId);
        this.#nodes
          .cell(game.cell)
          .unlinkBlocks(gameId, [0])
          .catch((error) => this.#options.onError(error, gameId));
        continue;
      }
      let queue = this.#queues.get(game.gameId);
      if (queue === undefined) {
        queue = {
          gameId: game.gameId,
          partnerId: game.partnerId,
          lease,
          source: prizeTable === null ? { sheetId: parSheetId! } : { raffle: prizeTable },
          isSealing: prizeTable !== null && sealedAt === null,
          blocks: [],
          nextIndex: 0,
          leaseEnd: undefined,
          requested: 0,
          reserve: undefined,
          fellTo: undefined,
          making: false,
          notBefore: 0,
          pace: 0,
          seenAt: performance.now(),
        };
        this.#queues.set(game.gameId, queue);
      }
      queue.requested = game.blocksRequested;
      this.#consider(queue);
    }
  }

  /** The ledger has booked a game up to an index. */
  consumed(cell: number, games: readonly { gameId: number; nextIndex: number; count: number }[]): void {
    const now = performance.now();
    for (const { gameId, nextIndex, count } of games) {
      const queue = this.#queues.get(gameId);
      if (queue === undefined) continue;
      const seconds = Math.max(0.05, (now - queue.seenAt) / 1000);
      queue.pace = Math.max(count / seconds, queue.pace * 0.5 ** (seconds / PACE_HALF_LIFE_SECONDS));
      queue.seenAt = now;
      queue.nextIndex = Math.max(queue.nextIndex, nextIndex);
      const before = queue.blocks.length;
      while (queue.blocks.length > 0 && queue.blocks[0]!.toIndex <= queue.nextIndex) {
        const { fromIndex } = queue.blocks.shift()!;
        this.#nodes
          .cell(cell)
          .unlinkBlocks(gameId, [fromIndex])
          .catch((error) => this.#options.onError(error, gameId));
      }
      if (queue.blocks.length < before) this.#hasFallen(queue);
      this.#consider(queue);
    }
  }

  /** What is known of a cell's queues may be wrong: they are read again from the stores. */
  readAgain(cell: number): void {
    for (const queue of this.#queues.values()) {
      if (queue.lease.cell === cell) queue.leaseEnd = undefined;
    }
  }

  /** Queue depth by game; of a raffle, the tickets that are not booked. */
  depths(): QueueDepth[] {
    return [...this.#queues.values()].map(({ gameId, partnerId, lease, source, ...queue }) => ({
      gameId,
      cell: lease.cell,
      outcomes: Math.max(0, (queue.leaseEnd ?? queue.nextIndex) - queue.nextIndex),
      blocks: queue.blocks.length,
      minReadyBlocks: 'raffle' in source ? undefined : this.#options.minReadyBlocks(partnerId),
    }));
  }

  #consider(queue: Queue): void {
    if (
      this.#stopped ||
      queue.making ||
      this.#running.size >= MAKING_MAX ||
      performance.now() < queue.notBefore
    )
      return;
    if (queue.leaseEnd !== undefined && !this.#isLow(queue)) return;
    queue.making = true;
    const work = this.#fill(queue)
      .catch((error: unknown) => {
        // What is known of the queue may be wrong now: it is read again before the next block.
        queue.leaseEnd = undefined;
        queue.notBefore = performance.now() + RETRY_MS;
        this.#options.onError(error, queue.gameId);
      })
      .finally(() => {
        queue.making = false;
        this.#running.delete(work);
      });
    this.#running.add(work);
  }

  #isLow(queue: Queue): boolean {
    if ('raffle' in queue.source) return queue.leaseEnd === 0;
    const ready = (queue.leaseEnd ?? 0) - queue.nextIndex;
    return (
      queue.requested > 0 ||
      queue.blocks.length <= this.#options.minReadyBlocks(queue.partnerId) ||
      ready < 2 * BLOCK_SECONDS * queue.pace
    );
  }

  async #fill(queue: Queue): Promise<void> {
    if (queue.leaseEnd === undefined) {
      await this.#read(queue);
      this.#hasFallen(queue);
    }
    await this.#noteReserve(queue);
    while (!this.#stopped && this.#queues.get(queue.gameId) === queue && this.#isLow(queue)) {
      await this.#make(queue);
      await this.#noteReserve(queue);
    }
  }

  /** Takes note of blocks that are gone. A raffle has one pool, and no reserve. */
  #hasFallen(queue: Queue): void {
    if ('raffle' in queue.source) return;
    const ready = queue.blocks.length;
    if (ready < this.#options.minReadyBlocks(queue.partnerId))
      queue.fellTo = Math.min(ready, queue.fellTo ?? ready);
  }

  /** Notes in Postgres, where it turned, that the reserve fell or is back: partners are told of each fall once. */
  async #noteReserve(queue: Queue): Promise<void> {
    const { gameId, partnerId, lease, fellTo } = queue;
    const minReadyBlocks = this.#options.minReadyBlocks(partnerId);
    if (fellTo !== undefined) {
      if (queue.reserve !== 'low') {
        const fall = { gameId, partnerId, readyBlocks: fellTo, minReadyBlocks };
        const deliveries = await reserveFell(this.#sql, lease, fall);
        if (deliveries > 0) this.#options.onEvents(deliveries);
      }
      queue.reserve = 'low';
      queue.fellTo = undefined;
    }
    if (queue.reserve !== 'full' && !('raffle' in queue.source) && queue.blocks.length >= minReadyBlocks) {
      await reserveIsBack(this.#sql, lease, gameId);
      queue.reserve = 'full';
    }
  }

  /** Reads a queue from both stores, and loads what is leased and not loaded. */
  async #read(queue: Queue): Promise<void> {
    const { cell, token } = queue.lease;
    const store = this.#nodes.cell(cell);
    const [game, ends] = await Promise.all([
      store.findGame(queue.gameId),
      leaseEnds(this.#sql, [queue.gameId]),
    ]);
    const loadedEnd = game?.queueEnd ?? 0;
    queue.nextIndex = game?.nextIndex ?? 0;
    const blocks = await openBlocks(this.#sql, queue.gameId, loadedEnd);
    queue.blocks = [];
    for (const { fromIndex, toIndex, outcomes } of blocks) {
      if (outcomes !== null) {
        await store.loadBlock(token, queue.gameId, fromIndex, outcomes);
      }
      queue.blocks.push({ fromIndex, toIndex });
    }
    queue.leaseEnd = ends.get(queue.gameId) ?? 0;
    if (queue.leaseEnd > 0) await this.#open(queue);
    // Of what a worker before this one booked it may not have removed the last any more.
    const done = await bookedBlocks(this.#sql, queue.gameId, UNLINKED_ANEW);
    if (done.length > 0) await store.unlinkBlocks(queue.gameId, done);
  }

  /** Draws the next block of a slot game, or seals the whole pool of a raffle. */
  async #draw({ source, gameId, pace }: Queue, fromIndex: number): Promise<MadeBlock> {
    if ('raffle' in source) {
      const order: PoolOrder = { gameId, table: source.raffle };
      return this.#pool.run(order, { filename: this.#options.sealer });
    }
    const order: BlockOrder = {
      sheetId: source.sheetId,
      sheet: await this.#sheet(source.sheetId),
      gameId,
      fromIndex,
      count: Math.min(
        BLOCK_OUTCOMES_MAX,
        Math.max(BLOCK_OUTCOMES_MIN, 2 ** Math.ceil(Math.log2(Math.max(1, pace * BLOCK_SECONDS)))),
      ),
    };
    return this.#pool.run(order);
  }

  /** Notes that the pool of a raffle can be dealt from. */
  async #open(queue: Queue): Promise<void> {
    if (!queue.isSealing) return;
    await openRaffle(this.#sql, queue.gameId);
    queue.isSealing = false;
  }

  async #make(queue: Queue): Promise<void> {
    const started = performance.now();
    const { lease, gameId } = queue;
    const fromIndex = queue.leaseEnd!;
    const { onFailpoint } = this.#options;
    const block = await this.#draw(queue, fromIndex);
    onFailpoint('block.made');
    const count = block.outcomes.byteLength / OUTCOME_BYTES;
    const toIndex = fromIndex + count;
    await leaseBlock(this.#sql, lease, { gameId, fromIndex, toIndex, ...block });
    onFailpoint('block.leased');
    const outcomes = Buffer.from(block.outcomes.buffer, block.outcomes.byteOffset, block.outcomes.byteLength);
    await this.#nodes.cell(lease.cell).loadBlock(lease.token, gameId, fromIndex, outcomes);
    onFailpoint('block.loaded');
    queue.leaseEnd = toIndex;
    queue.blocks.push({ fromIndex, toIndex });
    await this.#open(queue);
    if (queue.requested > 0) {
      queue.requested -= 1;
      await blocksMade(this.#sql, gameId, 1);
    }
    this.#options.onMade({
      gameId,
      outcomes: count,
      makeSeconds: block.elapsedMs / 1000,
      totalSeconds: (performance.now() - started) / 1000,
    });
  }

  #sheet(sheetId: number): Promise<ParSheet> {
    let sheet = this.#sheets.get(sheetId);
    if (sheet === undefined) {
      sheet = sheetsOf(this.#sql, [sheetId]).then((sheets) => {
        const found = sheets.get(sheetId);
        if (found === undefined) throw new Error(`PAR sheet ${sheetId} is not in the database`);
        return found;
      });
      sheet.catch(() => this.#sheets.delete(sheetId));
      this.#sheets.set(sheetId, sheet);
    }
    return sheet;
  }
}
