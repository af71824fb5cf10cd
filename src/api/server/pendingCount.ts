/** Counts requests against a rate limit window and reports the remaining requests of the window. */

import { type ApiError, ERRORS } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import { KIND } from '../../engine/cells/batch.js';
import type { CountCommand, SpinResult } from '../../engine/cells/deal.js';
import type { CellFailure } from '../../engine/cells/operation.js';
import type { Admission } from './admission.js';
import type { Exchange } from './exchange.js';
import type { Replies, Window } from './reply.js';
import type { Services } from './services.js';

/** A request that waits to be counted against its partner's window. It has no other effect in Redis. */
export class PendingCount implements CountCommand {
  readonly waitsForLedger = false;
  readonly cell: number;
  readonly newestMove: number | undefined;
  readonly kind: CountCommand['kind'];
  readonly deadline: number;
  partner: Partner;
  readonly #exchange: Exchange;
  readonly #admission: Admission;
  readonly #path: Services['spinPath'];
  readonly #replies: Replies;
  readonly #then: ApiError | ((window: Window | undefined) => void);

  /**
   * @param then what follows the counting: an error with which the request is answered, or a function that
   * gets the window, or undefined if the request was not counted. The function is called only if the key is
   * still accepted.
   */
  constructor(
    exchange: Exchange,
    admission: Admission,
    path: Services['spinPath'],
    replies: Replies,
    kind: CountCommand['kind'],
    then: ApiError | ((window: Window | undefined) => void),
  ) {
    const { partner } = admission;
    this.#exchange = exchange;
    this.#admission = admission;
    this.#path = path;
    this.partner = partner;
    this.cell = partner.cell;
    this.newestMove = partner.newestMove;
    this.deadline = performance.now() + path.deadlineMs;
    this.#replies = replies;
    this.kind = kind;
    this.#then = then;
  }

  submit(): void {
    this.#path.submit(this);
  }

  isGone(): boolean {
    return this.#exchange.aborted || this.#admission.refusal !== undefined;
  }

  judgeAgain(): void {
    if (this.#admission.refusal === undefined) this.partner = placedAs(this, this.#admission.partner);
  }

  resolve(result: SpinResult): void {
    // Counting took time. This process may even have been paused in the middle of it.
    this.#path.onceFresh(
      () => this.#admission.refuses(this.#exchange) || this.#answer(result),
      () => this.#replies.error(this.#exchange, ERRORS.unavailable),
    );
  }

  #answer(result: SpinResult): void {
    const isSpin = this.kind === KIND.countSpin;
    // While a partner moves to another cell, its requests are not counted.
    const isAway = result.kind === 'partnerAway';
    const window = isAway ? undefined : windowOf(this.partner, isSpin, result);
    if (result.kind === 'limited') {
      this.#replies.error(this.#exchange, isSpin ? ERRORS.spinRateExceeded : ERRORS.apiRateExceeded, window);
    } else if (typeof this.#then === 'function') {
      this.#then(window);
    } else {
      const status = this.#exchange.isTooLong ? 413 : this.#then.entry.status;
      this.#replies.error(this.#exchange, this.#then.entry, window, { details: this.#then.details, status });
    }
  }

  fail(_failure: CellFailure): void {
    if (this.#admission.refuses(this.#exchange)) return;
    this.#replies.error(this.#exchange, ERRORS.unavailable);
  }
}

/**
 * Returns the partner to send a waiting command for: the newest state, unless the partner has moved
 * since. Then the command keeps its old state, the old cell refuses it, and it follows the partner.
 */
export const placedAs = (
  { partner, cell, newestMove }: { partner: Partner; cell: number; newestMove: number | undefined },
  newest: Partner,
): Partner => (newest.cell === cell && newest.newestMove === newestMove ? newest : partner);

export function windowOf(partner: Partner, isSpin: boolean, result: SpinResult): Window {
  return {
    policy: isSpin ? 'spin' : 'api',
    limit: isSpin ? partner.spinRateLimit : partner.apiRateLimit,
    remaining: result.remaining,
    nowMs: result.timeMs,
  };
}
