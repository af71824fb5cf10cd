/**
 * The life of a spin between its route and its answer, station by station. Each station is an interface in
 * this file; src/app/roles/dealing.ts connects the implementations.
 *
 *   route          src/api/spins/spin.ts      checks key, body, game and wager
 *     │ SpinPath.submit                       1. CatalogFreshness: may the key have been revoked since?
 *     │                                       2. ExhaustedWindows: is the rate limit known to be used up?
 *     │ CellClient.submit                     3. the queue of the partner's cell
 *     │ CellQueue.submit                      4. its waiting list, where partners take turns (WaitingList)
 *     ▼
 *   call           src/engine/cells/cellQueue.ts, once its QueueGroup sends and a slot is free
 *     │ SendPermission, CellEpochs            5. may this process send to the cell, and under which epoch?
 *     │ the codec of deal.ts                  6. SpinRules: may the spin still be dealt?
 *     │                                          RequestIdFilters: may the ledger have its request id?
 *     │                                          RequestIdReach: the watermark of these filters
 *     │ CellScripts or ReplicatedScripts      7. one call of lua/deal.lua, repeated until the deadline;
 *     │                                          deal.ts decodes the reply
 *     ▼
 *   answer
 *     │ AnsweredSpins, Confirmations          8. the spin is remembered as answered; raffle tickets and
 *     │                                          ACK=ledger wait for the commit
 *     ▼ resolve or fail                       9. AnsweredIds: the next call presents the newest entry
 *   route          src/api/spins/spin.ts, src/api/server/reply.ts
 *     └─> SpinPath.submit again if the partner moves to another cell, or after a look-up in the ledger
 *
 * A request that only counts against a rate limit window takes the same path ({@link CountRequest}).
 */
import type { ReplicatedReply } from '../redis/replicatedCalls.js';
import type { CellCall } from '../redis/scripts.js';
import type { AnsweredIds } from './answeredIds.js';
import type { Confirmations } from './confirmations.js';
import { type DealCommand, type DealOperation, limitedResult } from './deal.js';
import type { ExhaustedWindows } from './exhaustedWindows.js';
import type { CellFailure } from './operation.js';

/**
 * Tells whether this process's catalog of partners, keys and games may be stale
 * (src/engine/catalog/staleness.ts).
 */
export interface CatalogFreshness {
  /**
   * True if spins are refused because a key or a switch may have changed since the last read of the catalog.
   */
  readonly isBehind: boolean;
  /**
   * True if this process was paused and has not read the catalog since. A single read brings the catalog up
   * to date.
   */
  readonly isBlind: boolean;
  /** Reads the catalog once. Resolves whether or not the read succeeds. */
  looked(): Promise<void>;
}

/**
 * Checks whether this process may send calls to a cell: its Redis must be durable, and this build must
 * support the data format in use.
 */
export interface SendPermission {
  maySend(cell: number): boolean;
}

export interface CellEpochs {
  /** Returns the epoch of a cell; undefined as long as the epoch has not been read. */
  epochOf(cell: number): string | undefined;
  /** Reads the epochs again, because a cell has rejected a call because of its epoch. */
  refresh(): Promise<void>;
}

/** The Redis server that holds a cell. All cells on a server share one object of this type. */
export interface CellServer {
  readonly isReady: boolean;
  /** Id of the current server run; undefined while the server is not connected. */
  readonly serverId: string | undefined;
}

export interface CellServers {
  of(cell: number): CellServer;
  /** Resolves when the cell's server becomes reachable, or after the timeout in ms. */
  whenReady(cell: number, timeoutMs: number): Promise<void>;
  /** Sends all commands that the callback issues in one write. */
  pipelined(calls: () => void): void;
}

/** Calls the script lua/<operation>.lua (src/engine/redis/scripts.ts). */
export interface CellScripts {
  /**
   * @throws EpochError, ClockError, RefusedError or NotSentError if the call did nothing. After any other
   * error the call may have been executed.
   */
  command(operation: string, call: CellCall): Promise<Buffer>;
}

