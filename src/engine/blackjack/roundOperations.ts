/** The operations of rounds: `roundDeal` takes a shoe (lua/roundDeal.lua), `roundAct` books the next step (lua/roundAct.lua). */

import type { Partner } from '../../domain/game.js';
import { FINGERPRINT_BYTES, ROUND_ACT_REPLY, ROUND_DEAL_REPLY } from '../../domain/layouts.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../../domain/requestKey.js';
import { type RequestIdFilters, writeFingerprint } from '../cells/batch.js';
import type { CellOperation, CellRequest } from '../cells/operation.js';
import { playerField } from '../redis/keys.js';
import { DENY, SPIN_STATUS } from '../redis/statuses.js';

/** Whose round, at which table. */
interface RoundPlayer extends CellRequest {
  readonly partnerId: number;
  readonly playerId: string;
  readonly gameId: number;
  /** A stake above the balance is refused. */
  readonly enforcesBalance: boolean;
}

export interface RoundDealRequest extends RoundPlayer {
  readonly requestId: string | undefined;
  /** Nothing is dealt; only a requestId that is bound answers. Asked when the call is written. */
  readonly isDenied: () => boolean;
  /** The request can equal one that was dealt before. */
  readonly mayEqual: boolean;
  readonly wagerMicros: number;
  readonly maxPayoutMicros: number;
  /** What comes back at the deal by outcome code, as lua/roundDeal.lua reads it. */
  readonly payoutTable: Buffer;
  readonly openingBalanceMicros: number;
  /** Null: no bound. */
  readonly fundingMicros: number | null;
  /** Of the partner. */
  readonly formerCells?: Partner['formerCells'] | undefined;
  /** The ledger was asked, and has not the requestId, as of this version of the filters. */
  readonly clearedAt?: number | undefined;
}

export interface RoundDealReply {
  /** SPIN_STATUS: dealt, replay, conflict, denied, mayBeBound, playerBlocked, roundOpen, or why nothing could be dealt. */
  readonly status: number;
  /** Of the deal that is told of; 0: none. */
  readonly dealId: bigint;
  /** After the deal, micro-USD. */
  readonly balanceMicros: number;
  /** Of the shoe that was dealt. */
  readonly shoeIndex: number;
  readonly outcomeCode: number;
}

/** Calls of one cell under way: each is a round trip, and their answers wait for one sync of the store together. */
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
      const { partnerId, playerId, gameId, requestId, fundingMicros } = request!;
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
        request!.openingBalanceMicros,
        fundingMicros ?? -1,
        request!.enforcesBalance ? 1 : 0,
      ];
    },
    decode: (answer) => {
      const { status, core, shoeIndex, newestId } = ROUND_DEAL_REPLY.read(answer);
      const { id: dealId, outcomeCode, balanceMicros } = core;
      const reply = { status, dealId, outcomeCode, balanceMicros, shoeIndex };
      // Of an open round also its newest step must be booked before anybody is told of it.
      const entryId = status === SPIN_STATUS.roundOpen ? newestId : dealId;
      return { replies: [reply], entryId: () => entryId };
    },
  }),
});

export interface RoundActRequest extends RoundPlayer {
  readonly shoeIndex: number;
  /** Steps that the round has had, as far as the caller knows. */
  readonly steps: number;
  readonly kind: 'roundAction' | 'roundVoid';
  /** Below 0: given back. */
  readonly stakeMicros: number;
  readonly payoutMicros: number;
  /** As domain/games/round.ts codes the step. */
  readonly code: number;
  readonly isEnd: boolean;
}

export interface RoundActReply {
  /** SPIN_STATUS: dealt (the step is booked), roundMoved, or why it could not be booked. */
  readonly status: number;
  /** Of the step; 0 where none was booked. */
  readonly entryId: bigint;
  /** After it, micro-USD. */
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
        request!.enforcesBalance ? 1 : 0,
      ];
    },
    decode: (answer) => {
      const { status, core, newestId } = ROUND_ACT_REPLY.read(answer);
      const reply = { status, entryId: core.id, balanceMicros: core.balanceMicros };
      // Whoever comes too late reads the ledger next: it must have what moved the round.
      const awaited = status === SPIN_STATUS.roundMoved ? newestId : core.id;
      return { replies: [reply], entryId: () => awaited };
    },
  }),
};
