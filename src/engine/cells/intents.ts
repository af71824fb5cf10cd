/**
 * Carries out intents that are on record in Postgres, exactly once for each request id and without a time
 * limit: adjustments and fundings.
 *
 *   intent on record (Postgres) ──new─────────────> script (Redis) ──> done
 *     │ other intent with the id    │ same intent     │ refused        │ lapsed
 *     └──> reused                   └──> committed?   │                └──> renumbered, tried again
 *                                        its answer   └──> intent withdrawn, audit log entry
 *
 * An intent lapses if an intent with the same or a higher number was refused in its cell. A call that is
 * still in the network therefore can't carry out an intent that was refused and withdrawn.
 *
 * A request that was interrupted at any point is completed when it is sent again. The request finds the
 * intent, then the result in the ledger, then a result in Redis that is not committed yet. If none of these
 * exists, the intent is carried out now. CellClient calls the script (lua/include/intents.lua).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { INTENT_REPLY } from '../../domain/layouts.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { CellClient } from './cellClient.js';
import type { Confirmations } from './confirmations.js';
import type { CellArgument, CellFailure, CellOperation, CellRequest } from './operation.js';

/** An intent that is on record in Postgres. */
export interface Recorded {
  readonly cell: number;
  /** True if this call recorded the intent, so that no result can exist yet. */
  readonly isNew: boolean;
  /** True if the intent is so old that Redis may already have dropped its decision on the intent. */
  readonly isOld: boolean;
}

export interface IntentReply {
  readonly status: number;
  /** Id of the ledger entry or outbox note that the intent made; 0 if none was written. */
  readonly entryId: bigint;
  /** The balance or budget after the change, in micro-USD. */
  readonly afterMicros: number;
}

export type IntentOutcome = { readonly kind: 'reply'; readonly reply: IntentReply } | CellFailure;

/**
 * A request that is carried out through exactly one intent. The type `Done` is its successful result, and
 * `Refusal` the reasons for refusing it.
 */
export interface IntendedRequest<Intent extends Recorded, Done extends object, Refusal extends string> {
  /** Records the intent, or finds the one on record. Returns `done` if the ledger already has the result. */
  record(): Promise<{ readonly intent: Intent } | { readonly done: Done } | 'reused' | 'withdrawn'>;
  execute(intent: Intent, deadline: number): Promise<IntentOutcome>;
  doneBy(intent: Intent, reply: IntentReply): Done;
  withdraw(intent: Intent, refusal: string): Promise<void>;
  /** Gives a lapsed intent the next number, unless it has been withdrawn or renumbered in the meantime. */
  renumber(intent: Intent): Promise<void>;
  /**
   * By status: the name of the refusal in the audit log, and the result for the caller. If the refusal has no
   * name, the intent stays on record.
   */
  readonly refusals: Readonly<
    Record<number, readonly [name: string | undefined, answer: Refusal | 'refused']>
  >;
}

/**
 * `reused`: the request id belongs to another intent. `refused`: nothing was done. `unknown`: the change may
 * have been made.
 */
export type IntentAnswer<Done, Refusal> = Done | Refusal | 'reused' | 'refused' | 'unknown';

export interface IntentsOptions {
  /** Returns the id of the newest entry in a cell's outbox, or 0 if the outbox is empty. */
  readonly newestInOutbox: (cell: number) => Promise<bigint>;
  readonly confirmations: Pick<Confirmations, 'cameTo'>;
  /** Maximum time for the work on an intent in Postgres and Redis, including retries, in ms. */
  readonly deadlineMs: number;
  readonly onError: (error: unknown, cell: number) => void;
}

export interface IntentOptions extends IntentsOptions {
  readonly cells: Pick<CellClient, 'execute'>;
  readonly waitsForLedger: boolean;
}

const RETRY_MS = 50;

interface Try {
  readonly deadline: number;
  mayHaveRun: boolean;
}

export class Intents {
  constructor(private readonly options: IntentsOptions) {}

