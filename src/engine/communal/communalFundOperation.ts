/**
 * Cell operation `communalFund`: changes the budget of a communal progressive, once for each intent
 * (lua/communalFund.lua).
 */

import { intentOperation } from '../cells/intents.js';
import type { CellRequest } from '../cells/operation.js';
import { fundingFingerprint, fundingKey } from '../redis/requestHashes.js';

export interface CommunalFundRequest extends CellRequest {
  /** Number of the intent. It is greater than the numbers of all earlier fundings and versions of rules. */
  readonly fundingId: number;
  readonly partnerId: number;
  readonly gameId: number;
  readonly requestId: string;
  /** Amount of the funding in micro-USD, positive or negative, not 0. */
  readonly amountMicros: number;
}

const SLOTS = 8;

export const COMMUNAL_FUND = intentOperation<CommunalFundRequest>('communalFund', SLOTS, (request) => {
  const { gameId, partnerId, fundingId, amountMicros, requestId } = request;
  return [
    gameId,
    fundingId,
    amountMicros,
    fundingKey(gameId, requestId),
    fundingFingerprint(amountMicros),
    partnerId,
  ];
});