/**
 * Script calls under `ACK=replica`. If the replicas lack a call's writes, the reply is held back until the
 * ledger has the entry.
 */
export interface ReplicatedScripts {
  /** @throws the same errors as {@link CellScripts} */
  replicated(operation: string, call: CellCall): Promise<ReplicatedReply>;
  /** True if the replicas have acknowledged the newest script call. */
  isCurrent(cell: number): boolean;
}

/** Filters of the request ids that Redis has released (src/engine/requestIds/requestIds.ts). */
export interface RequestIdReach {
  /**
   * Watermark of the filters: the ledger entry up to which they include the released ids of a cell, as 8
   * bytes, little endian.
   */
  reachOf(cell: number): Buffer;
  /** Loads the filters of recently released request ids. */
  refresh(): Promise<void>;
}

export interface CallObserver {
  onCall(operation: string, size: number, seconds: number): void;
  onError(error: unknown, cell: number, size: number): void;
}

export interface QueueLimits {
  /** Maximum time to wait for a response of Redis, including retries, in ms. */
  readonly deadlineMs: number;
  /** Maximum number of waiting commands for one operation of a cell. Further commands are refused. */
  readonly waitingMax: number;
}

/** Services of the process that the cell queues depend on. */
export interface CellStations {
  readonly permission: SendPermission;
  readonly epochs: CellEpochs;
  readonly servers: CellServers;
  readonly scripts: CellScripts;
  /** Calls that wait for replicas. Absent if spins are answered without waiting for replicas. */
  readonly replication?: ReplicatedScripts;
  /** Filters of released request ids. Absent if no operation of this process binds request ids. */
  readonly requestIds?: RequestIdReach;
  /**
   * Newest answered entries. Absent if this process does not check whether Redis has lost acknowledged
   * entries.
   */
  readonly answered?: AnsweredIds;
  readonly confirmations: Pick<Confirmations, 'confirmed' | 'isStalled'>;
  readonly observer: CallObserver;
  readonly limits: QueueLimits;
}

interface CellQueues {
  submit(operation: DealOperation, command: DealCommand): void;
}

const NOT_RUN: CellFailure = { kind: 'refused', mayHaveRun: false };

/** Entry point of every spin, and of every counted request, on its way to Redis. */
export class SpinPath {
  constructor(
    private readonly freshness: CatalogFreshness,
    private readonly exhausted: ExhaustedWindows,
    private readonly cells: CellQueues,
    private readonly deal: DealOperation,
    /** Maximum time from the arrival of a request to its answer, in ms. */
    readonly deadlineMs: number,
  ) {}

  /** Submits a spin or a counted request. Exactly one of its `resolve` and `fail` is called, once. */
  submit(command: DealCommand): void {
    if (!this.freshness.isBehind) this.#send(command);
    else
      this.onceFresh(
        () => {
          if (command.isGone?.()) {
            command.fail(NOT_RUN);
            return;
          }
          command.judgeAgain?.();
          this.#send(command);
        },
        () => command.fail(NOT_RUN),
      );
  }

  #send(command: DealCommand): void {
    const limitedAtMs = this.exhausted.refusedAt(command.partner, command.kind);
    if (limitedAtMs === undefined) this.cells.submit(this.deal, command);
    else command.resolve(limitedResult(limitedAtMs));
  }

  /**
   * Calls `then` if the catalog is known to be fresh, and `refuse` if it may lack a revocation. A process
   * that was paused reads the catalog once before it refuses, so `then` must judge again what was judged
   * before.
   */
  onceFresh(then: () => void, refuse: () => void): void {
    if (!this.freshness.isBehind) then();
    else if (!this.freshness.isBlind) refuse();
    else
      void this.freshness.looked().then(() => {
        if (this.freshness.isBehind) refuse();
        else then();
      });
  }
}
