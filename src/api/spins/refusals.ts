/** What a caller is answered for whom a cell deals nothing. */

import { ERRORS, type ErrorEntry } from '../../domain/errors.js';
import type { Refusal } from '../../engine/cells/scriptRefusals.js';

export const REFUSALS: Readonly<Record<Refusal, ErrorEntry>> = {
  conflict: ERRORS.requestIdReused,
  // Whoever wants nothing dealt knows why.
  denied: ERRORS.spinFailed,
  insufficientBalance: ERRORS.insufficientBalance,
  fundingUnavailable: ERRORS.fundingUnavailable,
  queueExhausted: ERRORS.queueExhausted,
  noBlock: ERRORS.noBlockServable,
  outboxFull: ERRORS.unavailable,
  playerBlocked: ERRORS.playerBlocked,
  failed: ERRORS.spinFailed,
};
