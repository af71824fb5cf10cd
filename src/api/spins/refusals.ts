/** Why spins and deals of rounds are refused, and the errors that clients receive. */

import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { Game, Partner } from '../../domain/game.js';
import type { Refusal } from '../../engine/cells/scriptRefusals.js';
import type { SpinRules } from '../../engine/cells/spinRules.js';

export const REFUSALS: Readonly<Record<Refusal, ErrorEntry>> = {
  conflict: ERRORS.requestIdReused,
  // Only a fallback: the sender of a command that is marked as denied already has the error for the response.
  denied: ERRORS.spinFailed,
  insufficientBalance: ERRORS.insufficientBalance,
  fundingUnavailable: ERRORS.fundingUnavailable,
  queueExhausted: ERRORS.queueExhausted,
  noBlock: ERRORS.noBlockServable,
  outboxFull: ERRORS.unavailable,
  playerBlocked: ERRORS.playerBlocked,
  failed: ERRORS.spinFailed,
};

/** @param otherKind the error if the game is played by the other kind of request: spin or deal */
export function gameDenial(
  game: Game | undefined,
  isWager: boolean,
  ifUnknown: ErrorEntry,
  otherKind: ErrorEntry | undefined,
): ErrorEntry | undefined {
  if (game === undefined) return ifUnknown;
  if (otherKind !== undefined) return otherKind;
  if (game.status === 'CLOSED') return ERRORS.raffleClosed;
  if (game.status === 'SUSPENDED') return ERRORS.gameNotActive;
  return isWager ? undefined : ERRORS.wagerMismatch;
}

/**
 * Returns why a spin or a deal is denied now. The key comes first. A dealing switch comes after KS-4006 and
 * before all other errors of {@link gameDenial} (docs/contract.md §8.2).
 */
export function denialOf(
  rules: Pick<SpinRules, 'stopOf'>,
  partner: Partner,
  game: Game | undefined,
  refusal: ErrorEntry | undefined,
  judgement: ErrorEntry | undefined,
): ErrorEntry | undefined {
  if (refusal !== undefined) return refusal;
  return (game === undefined ? undefined : rules.stopOf(partner)) ?? judgement;
}
