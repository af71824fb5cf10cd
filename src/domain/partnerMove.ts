import { Type } from '#typebox';
import { nullable, timestamp } from './schema.js';

/** Numbers of steps grow, over all moves of all partners: a cell refuses a step once it has seen a later one of the partner. */
export interface MoveStep {
  readonly partnerId: number;
  readonly number: bigint;
}

export const PartnerMove = Type.Object({
  moveId: Type.Integer(),
  partnerId: Type.Integer(),
  fromCell: Type.Integer({ description: 'The cell that it leaves' }),
  toCell: Type.Integer({ description: 'The cell that it moves to' }),
  requestedAt: timestamp(),
  switchedAt: nullable(timestamp()),
  finishedAt: nullable(timestamp()),
  failure: nullable(Type.String({ description: 'Why it was given up; null: it was not' })),
});
