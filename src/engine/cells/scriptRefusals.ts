/** Why a cell deals nothing, by name: what its callers are told in place of a script's status. */
import { SPIN_STATUS } from '../redis/statuses.js';

const BY_STATUS = {
  [SPIN_STATUS.conflict]: 'conflict',
  [SPIN_STATUS.denied]: 'denied',
  [SPIN_STATUS.insufficientBalance]: 'insufficientBalance',
  [SPIN_STATUS.fundingUnavailable]: 'fundingUnavailable',
  [SPIN_STATUS.queueExhausted]: 'queueExhausted',
  [SPIN_STATUS.noBlock]: 'noBlock',
  [SPIN_STATUS.outboxFull]: 'outboxFull',
  [SPIN_STATUS.playerBlocked]: 'playerBlocked',
} as const;

/**
 * `conflict`: the requestId is bound to another request. `denied`: the caller wants nothing dealt. `failed`: a sum would overflow, or
 * the status is none that a deal can come to.
 */
export type Refusal = (typeof BY_STATUS)[keyof typeof BY_STATUS] | 'failed';

const REFUSALS: Readonly<Record<number, Refusal>> = BY_STATUS;

export const refusalOf = (status: number): Refusal => REFUSALS[status] ?? 'failed';
