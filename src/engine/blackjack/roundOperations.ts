/**
 * Cell operations of blackjack rounds: `roundDeal` takes a shoe (lua/roundDeal.lua), and `roundAct` makes the
 * next step of a round (lua/roundAct.lua).
 */

import type { Partner } from '../../domain/game.js';
import { FINGERPRINT_BYTES, ROUND_ACT_REPLY, ROUND_DEAL_REPLY } from '../../domain/layouts.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../../domain/requestKey.js';
import { type RequestIdFilters, writeFingerprint } from '../cells/batch.js';
import type { CellOperation, CellRequest } from '../cells/operation.js';
import { playerField } from '../redis/keys.js';
import { DENY, SPIN_STATUS } from '../redis/statuses.js';

interface RoundPlayer extends CellRequest {
  readonly partnerId: number;
  readonly playerId: string;
  readonly gameId: number;
  /** Called when the call is encoded. */
  readonly enforcesBalance: () => boolean;
}

export interface RoundDealRequest extends Omit<RoundPlayer, 'enforcesBalance'> {
  readonly requestId: string | undefined;
  /**
   * Returns whether nothing may be dealt now. In that case, only a request whose requestId is already bound
   * gets its response. The function is called when the batch is encoded.
   */
  readonly isDenied: () => boolean;
  /** Whether the request can be a repetition of an earlier one, because its game and wager are valid. */
  readonly mayEqual: boolean;
  readonly wagerMicros: number;
  readonly maxPayoutMicros: number;
  /** Payout at the deal by outcome code, in the format that lua/roundDeal.lua reads. */
  readonly payoutTable: Buffer;
  /** Returns what the partner's players may lose. Called when the call is encoded. */
  readonly limits: () => Pick<Partner, 'openingBalanceMicros' | 'fundingMicros' | 'balanceMode'>;
  readonly formerCells?: Partner['formerCells'] | undefined;
  /** Version of the request-id filters for which a look-up in the ledger did not find the requestId. */
  readonly clearedAt?: number | undefined;
}

export interface RoundDealReply {
  /**
   * A status of SPIN_STATUS: dealt, replay, conflict, denied, mayBeBound, playerBlocked, roundOpen, or the
   * reason why nothing could be dealt.
   */
  readonly status: number;
  /** Entry id of the deal that the reply refers to; 0 if there is none. */
  readonly dealId: bigint;
  readonly balanceMicros: number;
  readonly shoeIndex: number;
  readonly outcomeCode: number;
}

/**
 * Maximum number of concurrent calls to one cell. Each call is a round trip, but the replies share one disk
 * sync of Redis.
 */
const SLOTS = 32;

export const roundDealOperation = (
  requestIds: RequestIdFilters | undefined,
): CellOperation<RoundDealRequest, RoundDealReply> => ({
  name: 'roundDeal',
  batchMax: 1,
  slots: SLOTS,
  overlapMin: 1,
  isStored: true,
  waitsForStore: false,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => {
      const { partnerId, playerId, gameId, requestId } = request!;
      const { openingBalanceMicros, fundingMicros, balanceMode } = request!.limits();
      const key = Buffer.alloc(REQUEST_KEY_BYTES);
      const fingerprint = Buffer.alloc(FINGERPRINT_BYTES, 0xff);
      let deny: number = request!.isDenied() ? DENY.refused : DENY.not;
      if (requestId !== undefined) {
        const { cell, formerCells, clearedAt } = request!;
        writeRequestKey(key, 0, partnerId, requestId);
        const isCleared = clearedAt !== undefined && clearedAt === requestIds?.versionOf(cell);
        if (!isCleared && requestIds?.mayHave({ partnerId, cell, formerCells }, key, 0) === true)
          deny = DENY.mayBeBound;
      }
      if (request!.mayEqual) writeFingerprint(fingerprint, 0, gameId, playerId);
      return [
        partnerId,
        gameId,
        playerField(partnerId, playerId),
        key,
        fingerprint,
        requestId ?? '',
        deny,
        request!.wagerMicros,
        request!.maxPayoutMicros,
        request!.payoutTable,
        openingBalanceMicros,
        fundingMicros ?? -1,
        balanceMode === 'enforce' ? 1 : 0,
      ];
    },
    decode: (answer) => {
      const { status, core, shoeIndex, newestId } = ROUND_DEAL_REPLY.read(answer);
      const { id: dealId, outcomeCode, balanceMicros } = core;
      const reply = { status, dealId, outcomeCode, balanceMicros, shoeIndex };
      // If the round is open, its newest step must also be committed before the player gets a response.
      const entryId = status === SPIN_STATUS.roundOpen ? newestId : dealId;
      return { replies: [reply], entryId: () => entryId };
    },
  }),
});

export interface RoundActRequest extends RoundPlayer {
  readonly shoeIndex: number;
  /** Number of steps that the round has had, as far as the caller knows. */
  readonly steps: number;
  readonly kind: 'roundAction' | 'roundVoid';
  /** Additional stake in micro-USD; a negative value is a refund of the stake. */
  readonly stakeMicros: number;
  readonly payoutMicros: number;
  /** Code of the step (domain/games/round.ts). */
  readonly code: number;
  readonly isEnd: boolean;
}

export interface RoundActReply {
  /**
   * A status of SPIN_STATUS: dealt (the step was made), roundMoved, or the reason why the step could not be
   * made.
   */
  readonly status: number;
  /** Entry id of the step; 0 if no step was made. */
  readonly entryId: bigint;
  readonly balanceMicros: number;
}

export const ROUND_ACT: CellOperation<RoundActRequest, RoundActReply> = {
  name: 'roundAct',
  batchMax: 1,
  slots: SLOTS,
  overlapMin: 1,
  isStored: true,
  waitsForStore: true,
  partnerOf: ({ partnerId }) => partnerId,
  codec: () => ({
    encode: ([request]) => {
      const { partnerId, playerId, gameId, kind } = request!;
      return [
        partnerId,
        gameId,
        playerField(partnerId, playerId),
        request!.shoeIndex,
        request!.steps,
        request!.stakeMicros,
        request!.payoutMicros,
        request!.code,
        ENTRY_KINDS[kind].code,
        request!.isEnd ? 1 : 0,
        request!.enforcesBalance() ? 1 : 0,
      ];
    },
    decode: (answer) => {
      const { status, core, newestId } = ROUND_ACT_REPLY.read(answer);
      const reply = { status, entryId: core.id, balanceMicros: core.balanceMicros };
      // A caller whose step came too late reads the round from the ledger again, so the step that another
      // caller made first must be in the ledger.
      const awaited = status === SPIN_STATUS.roundMoved ? newestId : core.id;
      return { replies: [reply], entryId: () => awaited };
    },
  }),
};
