/** Counts requests against a rate limit window and reports the remaining requests of the window. */

import { type ApiError, ERRORS } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import { KIND } from '../../engine/cells/batch.js';
import type { CountCommand, SpinResult } from '../../engine/cells/deal.js';
import type { CellFailure } from '../../engine/cells/operation.js';
import type { Exchange } from './exchange.js';
import type { Replies, Window } from './reply.js';

/** A request that waits to be counted against its partner's window. It has no other effect in Redis. */
export class PendingCount implements CountCommand {
  readonly waitsForLedger = false;
  readonly cell: number;
  readonly newestMove: number | undefined;
  readonly kind: CountCommand['kind'];
  readonly partner: Partner;
  readonly #exchange: Exchange;
  readonly #replies: Replies;
  readonly #then: ApiError | ((window: Window) => void);

  /**
   * @param then what follows the counting: an error with which the request is answered, or a function that
   * gets the window
   */
  constructor(
    exchange: Exchange,
    partner: Partner,
    replies: Replies,
    kind: CountCommand['kind'],
    then: ApiError | ((window: Window) => void),
  ) {
    this.#exchange = exchange;
    this.partner = partner;
    this.cell = partner.cell;
    this.newestMove = partner.newestMove;
    this.#replies = replies;
    this.kind = kind;
    this.#then = then;
  }

  get isGone(): boolean {
    return this.#exchange.aborted;
  }

  resolve(result: SpinResult): void {
    const isSpin = this.kind === KIND.countSpin;
    // While a partner moves to another cell, its requests are not counted.
    const isAway = result.kind === 'partnerAway';
    const window = isAway ? ownWindow(this.partner, isSpin) : windowOf(this.partner, isSpin, result);
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
    const isSpin = this.kind === KIND.countSpin;
    this.#replies.error(this.#exchange, ERRORS.unavailable, ownWindow(this.partner, isSpin));
  }
}

export function windowOf(partner: Partner, isSpin: boolean, result: SpinResult): Window {
  return {
    policy: isSpin ? 'spin' : 'api',
    limit: isSpin ? partner.spinRateLimit : partner.apiRateLimit,
    remaining: result.remaining,
    nowMs: result.timeMs,
  };
}

/**
 * Returns the window to report while the store that counts is unavailable. Its remaining count is 0, because
 * no request is accepted at that time.
 */
export function ownWindow(partner: Partner, isSpin: boolean): Window {
  const limit = isSpin ? partner.spinRateLimit : partner.apiRateLimit;
  return { policy: isSpin ? 'spin' : 'api', limit, remaining: 0, nowMs: Date.now() };
}
