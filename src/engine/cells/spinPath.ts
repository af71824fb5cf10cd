/**
 * The life of a spin between its route and its answer, station by station. src/app/roles/dealing.ts connects
 * the stations.
 *
 *   route          src/api/spins/spin.ts      checks key, body, game and wager
 *     │ SpinPath.submit                       1. Staleness: may the key have been revoked since?
 *     │                                       2. ExhaustedWindows: is the rate limit known to be used up?
 *     │ CellClient.submit                     3. the queue of the partner's cell
 *     │ CellQueue.submit                      4. its waiting list, where partners take turns (WaitingList)
 *     ▼
 *   call           src/engine/cells/cellQueue.ts, once its QueueGroup sends and a slot is free
 *     │ CellStations: permission, Catalog     5. may this process send to the cell, and under which epoch?
 *     │ the codec of deal.ts                  6. SpinRules: may the spin still be dealt?
 *     │                                          RequestIds: may the ledger have its request id?
 *     │                                          and up to which entry do the filters have them?
 *     │ Scripts.command or .replicated        7. one call of lua/deal.lua, repeated until the deadline;
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
import type { Catalog } from '../catalog/catalog.js';
import type { Staleness } from '../catalog/staleness.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { Scripts } from '../redis/scripts.js';
import type { RequestIds } from '../requestIds/requestIds.js';
import type { AnsweredIds } from './answeredIds.js';
import type { Confirmations } from './confirmations.js';
import { type DealCommand, type DealOperation, limitedResult } from './deal.js';
import type { ExhaustedWindows } from './exhaustedWindows.js';
import type { CellFailure } from './operation.js';

/** What the cell queues need from the process. */
export interface CellStations {
  /** A process may send if the cell's Redis is durable, and if this build supports the data format in use. */
  readonly permission: { maySend(cell: number): boolean };
  readonly epochs: Pick<Catalog, 'epochOf' | 'refresh'>;
  readonly servers: Pick<RedisNodes, 'of' | 'whenReady' | 'pipelined'>;
  readonly scripts: Pick<Scripts, 'command'>;
  /**
   * Calls under `ACK=replica`, and whether the replicas have acknowledged the newest one. If they lack a
   * call's writes, its reply is held back until the ledger has the entry.
   */
  readonly replication?: Pick<Scripts, 'replicated'> & { isCurrent(cell: number): boolean };
  /** Filters of released request ids. Absent if no operation of this process binds request ids. */
  readonly requestIds?: Pick<RequestIds, 'reachOf' | 'refresh'>;
  /**
   * Newest answered entries. Absent if this process does not check whether Redis has lost acknowledged
   * entries.
   */
  readonly answered?: AnsweredIds;
  readonly confirmations: Pick<Confirmations, 'confirmed' | 'isStalled'>;
  readonly observer: {
    onCall(operation: string, size: number, seconds: number): void;
    onError(error: unknown, cell: number, size: number): void;
  };
  readonly limits: {
    /** Maximum time to wait for a response of Redis, including retries, in ms. */
    readonly deadlineMs: number;
    /** Maximum number of waiting commands for one operation of a cell. Further commands are refused. */
    readonly waitingMax: number;
  };
}

const NOT_RUN: CellFailure = { kind: 'refused', mayHaveRun: false };

/** Entry point of every spin, and of every counted request, on its way to Redis. */
export class SpinPath {
  constructor(
    private readonly freshness: Staleness,
    private readonly exhausted: ExhaustedWindows,
    private readonly cells: { submit(operation: DealOperation, command: DealCommand): void },
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
