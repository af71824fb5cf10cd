/** Maps the reasons for which a cell refuses to deal to the errors that clients receive. */

import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { Refusal } from '../../engine/cells/scriptRefusals.js';

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
