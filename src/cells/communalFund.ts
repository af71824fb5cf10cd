/** The operation `communalFund`: changes the budget of a communal progressive, once for each intent (lua/communalFund.lua). */
import { readId, readSafeInt64 } from '../redis/records.js';
import { fundingFingerprint, fundingKey } from '../redis/requestHashes.js';
import type { CellOperation, CellRequest } from './operation.js';

export interface CommunalFundRequest extends CellRequest {
  /** Greater than that of every intent before with this requestId. */
  readonly fundingId: number;
  readonly partnerId: number;
  readonly gameId: number;
  readonly requestId: string;
  /** Of either sign, not 0. */
  readonly amountMicros: number;
}

export interface CommunalFundReply {
  /** SPIN_STATUS: dealt (it is done), conflict, shortBudget, overflow, outboxFull, noBlock (the game has no pot). */
  readonly status: number;
  /** An earlier call decided it. */
  readonly isEarlier: boolean;
  /** Id of the note; 0 where nothing was done. */
  readonly entryId: bigint;
  /** After it. */
  readonly budgetMicros: number;
}

export const COMMUNAL_FUND: CellOperation<CommunalFundRequest, CommunalFundReply> = {
  name: 'communalFund',
  batchMax: 1,
  slots: 8,
  overlapMin: 1,
  // What an intent came to is kept with its requestId.
  isStored: false,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => {
      const { gameId, partnerId, fundingId, amountMicros, requestId } = request!;
      return [
        gameId,
        fundingId,
        amountMicros,
        fundingKey(gameId, requestId),
        fundingFingerprint(amountMicros),
        partnerId,
      ];
    },
    decode: (answer) => {
      const entryId = readId(answer, 2);
      const reply = {
        status: answer[0]!,
        isEarlier: answer[1] === 1,
        entryId,
        budgetMicros: readSafeInt64(answer, 12),
      };
      return { replies: [reply], entryId: () => entryId };
    },
  }),
};
