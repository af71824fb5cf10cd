/** The operation `adjust`: changes a player's balance, once for each intent (lua/adjust.lua). */
import { playerField } from '../redis/keys.js';
import { readId, readSafeInt64 } from '../redis/records.js';
import { adjustmentFingerprint, adjustmentKey } from '../redis/requestHashes.js';
import type { CellOperation, CellRequest } from './operation.js';

export interface AdjustRequest extends CellRequest {
  /** Greater than that of every intent before with this requestId. */
  readonly intentId: number;
  readonly partnerId: number;
  readonly playerId: string;
  readonly requestId: string;
  /** Of either sign, within ±9e15. */
  readonly amountMicros: number;
  readonly openingBalanceMicros: number;
  /** A debit below zero is refused. */
  readonly enforcesBalance: boolean;
}

export interface AdjustReply {
  /** SPIN_STATUS: dealt (it is done), conflict, insufficientBalance, overflow, outboxFull. */
  readonly status: number;
  /** An earlier call decided it. */
  readonly isEarlier: boolean;
  /** Of the adjustment; 0 where nothing was booked. */
  readonly entryId: bigint;
  /** After it. */
  readonly balanceMicros: number;
}

export const ADJUST: CellOperation<AdjustRequest, AdjustReply> = {
  name: 'adjust',
  batchMax: 1,
  slots: 32,
  overlapMin: 1,
  // What an intent came to is kept with its requestId.
  isStored: false,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => {
      const { intentId, partnerId, playerId, requestId, amountMicros } = request!;
      return [
        intentId,
        playerField(partnerId, playerId),
        amountMicros,
        request!.openingBalanceMicros,
        request!.enforcesBalance ? 1 : 0,
        adjustmentKey(partnerId, requestId),
        adjustmentFingerprint(playerId, amountMicros),
        requestId,
      ];
    },
    decode: (answer) => {
      const entryId = readId(answer, 2);
      const reply = {
        status: answer[0]!,
        isEarlier: answer[1] === 1,
        entryId,
        balanceMicros: readSafeInt64(answer, 12),
      };
      return { replies: [reply], entryId: () => entryId };
    },
  }),
};
