/** Translates the status codes of a script into the reasons for which a cell refuses to deal. */
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
 * `conflict`: the requestId is bound to another request. `denied`: the caller asked for a replay only, and
 * there is none. `failed`: a sum would overflow, or the status is not one of a deal.
 */
export type Refusal = (typeof BY_STATUS)[keyof typeof BY_STATUS] | 'failed';

const REFUSALS: Readonly<Record<number, Refusal>> = BY_STATUS;

export const refusalOf = (status: number): Refusal => REFUSALS[status] ?? 'failed';
