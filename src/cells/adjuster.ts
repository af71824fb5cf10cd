/**
 * Adjusts a player's balance, once for each requestId, for ever.
 *
 *   intent on record (Postgres) ──new──────────────────────────> script (Redis) ──> done
 *     │ there is another one          │ there before                │ refused
 *     └──> reused                     └──> booked? its answer       └──> intent withdrawn, in writing
 *
 * Ended anywhere, the same request goes on: the intent is found, then what the ledger has of it, then what Redis has that
 * is not booked yet. Where nothing of it is anywhere it is done now. CellClient calls the script.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Adjustment, Intent } from '../postgres/adjustments.js';
import type { Store } from '../postgres/store.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import { ADJUST } from './adjust.js';
import type { CellClient } from './cellClient.js';
import type { Confirmations } from './confirmations.js';

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
  readonly store: Pick<Store, 'recordAdjustment' | 'withdrawAdjustment' | 'findAdjustment'>;
  readonly cells: Pick<CellClient, 'execute'>;
  /** Id of the newest entry in a cell's outbox; 0: there is none. */
  readonly newestInOutbox: (cell: number) => Promise<bigint>;
  readonly confirmations: Pick<Confirmations, 'cameTo'>;
  /** An adjustment is answered only once the ledger has it. */
  readonly waitsForLedger: boolean;
  /** How long the stores are tried, all tries included. */
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
    const under: Try = { deadline: performance.now() + this.#options.deadlineMs, mayHaveRun: false };
    let isSecond = false;
    while (performance.now() < under.deadline) {
      let intent: Intent;
      try {
        const found = await this.#intent(actor, wanted, under);
        if (typeof found === 'string' || 'balanceMicros' in found) return found;
        intent = found;
      } catch (error) {
        if (!under.mayHaveRun) throw error;
        this.#options.onError(error, -1);
        return 'unknown';
      }
      const answer = await this.#send(actor, intent, partner, under, isSecond);
      if (answer === 'epochMoved') await pause(RETRY_MS);
      else if (answer === 'refusedEarlier') isSecond = true;
      else return answer;
    }
    return failed(under);
  }

  /** The intent to carry out, or the answer where an earlier call has decided it. */
  async #intent(actor: string, wanted: Adjustment, under: Try): Promise<Intent | Adjusted> {
    const { store } = this.#options;
    const intent = await store.recordAdjustment(actor, wanted);
    if (intent === 'reused' || intent.isNew) return intent;
    if (intent.isOld && !(await this.#isCaughtUp(intent.cell, under))) return failed(under);
    const booked = await store.findAdjustment(wanted.partnerId, wanted.requestId);
    return booked === undefined ? intent : { entryId: booked.id, balanceMicros: booked.balanceMicros };
  }

  /**
   * Has an intent carried out. `epochMoved`: the cell was rebuilt, or is being, and the intent must be read again.
   * `refusedEarlier`: what another call was refused may be old, and is asked anew, once.
   */
  async #send(
    actor: string,
    intent: Intent,
    partner: AdjustedPartner,
    under: Try,
    isSecond: boolean,
  ): Promise<Adjusted | 'epochMoved' | 'refusedEarlier'> {
    const { cells, store, waitsForLedger, onError } = this.#options;
    const { deadline } = under;
    const outcome = await cells.execute(ADJUST, { ...intent, ...partner, waitsForLedger, deadline });
    if (outcome.kind !== 'reply') {
      under.mayHaveRun ||= outcome.mayHaveRun;
      return outcome.kind === 'epochMoved' ? 'epochMoved' : failed(under);
    }
    const { status, isEarlier, entryId, balanceMicros } = outcome.reply;
    if (status === SPIN_STATUS.conflict) return 'reused';
    if (status === SPIN_STATUS.dealt) return { entryId, balanceMicros };
    const refusal = REFUSALS[status];
    if (refusal === undefined) throw new Error(`The adjustment came to status ${status}`);
    // Where this fails the intent stays: it is refused for good, and withdrawn by the request's repetition.
    await store
      .withdrawAdjustment(actor, intent, refusal[0])
      .catch((error: unknown) => onError(error, intent.cell));
    return isEarlier && !isSecond ? 'refusedEarlier' : refusal[1];
  }

  /**
   * Waits until the ledger has all that a cell of Redis has now: what Redis may have forgotten of an old intent is
   * found there then. False where that takes too long.
   */
  async #isCaughtUp(cell: number, { deadline }: Try): Promise<boolean> {
    const { newestInOutbox, confirmations, onError } = this.#options;
    try {
      const newest = await newestInOutbox(cell);
      return await confirmations.cameTo(cell, newest, deadline - performance.now());
    } catch (error) {
      onError(error, cell);
      return false;
    }
  }
}

const failed = ({ mayHaveRun }: Try): Adjusted => (mayHaveRun ? 'unknown' : 'refused');
