/** Adjustments of balances as partners see them: in the feed, in a player's recall and as events. */
import { type Static, Type } from '#typebox';
import { jsonUsd, type WithSums } from './exactJson.js';
import type { LedgerEntry } from './ledgerColumns.js';
import { refundedTicket } from './refund.js';
import { extensible, usd } from './schema.js';
import type { SpinIds } from './spinId.js';

/** An adjustment as its ledger entry has it. */
export interface CommittedAdjustment {
  readonly partnerId: number;
  readonly requestId: string;
  readonly entryId: bigint;
  readonly playerId: string;
  /** Amount in micro-USD, positive or negative. */
  readonly amountMicros: number;
  readonly balanceMicros: number;
}

export interface ReasonedAdjustment extends CommittedAdjustment {
  readonly reason: string;
}

export const adjustmentOf = (
  entry: Pick<LedgerEntry, 'id' | 'partnerId' | 'playerId' | 'requestId' | 'creditMicros' | 'balanceMicros'>,
): CommittedAdjustment => ({
  partnerId: entry.partnerId,
  requestId: entry.requestId!,
  entryId: entry.id,
  playerId: entry.playerId,
  amountMicros: entry.creditMicros,
  balanceMicros: entry.balanceMicros,
});

const AdjustmentKind = extensible(
  ['adjustment', 'refund'],
  'Kind of the entry. `adjustment`: the operator changed the balance. `refund`: the operator voided a raffle, and the price of one ticket was returned',
);

/** Members that the feed, the recall and the event have in common. */
export const adjustmentMembers = {
  entryId: Type.String({ description: 'Id of the ledger entry: the `adjustmentId` of the operator API' }),
  kind: AdjustmentKind,
  playerId: Type.String(),
  amountUsd: usd('Amount that was added to the balance, in USD; negative if it was deducted'),
  balanceAfterUsd: usd('Balance of the player after the entry, in USD'),
  reason: Type.String({ description: 'Reason that the operator gave' }),
  gameId: Type.Optional(Type.Integer({ description: 'Id of the voided raffle. Present for refunds only.' })),
  spinId: Type.Optional(Type.String({ description: 'Id of the refunded ticket. Present for refunds only.' })),
};

const AdjustmentMembers = Type.Object(adjustmentMembers);
export type AdjustmentData = Readonly<WithSums<Static<typeof AdjustmentMembers>, never>>;

export function adjustmentData(
  spinIds: Pick<SpinIds, 'encodeOne'>,
  { entryId, partnerId, playerId, requestId, amountMicros, balanceMicros, reason }: ReasonedAdjustment,
): AdjustmentData {
  const ticket = refundedTicket(requestId);
  return {
    entryId: spinIds.encodeOne(entryId, partnerId),
    kind: ticket === undefined ? 'adjustment' : 'refund',
    playerId,
    amountUsd: jsonUsd(BigInt(amountMicros)),
    balanceAfterUsd: jsonUsd(BigInt(balanceMicros)),
    reason,
    ...ticket,
  };
}
