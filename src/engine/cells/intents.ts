/**
 * Carries out what has an intent in Postgres, once for each requestId, for ever: adjustments, fundings.
 *
 *   intent on record (Postgres) ──new──────────────────────────> script (Redis) ──> done
 *     │ there is another one          │ there before                │ refused        │ lapsed
 *     └──> reused                     └──> booked? its answer       │                └──> numbered anew, tried again
 *                                                                   └──> intent withdrawn, in writing
 *
 * An intent lapses where an intent with its number, or a higher one, was refused in its cell. So a call that is still in the
 * network can't carry out what was refused and withdrawn.
 *
 * A request that was ended anywhere goes on when it is sent again: the intent is found, then what the ledger has of it, then
 * what Redis has that is not booked yet. Where none of them has anything, it is done now. CellClient calls the script
 * (lua/include/intents.lua).
 */
import { setTimeout as pause } from 'node:timers/promises';
import { INTENT_REPLY } from '../../domain/layouts.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { CellClient } from './cellClient.js';
import type { Confirmations } from './confirmations.js';
import type { CellArgument, CellFailure, CellOperation, CellRequest } from './operation.js';

/** An intent as it is on record. */
export interface Recorded {
  readonly cell: number;
  /** It was made by this call: nothing has come of it yet. */
  readonly isNew: boolean;
  /** It is so old that Redis may have forgotten what came of it. */
  readonly isOld: boolean;
}

export interface IntentReply {
  /** SPIN_STATUS. */
  readonly status: number;
  /** Of the entry or note; 0 where nothing was booked. */
  readonly entryId: bigint;
  /** The balance, or budget, after it, micro-USD. */
  readonly afterMicros: number;
}

export type IntentOutcome = { readonly kind: 'reply'; readonly reply: IntentReply } | CellFailure;

/** A request of which there is one intent. `Done`: what it is answered with. `Refusal`: why it is not done. */
export interface IntendedRequest<Intent extends Recorded, Done extends object, Refusal extends string> {
  /** Puts the intent on record, or finds it: `done` where the ledger has it. */
  record(): Promise<{ readonly intent: Intent } | { readonly done: Done } | 'reused' | 'withdrawn'>;
  execute(intent: Intent, deadline: number): Promise<IntentOutcome>;
  doneBy(intent: Intent, reply: IntentReply): Done;
  withdraw(intent: Intent, refusal: string): Promise<void>;
  /** Gives an intent that lapsed the next number, unless it was withdrawn or numbered anew meanwhile. */
  renumber(intent: Intent): Promise<void>;
  /** By status: as the audit log names it, and as it is answered. Without a name the intent stays on record. */
  readonly refusals: Readonly<
    Record<number, readonly [name: string | undefined, answer: Refusal | 'refused']>
  >;
}

/** `reused`: the requestId stands for another intent. `refused`: nothing was done. `unknown`: it may have been done. */
export type IntentAnswer<Done, Refusal> = Done | Refusal | 'reused' | 'refused' | 'unknown';

export interface IntentsOptions {
  /** Id of the newest entry in a cell's outbox; 0: there is none. */
  readonly newestInOutbox: (cell: number) => Promise<bigint>;
  readonly confirmations: Pick<Confirmations, 'cameTo'>;
  /** How long the stores are tried, all tries included. */
  readonly deadlineMs: number;
  readonly onError: (error: unknown, cell: number) => void;
}

/** What those who have intents carried out need besides. */
export interface IntentOptions extends IntentsOptions {
  readonly cells: Pick<CellClient, 'execute'>;
  /** A change is answered only once the ledger has it. */
  readonly waitsForLedger: boolean;
}

const RETRY_MS = 50;

/** One request under way. */
interface Try {
  readonly deadline: number;
  mayHaveRun: boolean;
}

export class Intents {
  readonly #options: IntentsOptions;

  constructor(options: IntentsOptions) {
    this.#options = options;
  }

  /** @throws what Postgres throws, where nothing was done yet; Error where the script answers what it never does. */
  async carryOut<Intent extends Recorded, Done extends object, Refusal extends string>(
    request: IntendedRequest<Intent, Done, Refusal>,
  ): Promise<IntentAnswer<Done, Refusal>> {
    const under: Try = { deadline: performance.now() + this.#options.deadlineMs, mayHaveRun: false };
    while (performance.now() < under.deadline) {
      let found: Awaited<ReturnType<typeof request.record>> | 'late';
      try {
        found = await this.#find(request, under);
      } catch (error) {
        if (!under.mayHaveRun) throw error;
        this.#options.onError(error, -1);
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
   * The intent, or what the ledger has of it. What Redis may have forgotten of an old one is in the ledger once that has all that the
   * cell has now. `late`: that takes too long.
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
    const { newestInOutbox, confirmations, onError } = this.#options;
    try {
      const newest = await newestInOutbox(cell);
      return await confirmations.cameTo(cell, newest, deadline - performance.now());
    } catch (error) {
      onError(error, cell);
      return false;
    }
  }

  /**
   * Has an intent carried out. `epochMoved`: the cell was rebuilt, or is being, and the intent must be read again.
   * `lapsed`: it has a new number, and must be read again.
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
    if (refusal === undefined) throw new Error(`An intent came to status ${reply.status}`);
    const [name, answer] = refusal;
    if (name === undefined) return answer;
    // Where this fails the intent stays on record and has lapsed: the request's repetition decides it anew.
    await request.withdraw(intent, name).catch((error: unknown) => this.#options.onError(error, intent.cell));
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
      this.#options.onError(error, intent.cell);
      return failed(under);
    }
  }
}

const failed = ({ mayHaveRun }: Try): 'unknown' | 'refused' => (mayHaveRun ? 'unknown' : 'refused');

/** An operation that decides an intent: what it came to is kept with its requestId. */
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
