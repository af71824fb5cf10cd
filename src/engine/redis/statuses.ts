/**
 * Status codes of cell commands, and reasons for which a request must not be dealt. `npm run layouts`
 * generates the constants of the scripts from this file.
 */

export const SPIN_STATUS = {
  dealt: 0,
  replay: 1,
  conflict: 2,
  limited: 3,
  denied: 4,
  insufficientBalance: 5,
  fundingUnavailable: 6,
  queueExhausted: 7,
  noBlock: 8,
  counted: 9,
  overflow: 10,
  outboxFull: 11,
  raffleClosed: 12,
  playerBlocked: 13,
  playerUnknown: 14,
  /**
   * The request was not processed, and must be sent again in a later call. Nothing was done, and the request
   * was not counted.
   */
  deferred: 15,
  /** The budget of the communal progressive is smaller than the amount to be taken from it. */
  shortBudget: 16,
  /** The partner has the maximum number of unused forced outcomes. */
  full: 17,
  /** The player already has an open round at the table. */
  roundOpen: 20,
  /** The round of blackjack has had steps that differ from those that the caller expected. */
  roundMoved: 21,
  partnerAway: 22,
  /** Redis does not bind the requestId, but the ledger may have it. Nothing was done. */
  mayBeBound: 23,
  /**
   * This intent, or an intent with a higher number, was refused. Nothing was done, and the intent needs a new
   * number to be decided.
   */
  lapsed: 24,
  /** A later version of the communal rules is in force. Nothing was done. */
  superseded: 25,
} as const;

/**
 * Reason why a request may only be answered by a replay.
 * - `not`: there is no such reason.
 * - `refused`: the caller does not permit a new deal.
 * - `mayBeBound`: only the ledger has the information whether the requestId is bound.
 * - `otherWager`: the wager differs from the raffle's wager. This is reported only if the raffle has
 *   tickets left.
 */
export const DENY = { not: 0, refused: 1, mayBeBound: 2, otherWager: 3 } as const;
