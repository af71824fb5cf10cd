import { Type } from '#typebox';
import { nullable, timestamp } from './schema.js';

/**
 * A step of a partner's move. Step numbers increase over all moves of all partners. A cell refuses a step
 * after it has seen a later step of the same partner.
 */
export interface MoveStep {
  readonly partnerId: number;
  readonly number: bigint;
}

export const PartnerMove = Type.Object({
  moveId: Type.Integer(),
  partnerId: Type.Integer(),
  fromCell: Type.Integer({ description: 'Cell from which the partner moves' }),
  toCell: Type.Integer({ description: 'Cell to which the partner moves' }),
  requestedAt: timestamp(),
  switchedAt: nullable(timestamp()),
  finishedAt: nullable(timestamp()),
  failure: nullable(
    Type.String({ description: 'Reason why the move was abandoned; null if it was not abandoned' }),
  ),
});
