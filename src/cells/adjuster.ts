/**
 * Adjusts a player's balance, once for each requestId, for ever.
 *
 *   intent on record (Postgres) ──new──────────────────────────> script (Redis) ──> done
 *     │ there is another one          │ there before                │ refused
 *     └──> reused                     └──> booked? its answer       └──> intent withdrawn, in writing
 *
 * Ended anywhere, the same request goes on: the intent is found, then what the ledger has of it, then what Redis has that
 * is not booked yet. Where nothing of it is anywhere it is done now. Like a spin, a call whose answer did not come is made
 * again until the deadline; what is unknown then is said to be unknown.
 */
import type { Adjustment, Intent } from '../postgres/adjustments.js';
import type { Store } from '../postgres/store.js';
import { SPIN_STATUS } from '../redis/records.js';
import { EpochError, NotSentError, RefusedError } from '../redis/scriptErrors.js';
import type { AdjustCall, AdjustReply } from '../redis/scripts.js';
import { type Dealt, within } from './batcher.js';

/** The player's partner, as far as it matters to an adjustment. */
export interface AdjustedPartner {
  readonly openingBalanceMicros: number;
  readonly enforcesBalance: boolean;
}

/**
 * `reused`: the requestId stands for another adjustment. `insufficient`, `overflow`: the balance would be below zero, or
 * beyond what a balance may be. `refused`: nothing was done. `unknown`: it may have been done.
 */
export type Adjusted =
  | { readonly entryId: bigint; readonly balanceMicros: number }
  | 'reused'
  | 'insufficient'
  | 'overflow'
  | 'refused'
  | 'unknown';

export interface AdjusterOptions {
  readonly store: Pick<Store, 'recordAdjustment' | 'withdrawAdjustment' | 'findAdjustment' | 'cellCursor'>;
  readonly call: (call: AdjustCall) => Promise<AdjustReply>;
  /** Id of the newest entry in a cell's outbox; 0: there is none. */
  readonly newestInOutbox: (cell: number) => Promise<bigint>;
  /** The cell's store keeps what it acknowledges. */
  readonly isDurable: (cell: number) => boolean;
  readonly isReady: (cell: number) => boolean;
  /** Resolves once the store can be reached, or after the milliseconds. */
  readonly whenReady: (cell: number, timeoutMs: number) => Promise<void>;
  readonly serverOf: (cell: number) => string | undefined;
  /** An adjustment is answered only once the ledger has it. */
  readonly waitsForLedger: boolean;
  /** As for spins (batcher.ts). */
  readonly booked: (cell: number, dealt: Dealt, id: bigint) => Promise<boolean>;
  /** How long the stores are tried, all tries together. */
  readonly deadlineMs: number;
  readonly onError: (error: unknown, cell: number) => void;
}

/** What the script refuses, as the audit log names it and as it is answered. */
const REFUSALS: Readonly<Record<number, readonly [name: string, answer: Adjusted]>> = {
  [SPIN_STATUS.insufficientBalance]: ['insufficientBalance', 'insufficient'],
  [SPIN_STATUS.overflow]: ['overflow', 'overflow'],
  [SPIN_STATUS.outboxFull]: ['outboxFull', 'refused'],
};
const RETRY_MS = 50;

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, RETRY_MS));

/** One request under way. */
interface Try {
  readonly deadline: number;
  mayHaveRun: boolean;
}

export class Adjuster {
  readonly #options: AdjusterOptions;

  constructor(options: AdjusterOptions) {
    this.#options = options;
  }

  /** @throws what Postgres throws, where nothing was done yet. */
  async adjust(actor: string, wanted: Adjustment, partner: AdjustedPartner): Promise<Adjusted> {
    const { store, onError } = this.#options;
    const under: Try = { deadline: performance.now() + this.#options.deadlineMs, mayHaveRun: false };
    const failed = (): Adjusted => (under.mayHaveRun ? 'unknown' : 'refused');
    let isSecond = false;
    while (performance.now() < under.deadline) {
      let intent: Intent | 'reused';
      try {
        intent = await store.recordAdjustment(actor, wanted);
        if (intent === 'reused') return 'reused';
        if (!intent.isNew) {
          if (intent.isOld && !(await this.#isCaughtUp(intent.cell, under))) return failed();
          const booked = await store.findAdjustment(wanted.partnerId, wanted.requestId);
          if (booked !== undefined) return { entryId: booked.id, balanceMicros: booked.balanceMicros };
        }
      } catch (error) {
        if (!under.mayHaveRun) throw error;
        onError(error, -1);
        return 'unknown';
      }
      const serverId = this.#options.serverOf(intent.cell);
      let reply: AdjustReply | undefined;
      try {
        reply = await this.#send(intent, partner, under);
      } catch (error) {
        if (!(error instanceof EpochError)) throw error;
        // The cell was rebuilt, or is being: the intent is read again, for the epoch that follows.
        onError(error, intent.cell);
        await pause();
        continue;
      }
      if (reply === undefined) return failed();
      if (reply.status === SPIN_STATUS.conflict) return 'reused';
      if (reply.status === SPIN_STATUS.dealt) {
        const { entryId, balanceMicros } = reply;
        const dealt = { epoch: intent.epoch, serverId };
        if (this.#options.waitsForLedger && !(await this.#options.booked(intent.cell, dealt, entryId)))
          return 'unknown';
        return { entryId, balanceMicros };
      }
      const refusal = REFUSALS[reply.status];
      if (refusal === undefined) throw new Error(`The adjustment came to status ${reply.status}`);
      // Where this fails the intent stays: it is refused for good, and withdrawn by the request's repetition.
      await store
        .withdrawAdjustment(actor, intent, refusal[0])
        .catch((error: unknown) => onError(error, intent.cell));
      // What another call was refused may be old: it is asked anew, once.
      if (!reply.isEarlier || isSecond) return refusal[1];
      isSecond = true;
    }
    return failed();
  }

  /** The script's reply; undefined where none came within the deadline. @throws EpochError: this call did nothing. */
  async #send(intent: Intent, partner: AdjustedPartner, under: Try): Promise<AdjustReply | undefined> {
    const { call, isReady, whenReady, isDurable, onError } = this.#options;
    for (;;) {
      const leftMs = under.deadline - performance.now();
      if (leftMs <= 0 || !isDurable(intent.cell)) return undefined;
      try {
        if (isReady(intent.cell)) return await within(call({ ...intent, ...partner }), leftMs);
        await whenReady(intent.cell, leftMs);
      } catch (error) {
        if (error instanceof EpochError) throw error;
        onError(error, intent.cell);
        if (error instanceof RefusedError && !under.mayHaveRun) return undefined;
        if (!(error instanceof RefusedError || error instanceof NotSentError)) under.mayHaveRun = true;
        await pause();
      }
    }
  }

  /**
   * Waits until the ledger has all that a cell of Redis has now: what Redis may have forgotten of an old intent is
   * found there then. False where that takes too long.
   */
  async #isCaughtUp(cell: number, { deadline }: Try): Promise<boolean> {
    const { store, newestInOutbox, onError } = this.#options;
    let newest: bigint;
    try {
      newest = await newestInOutbox(cell);
    } catch (error) {
      onError(error, cell);
      return false;
    }
    while ((await store.cellCursor(cell)) < newest) {
      if (performance.now() > deadline) return false;
      await pause();
    }
    return true;
  }
}
