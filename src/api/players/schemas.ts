/** Players, their spins, and the adjustments of their balances. */
import { type Static, Type } from '#typebox';
import { opaque, pageMembers, REASON_PATTERN, timestamp, usd } from '../../domain/schema.js';
import { PlayerSpin } from '../spins/schemas.js';

export const PlayerStatus = Type.Union([Type.Literal('ACTIVE'), Type.Literal('BLOCKED')], {
  description: 'BLOCKED: its spins are refused',
});

export const PlayerResponse = Type.Object({
  userId: Type.String({ description: 'Internal id of the player' }),
  playerId: Type.String(),
  createdAt: timestamp(),
  balanceUsd: usd('Balance now'),
  status: PlayerStatus,
});

export const PlayerSpins = Type.Object({
  spins: Type.Array(PlayerSpin),
  ...pageMembers,
});

export const AdjustmentBody = Type.Object({
  amountUsd: usd('Added to the balance; not 0, at most 6 decimals, negative to take away'),
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept with the adjustment' }),
  requestId: opaque('Idempotency key; binds for ever'),
});

/** With what the path says. */
export const AdjustmentOrder = Type.Object({ playerId: opaque(''), ...AdjustmentBody.properties });

export const AdjustmentResponse = Type.Object({
  playerId: Type.String(),
  balanceUsd: usd('Balance of the player after the adjustment'),
  adjustmentId: Type.String(),
});

export type AdjustmentBody = Static<typeof AdjustmentBody>;

export const PlayerStatusBody = Type.Object({
  status: PlayerStatus,
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept in the audit log' }),
});

/** With what the path says. */
export const PlayerStatusOrder = Type.Object({ playerId: opaque(''), ...PlayerStatusBody.properties });

export const PlayerStatusResponse = Type.Object({ playerId: Type.String(), status: PlayerStatus });

export type PlayerStatusBody = Static<typeof PlayerStatusBody>;
