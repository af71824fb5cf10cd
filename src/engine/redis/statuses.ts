/** What commands to a cell come to, and why a request may not be done. `npm run layouts` makes the constants of the scripts of it. */

/** What a spin, or another command, came to. */
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
  /** Left to a later call: nothing was done, and it did not count. */
  deferred: 15,
  /** A budget has less than is to be taken from it. */
  shortBudget: 16,
  /** As many choices of a partner wait as may. */
  full: 17,
  /** A round of the player is open at the table. */
  roundOpen: 20,
  /** The round has had other steps than the caller believed. */
  roundMoved: 21,
  partnerAway: 22,
  /** The requestId is free in Redis, and the ledger may have it: nothing was done. */
  mayBeBound: 23,
  /** An intent with this number, or a higher one, was refused: nothing was done, and a new number decides it. */
  lapsed: 24,
} as const;

/**
 * Why nothing may be dealt unless the requestId is bound: nothing stands against it; the caller; only the ledger can tell whether it is;
 * the wager is not the raffle's, which is said only where the raffle has tickets left.
 */
export const DENY = { not: 0, refused: 1, mayBeBound: 2, otherWager: 3 } as const;
