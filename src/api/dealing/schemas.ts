/** The switches of dealing. */
import { type Static, Type } from '#typebox';
import { choice, nullable, REASON_PATTERN, timestamp } from '../../domain/schema.js';

export const DealingState = choice(['ON', 'OFF'], '`OFF`: nothing is dealt');

export const DealingBody = Type.Object({
  state: DealingState,
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept in the audit log' }),
});

export const DealingResponse = Type.Object({
  state: DealingState,
  reason: nullable(Type.String({ description: 'Of the newest change; null: it was never changed' })),
  actor: nullable(Type.String({ description: 'Who changed it' })),
  changedAt: nullable(timestamp()),
});

export type DealingBody = Static<typeof DealingBody>;
