/** The cell operation `adjust`, which changes a player's balance once for each intent (lua/adjust.lua). */
import { playerField } from '../redis/keys.js';
import { adjustmentFingerprint, adjustmentKey } from '../redis/requestHashes.js';
import { intentOperation } from './intents.js';
import type { CellRequest } from './operation.js';

export interface AdjustRequest extends CellRequest {
  /** Number of the adjustment's intent. It is higher than the number of every earlier intent. */
  readonly intentId: number;
  readonly partnerId: number;
  readonly playerId: string;
  readonly requestId: string;
  /** Amount in micro-USD, positive or negative, within ±9e15. */
  readonly amountMicros: number;
  readonly openingBalanceMicros: number;
  /** True if a debit that would take the balance below zero is refused. */
  readonly enforcesBalance: boolean;
}

const SLOTS = 32;

export const ADJUST = intentOperation<AdjustRequest>('adjust', SLOTS, (request) => {
  const { intentId, partnerId, playerId, requestId, amountMicros } = request;
  return [
    intentId,
    playerField(partnerId, playerId),
    amountMicros,
    request.openingBalanceMicros,
    request.enforcesBalance ? 1 : 0,
    adjustmentKey(partnerId, requestId),
    adjustmentFingerprint(playerId, amountMicros),
    requestId,
  ];
});
