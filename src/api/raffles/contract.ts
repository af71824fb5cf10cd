/** Schemas and operations of raffles and their pools. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { PrizeTableUsd } from '../../domain/games/prizeTable.js';
import { PoolPrize, PoolReveal } from '../../domain/games/rafflePool.js';
import {
  CONFIG_NAME_PATTERN,
  nullable,
  opaque,
  PATH,
  timestamp,
  usd,
  VoidBody,
} from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';
import { GameResponse } from '../games/contract.js';

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

const PRIZES = [
  { prizeName: 'Dinner for two', prizeTier: 4, valueUsd: 5, count: 1 },
  { prizeName: 'Cinema ticket', prizeTier: 1, valueUsd: 1, count: 2 },
];

export const voidRaffle = endpoint(
  {
    method: 'post',
    path: '/raffles/{id}/void',
    params: { id: PATH.gameId },
    operationId: 'voidRaffle',
    tag: 'Raffles',
    summary:
      'Void a raffle: it is closed for good, and each booked ticket is refunded; again: how far that is',
    scope: 'operator',
    body: VoidBody,
    status: 200,
    response: RaffleVoidResponse,
    hasSums: true,
    errors: [ERRORS.gameNotFound, ERRORS.gameTypeUnsupported, ERRORS.raffleClosed],
    failure: ERRORS.internal,
  },
  {
    description:
      'Voids a raffle that is not sold out, such as one that is suspended as `RESTORED`. No ticket is sold from then on, and the status is `CLOSED` with `statusReason` `VOIDED` for good. Once every ticket that was under way is booked, each booked ticket is refunded as an adjustment of its price, exactly once; prizes that were paid stay paid. The refunds go on by themselves: the same call again tells how far they are, and keeps the first reason.',
    request: { reason: 'Tickets were shown that a restore of the database has lost' },
    response: {
      gameConfigId: 4,
      status: 'CLOSED',
      statusReason: 'VOIDED',
      tickets: 5,
      refunded: 5,
      failed: 0,
      refundedUsd: 5,
      isDone: true,
    },
  },
);

export const createRaffle = endpoint(
  {
    method: 'post',
    path: '/partners/{id}/raffles',
    params: { id: PATH.partnerId },
    operationId: 'createRaffle',
    tag: 'Raffles',
    summary: 'Make a raffle from a certified prize table; its pool is sealed within seconds',
    scope: 'operator',
    body: RaffleBody,
    status: 201,
    response: RaffleResponse,
    errors: [ERRORS.partnerNotFound, ERRORS.partnerIsDeactivated, ERRORS.configNameTaken],
    failure: ERRORS.gameRegistrationFailed,
  },
  {
    description:
      'Makes a raffle of a certified prize table. Tickets without a prize fill the pool up to `poolSize`. The status is `SEALING` until the order of the tickets is sealed, then `ACTIVE`, and `CLOSED` after the last ticket.',
    request: {
      displayName: 'Spring Raffle',
      configName: 'SPRING_RAFFLE',
      ticketPriceUsd: 1,
      poolSize: 8,
      prizes: PRIZES,
    },
    response: {
      gameConfigId: 4,
      displayName: 'Spring Raffle',
      configName: 'SPRING_RAFFLE',
      gameType: 'raffle',
      status: 'SEALING',
      parSheetId: null,
      minWagerUsd: 1,
      maxWagerUsd: 1,
      wagerIncrementUsd: 1,
      partnerId: 2,
      ticketPriceUsd: 1,
      ticketsRemaining: 8,
      poolSize: 8,
      poolCommitment: null,
    },
  },
);

export const getPool = endpoint(
  {
    method: 'get',
    path: '/games/{id}/pool',
    params: { id: PATH.gameId },
    operationId: 'getPool',
    tag: 'Raffles',
    summary: 'The sealed pool of a raffle: its commitment; once the last ticket is sold, all that proves it',
    scope: 'partner',
    status: 200,
    response: PoolResponse,
    errors: [ERRORS.gameNotRegistered, ERRORS.notFound],
    failure: ERRORS.internal,
  },
  {
    description:
      'Shows the prize table and the commitment that was published before the first ticket. After the last ticket `reveal` proves that the order of the tickets was the committed one.',
    response: {
      gameConfigId: 4,
      displayName: 'Spring Raffle',
      configName: 'SPRING_RAFFLE',
      status: 'CLOSED',
      ticketPriceUsd: 1,
      poolSize: 8,
      prizes: PRIZES,
      poolCommitment: 'c52d486e3cfaf7bd8c98764f22378544f585fed376706fccfe80cbb891459928',
      sealedAt: '2026-11-22T04:13:57.105Z',
      closedAt: '2026-11-22T04:14:01.623Z',
      reveal: {
        seed: '3b7cc7c2c42d37ce510df6304b27de6fe78d6aeeb7b29e3afd546fefcaf6dc0f',
        nonce: '41fedbfe34fb19702d3cace7c6da79b108d483532eafd8ba15ab9f9e7828cb97',
        order: 'AAAAAAIAAAAAAAEAAgAAAA==',
      },
    },
  },
);