  /**
   * @throws the error of Postgres if nothing has been done yet; Error if the script returns an unexpected
   * status
   */
  async carryOut<Intent extends Recorded, Done extends object, Refusal extends string>(
    request: IntendedRequest<Intent, Done, Refusal>,
  ): Promise<IntentAnswer<Done, Refusal>> {
    const under: Try = { deadline: performance.now() + this.options.deadlineMs, mayHaveRun: false };
    while (performance.now() < under.deadline) {
      let found: Awaited<ReturnType<typeof request.record>> | 'late';
      try {
        found = await this.#find(request, under);
      } catch (error) {
        if (!under.mayHaveRun) throw error;
        this.options.onError(error, -1);
        return 'unknown';
      }
      if (found === 'withdrawn') continue;
      if (found === 'late') return failed(under);
      if (found === 'reused') return found;
      if ('done' in found) return found.done;
      const answer = await this.#send(request, found.intent, under);
      if (answer === 'epochMoved') await pause(RETRY_MS);
      else if (answer !== 'lapsed') return answer;
    }
    return failed(under);
  }

  /**
   * Finds the intent of a request, or its committed result. Redis may have dropped the result of an old
   * intent. Such a result is in the ledger once everything in the cell's outbox has been committed, so the
   * search waits for that commit. Returns `late` if the wait exceeds the deadline.
   */
  async #find<Intent extends Recorded, Done extends object>(
    { record }: Pick<IntendedRequest<Intent, Done, string>, 'record'>,
    { deadline }: Try,
  ): Promise<Awaited<ReturnType<typeof record>> | 'late'> {
    const found = await record();
    if (typeof found === 'string' || 'done' in found) return found;
    if (found.intent.isNew || !found.intent.isOld) return found;
    return (await this.#isCaughtUp(found.intent.cell, deadline)) ? record() : 'late';
  }

  async #isCaughtUp(cell: number, deadline: number): Promise<boolean> {
    const { newestInOutbox, confirmations, onError } = this.options;
    try {
      const newest = await newestInOutbox(cell);
      return await confirmations.cameTo(cell, newest, deadline - performance.now());
    } catch (error) {
      onError(error, cell);
      return false;
    }
  }

  /**
   * Sends an intent to the cell. Returns `epochMoved` if the cell was rebuilt or is being rebuilt, and
   * `lapsed` if the intent got a new number. In both cases the intent must be read again.
   */
  async #send<Intent extends Recorded, Done extends object, Refusal extends string>(
    request: IntendedRequest<Intent, Done, Refusal>,
    intent: Intent,
    under: Try,
  ): Promise<IntentAnswer<Done, Refusal> | 'epochMoved' | 'lapsed'> {
    const outcome = await request.execute(intent, under.deadline);
    if (outcome.kind !== 'reply') {
      under.mayHaveRun ||= outcome.mayHaveRun;
      return outcome.kind === 'epochMoved' ? 'epochMoved' : failed(under);
    }
    const { reply } = outcome;
    if (reply.status === SPIN_STATUS.conflict) return 'reused';
    if (reply.status === SPIN_STATUS.dealt) return request.doneBy(intent, reply);
    if (reply.status === SPIN_STATUS.lapsed) return this.#renumber(request, intent, under);
    const refusal = request.refusals[reply.status];
    if (refusal === undefined)
      throw new Error(`The script returned the unexpected status ${reply.status} for an intent`);
    const [name, answer] = refusal;
    if (name === undefined) return answer;
    // If the withdrawal fails, the intent stays on record although it has lapsed. When the request is
    // repeated, the cell decides the intent again.
    await request.withdraw(intent, name).catch((error: unknown) => this.options.onError(error, intent.cell));
    return answer;
  }

  async #renumber<Intent extends Recorded>(
    { renumber }: Pick<IntendedRequest<Intent, object, string>, 'renumber'>,
    intent: Intent,
    under: Try,
  ): Promise<'lapsed' | 'refused' | 'unknown'> {
    try {
      await renumber(intent);
      return 'lapsed';
    } catch (error) {
      this.options.onError(error, intent.cell);
      return failed(under);
    }
  }
}

const failed = ({ mayHaveRun }: Try): 'unknown' | 'refused' => (mayHaveRun ? 'unknown' : 'refused');

/**
 * Defines a cell operation that decides an intent. The result of the decision is kept with the intent's
 * request id.
 */
export const intentOperation = <Request extends CellRequest & { readonly partnerId: number }>(
  name: string,
  slots: number,
  encode: (request: Request) => CellArgument[],
): CellOperation<Request, IntentReply> => ({
  name,
  batchMax: 1,
  slots,
  overlapMin: 1,
  isStored: false,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => encode(request!),
    decode: (answer) => {
      const { status, core } = INTENT_REPLY.read(answer);
      const { id: entryId, balanceMicros: afterMicros } = core;
      return {
        replies: [{ status, entryId, afterMicros }],
        entryId: () => entryId,
      };
    },
  }),
});
