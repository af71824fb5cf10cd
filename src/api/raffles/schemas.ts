/** Raffles: how one is made, and its pool. */
import { type Static, Type } from '#typebox';
import { PrizeTableUsd } from '../../domain/games/prizeTable.js';
import { CONFIG_NAME_PATTERN, nullable, opaque, timestamp, usd } from '../../domain/schema.js';
import { GameResponse } from '../games/schemas.js';

export const RaffleBody = Type.Object({
  displayName: opaque('Name shown to players'),
  configName: Type.String({
    pattern: CONFIG_NAME_PATTERN,
    description: "System identifier, unique across the partner's games",
  }),
  ...PrizeTableUsd.properties,
});

export const RaffleResponse = Type.Object({
  ...GameResponse.properties,
  partnerId: Type.Integer(),
  ticketPriceUsd: usd('What a ticket costs'),
  ticketsRemaining: Type.Integer(),
});

export const RaffleVoidResponse = Type.Object({
  gameConfigId: Type.Integer(),
  status: Type.String({ description: '`CLOSED`' }),
  statusReason: Type.String({ description: '`VOIDED`' }),
  tickets: Type.Integer({ description: 'Booked tickets; some that were under way may still come in' }),
  refunded: Type.Integer({ description: 'Tickets that are refunded: the refund is in the ledger' }),
  failed: Type.Integer({
    description: 'Tickets that can not be refunded, since the balance would pass its bound',
  }),
  refundedUsd: usd('Sum of the refunds'),
  isDone: Type.Boolean({ description: 'No ticket is under way, and each is refunded or failed' }),
});

export const PoolPrize = Type.Object({
  prizeName: Type.String(),
  prizeTier: Type.Integer(),
  valueUsd: Type.Number(),
  count: Type.Integer(),
});

export const PoolReveal = Type.Object(
  {
    seed: Type.String({ description: 'Hexadecimal, 32 bytes: the key of the shuffle' }),
    nonce: Type.String({ description: 'Hexadecimal, 32 bytes' }),
    order: Type.String({
      description: 'Base64: the ticket codes as they were dealt, 16 bits each, little endian',
    }),
  },
  { description: 'Null until the last ticket is sold, or the raffle is voided and its last ticket booked' },
);

export const PoolResponse = Type.Object({
  gameConfigId: Type.Integer(),
  displayName: Type.String(),
  configName: Type.String(),
  status: Type.String(),
  statusReason: Type.Optional(
    Type.String({ description: 'As in the list of games: `RESTORED` or `VOIDED`' }),
  ),
  ticketPriceUsd: Type.Number(),
  poolSize: Type.Integer(),
  prizes: Type.Array(PoolPrize, {
    description: 'The prize table; the ticket code of the n-th prize is n, that of no win 0',
  }),
  poolCommitment: nullable(
    Type.String({ description: 'Hexadecimal; null until the pool is sealed. Never changes after that' }),
  ),
  sealedAt: nullable(timestamp()),
  closedAt: nullable(timestamp()),
  reveal: nullable(PoolReveal),
});

export type RaffleBody = Static<typeof RaffleBody>;
