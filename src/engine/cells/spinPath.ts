/**
 * The life of a spin between its route and its answer, station by station. Each station is an interface here;
 * src/app/roles/dealing.ts connects those who keep them.
 *
 *   route          src/api/spins/spin.ts      key, body, game and wager are judged
 *     │ SpinPath.submit                       1. CatalogFreshness: could the key have been revoked since?
 *     │                                       2. ExhaustedWindows: does Redis need to be asked at all?
 *     │ CellClient.submit                     3. the queue of the partner's cell
 *     │ CellQueue.submit                      4. a place in it: partners take turns (WaitingList)
 *     ▼
 *   call           src/engine/cells/cellQueue.ts, once its QueueGroup sends and a slot is free, with all spins that wait
 *     │ SendPermission, CellEpochs            5. may this process send to the cell, and under which epoch?
 *     │ the codec of deal.ts                  6. SpinRules: may the spin still be dealt? RequestIdFilters: may the ledger know its id?
 *     │                                          RequestIdReach: how far do these filters reach?
 *     │ CellScripts or ReplicatedScripts      7. one call of lua/deal.lua, repeated until the deadline; deal.ts reads the reply
 *     ▼
 *   answer
 *     │ AnsweredSpins, Confirmations          8. remembered by name; raffles and ACK=ledger: held until the ledger has it
 *     ▼ resolve or fail                       9. AnsweredIds: its newest entry goes along with the next call
 *   route          src/api/spins/spin.ts, src/api/server/reply.ts
 *     └─> SpinPath.submit again where the partner moves to another cell, or where the ledger was asked for the id
 *
 * A request that only counts against a window takes the same way ({@link CountRequest}).
 */
import type { ReplicatedReply } from '../redis/replicatedCalls.js';
import type { CellCall } from '../redis/scripts.js';
import type { AnsweredIds } from './answeredIds.js';
import type { Confirmations } from './confirmations.js';
import { type DealCommand, type DealOperation, limitedResult } from './deal.js';
import type { ExhaustedWindows } from './exhaustedWindows.js';
import type { CellFailure } from './operation.js';

/** Whether what this process knows of partners, keys and games may be old (src/engine/catalog/staleness.ts). */
export interface CatalogFreshness {
  /** True: spins are refused, because a key or a switch may have changed since. */
  readonly isBehind: boolean;
  /** True: this process was paused, and has not read the catalog since. One look brings it up to date. */
  readonly isBlind: boolean;
  /** Looks once, and resolves whatever the look found. */
  looked(): Promise<void>;
}

/** Whether this process may send anything to a cell now: its store is durable, and the format that is written is known. */
export interface SendPermission {
  maySend(cell: number): boolean;
}

/** The generations of the cells' data (src/engine/catalog/catalog.ts). */
export interface CellEpochs {
  /** Undefined while it is not known. */
  epochOf(cell: number): string | undefined;
  /** Reads the epochs again, after a cell has refused a call for its epoch. */
  refresh(): Promise<void>;
}

/** The server that holds a cell: the same object for all of its cells. */
export interface CellServer {
  /** It can be reached now. */
  readonly isReady: boolean;
  /** Which run of the server is reached; undefined: none. */
  readonly serverId: string | undefined;
}

/** The Redis servers of the cells (src/engine/redis/nodes.ts). */
export interface CellServers {
  of(cell: number): CellServer;
  /** Resolves once the cell's server can be reached, or after the milliseconds. */
  whenReady(cell: number, timeoutMs: number): Promise<void>;
  /** What is called in there leaves in one write. */
  pipelined(calls: () => void): void;
}

/** Calls lua/<operation>.lua (src/engine/redis/scripts.ts). */
export interface CellScripts {
  /** @throws EpochError, ClockError, RefusedError, NotSentError: the call did nothing. Any other error: it may have been done. */
  command(operation: string, call: CellCall): Promise<Buffer>;
}

/** Calls of `ACK=replica`. A reply that the replicas lack is answered once the ledger has its entry. */
export interface ReplicatedScripts {
  /** @throws as {@link CellScripts} */
  replicated(operation: string, call: CellCall): Promise<ReplicatedReply>;
  /** The replicas have acknowledged the newest call. */
  isCurrent(cell: number): boolean;
}

/** The filters of the request ids that Redis holds no more (src/engine/requestIds/requestIds.ts). */
export interface RequestIdReach {
  /** The ledger entry up to which the filters have the ids of a cell, 8 bytes, little endian. */
  reachOf(cell: number): Buffer;
  /** Reads the filters of the ids that were released since. */
  refresh(): Promise<void>;
}

/** What is counted and logged of the calls. */
export interface CallObserver {
  onCall(operation: string, size: number, seconds: number): void;
  onError(error: unknown, cell: number, size: number): void;
}

export interface QueueLimits {
  /** How long an answer of the store is waited for, all tries included, ms. */
  readonly deadlineMs: number;
  /** Commands that may wait for one operation of a cell; more are refused. */
  readonly waitingMax: number;
}

/** What the queues of the cells ask of the rest of the process. */
export interface CellStations {
  readonly permission: SendPermission;
  readonly epochs: CellEpochs;
  readonly servers: CellServers;
  readonly scripts: CellScripts;
  /** Absent: what the store has is answered. */
  readonly replication?: ReplicatedScripts;
  /** Absent: no operation of this process binds request ids. */
  readonly requestIds?: RequestIdReach;
  /** Absent: a Redis that loses what it acknowledged is served from all the same. */
  readonly answered?: AnsweredIds;
  readonly confirmations: Pick<Confirmations, 'confirmed' | 'isStalled'>;
  readonly observer: CallObserver;
  readonly limits: QueueLimits;
}

/** The queues of the cells (cellClient.ts). */
interface CellQueues {
  submit(operation: DealOperation, command: DealCommand): void;
}

const NOT_RUN: CellFailure = { kind: 'refused', mayHaveRun: false };

/** Where every spin, and every request that counts, begins its way to Redis. */
export class SpinPath {
  readonly #freshness: CatalogFreshness;
  readonly #exhausted: ExhaustedWindows;
  readonly #cells: CellQueues;
  readonly #deal: DealOperation;

  constructor(
    freshness: CatalogFreshness,
    exhausted: ExhaustedWindows,
    cells: CellQueues,
    deal: DealOperation,
  ) {
    this.#freshness = freshness;
    this.#exhausted = exhausted;
    this.#cells = cells;
    this.#deal = deal;
  }

  /** Submits a spin or a counted request. Exactly one of its `resolve` and `fail` is called, once. */
  submit(command: DealCommand): void {
    if (this.#freshness.isBehind) {
      this.#onceFresh(command);
      return;
    }
    const limitedAtMs = this.#exhausted.refusedAt(command.partner, command.kind);
    if (limitedAtMs === undefined) this.#cells.submit(this.#deal, command);
    else command.resolve(limitedResult(limitedAtMs));
  }

  /** The key of the request may have been revoked since. A process that was paused looks once before it refuses. */
  #onceFresh(command: DealCommand): void {
    if (!this.#freshness.isBlind) {
      command.fail(NOT_RUN);
      return;
    }
    void this.#freshness.looked().then(() => {
      if (this.#freshness.isBehind) command.fail(NOT_RUN);
      else this.submit(command);
    });
  }
}
