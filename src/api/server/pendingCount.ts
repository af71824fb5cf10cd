/** Requests that only count against a window, and what a window has left. */

import { type ApiError, ERRORS } from '../../domain/errors.js';
import type { Partner } from '../../domain/game.js';
import { KIND } from '../../engine/cells/batch.js';
import type { CountCommand, SpinResult } from '../../engine/cells/deal.js';
import type { CellFailure } from '../../engine/cells/operation.js';
import type { Exchange } from './exchange.js';
import type { Replies, Window } from './reply.js';

/** A request on its way to be counted: it does nothing else in Redis. */
export class PendingCount implements CountCommand {
  readonly waitsForLedger = false;
  readonly cell: number;
  readonly newestMove: number | undefined;
  readonly kind: CountCommand['kind'];
  readonly partner: Partner;
  readonly #exchange: Exchange;
  readonly #replies: Replies;
  readonly #then: ApiError | ((window: Window) => void);

  /** @param then what to answer once counted: an error, or whatever the function does with the window. */
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
    // Of a partner that moves to another cell no request is counted for a moment.
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

/** What can be said of a window while the store that counts is away: nothing that is sent now is taken. */
export function ownWindow(partner: Partner, isSpin: boolean): Window {
  const limit = isSpin ? partner.spinRateLimit : partner.apiRateLimit;
  return { policy: isSpin ? 'spin' : 'api', limit, remaining: 0, nowMs: Date.now() };
}
