/** Schema and operation of the feed of adjustments. */
import { Type } from '#typebox';
import { adjustmentMembers } from '../../domain/adjustment.js';
import { opaque, timestamp } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';
import { feedBounds, feedCursor, feedPaging } from '../contract/feedQuery.js';

const { partner } = endpointsOf('Players');

export const AdjustmentRecord = Type.Object({ ...adjustmentMembers, createdAt: timestamp() });

export const AdjustmentFeedQuery = Type.Object({
  ...feedBounds('adjustments'),
  playerId: Type.Optional(opaque('Only adjustments of this player')),
  ...feedPaging('adjustments', 'entryId'),
});

export const AdjustmentFeed = Type.Object({
  adjustments: Type.Array(AdjustmentRecord),
  ...feedCursor('adjustments'),
});

export const ADJUSTMENT = {
  entryId: 'f4abbfd7541bd6f71c3311b61d6d2bbd',
  kind: 'adjustment',
  playerId: 'alice',
  amountUsd: -5.5,
  balanceAfterUsd: 1043.75,
  reason: 'Correction of ticket 4711',
  createdAt: '2026-11-22T04:20:11.480Z',
};

const REFUND = {
  entryId: '5b0c9b4f1c0e4a56a2f1d0c3b4e59687',
  kind: 'refund',
  playerId: 'alice',
  amountUsd: 0.5,
  balanceAfterUsd: 1044.25,
  reason: 'The draw was cancelled',
  gameId: 4,
  spinId: '9f3a0c5e7d1b4826a5c4e3f201d6b798',
  createdAt: '2026-11-22T05:02:40.017Z',
};

export const listAdjustments = partner.get('listAdjustments', '/adjustments', {
  summary: "List the operator's adjustments and the refunds of voided raffles by time, oldest first",
  description:
    'Lists every entry that changed a balance without a game: the balance after it is the balance before it plus `amountUsd`. A page may have fewer adjustments than `limit`, even none, while `nextCursor` is not null. New adjustments never cause an adjustment to be skipped or repeated. To follow the ledger, send the `entryId` of the last adjustment as `cursor`.',
  query: AdjustmentFeedQuery,
  response: AdjustmentFeed,
  hasSums: true,
  example: { adjustments: [ADJUSTMENT, REFUND], nextCursor: null },
});
