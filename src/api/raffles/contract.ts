/** Schemas and operations of raffles and their pools. */
import { type Static, Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { PrizeTableUsd } from '../../domain/games/prizeTable.js';
import { PoolPrize, PoolReveal } from '../../domain/games/rafflePool.js';
import { CONFIG_NAME_PATTERN, nullable, opaque, timestamp, usd, VoidBody } from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';
import { GameResponse, RaffleRefunds } from '../games/contract.js';

const { partner, operator } = endpointsOf('Raffles');

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
  ticketPriceUsd: usd('Price of a ticket, in USD'),
  ticketsRemaining: Type.Integer(),
});

export const RaffleVoidResponse = Type.Object({
  gameConfigId: Type.Integer(),
  status: Type.String({ description: 'Status of the raffle, always `CLOSED`' }),
  statusReason: Type.String({ description: 'Reason for the status, always `VOIDED`' }),
  ...RaffleRefunds.properties,
  isInForce: Type.Boolean({
    description:
      'True if Redis sells no more tickets. False in a response with status 202: the void is on record, and a worker ends the sale.',
  }),
});

export const PoolResponse = Type.Object({
  gameConfigId: Type.Integer(),
  displayName: Type.String(),
  configName: Type.String(),
  status: Type.String(),
  statusReason: Type.Optional(
    Type.String({ description: 'Reason for the status, as in the list of games: `RESTORED` or `VOIDED`' }),
  ),
  ticketPriceUsd: Type.Number(),
  poolSize: Type.Integer(),
  prizes: Type.Array(PoolPrize, {
    description: 'Prize table. The ticket code of the n-th prize is n, and 0 means no prize.',
  }),
  poolCommitment: nullable(
    Type.String({
      description:
        'Commitment to the order of the tickets, hexadecimal; null until the pool is sealed. It never changes after that.',
    }),
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

export const voidRaffle = operator.post('voidRaffle', '/raffles/{id}/void', {
  summary: 'Void a raffle and refund every committed ticket',
  description:
    'Voids a raffle that is not sold out, such as a raffle that is suspended as `RESTORED`. A response with status 200 follows the end of the sale in Redis, so no ticket that is requested after it is sold. After the status 202 repeat the call until it returns 200. The status is permanently `CLOSED` with `statusReason` `VOIDED`. Once all tickets in progress are committed, the service refunds the price of each committed ticket exactly once, as an adjustment. A ticket that was sold before the end of the sale keeps its prize. The refunds continue in the background. Repeat the call to see their progress; the first reason is kept.',
  body: VoidBody,
  mayBePending:
    'The void is on record, and Redis has not confirmed the end of the sale. A worker ends it within seconds of Redis accepting it. Until then a front end that does not know of the void yet may sell tickets, which are refunded like the others.',
  response: RaffleVoidResponse,
  hasSums: true,
  errors: [ERRORS.gameTypeUnsupported, ERRORS.raffleClosed],
  bodyExample: { reason: 'Tickets were shown that a restore of the database has lost' },
  example: {
    gameConfigId: 4,
    status: 'CLOSED',
    statusReason: 'VOIDED',
    tickets: 5,
    refunded: 5,
    failed: 0,
    refundedUsd: 5,
    isDone: true,
    isInForce: true,
  },
  pendingExample: {
    gameConfigId: 4,
    status: 'CLOSED',
    statusReason: 'VOIDED',
    tickets: 5,
    refunded: 0,
    failed: 0,
    refundedUsd: 0,
    isDone: false,
    isInForce: false,
  },
});

export const createRaffle = operator.post('createRaffle', '/partners/{id}/raffles', {
  summary: 'Create a raffle from a certified prize table',
  description:
    'Creates a raffle from a certified prize table. Tickets without a prize fill the pool up to `poolSize`. The status is `SEALING` for some seconds until the order of the tickets is sealed, then `ACTIVE`, and `CLOSED` after the last ticket.',
  body: RaffleBody,
  status: 201,
  response: RaffleResponse,
  errors: [ERRORS.partnerIsDeactivated, ERRORS.configNameTaken],
  failure: ERRORS.gameRegistrationFailed,
  bodyExample: {
    displayName: 'Spring Raffle',
    configName: 'SPRING_RAFFLE',
    ticketPriceUsd: 1,
    poolSize: 8,
    prizes: PRIZES,
  },
  example: {
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
});

export const getPool = partner.get('getPool', '/games/{id}/pool', {
  summary: 'Get the sealed pool of a raffle, with its proof once all tickets are sold',
  description:
    'Returns the prize table and the commitment that was published before the first ticket. After the last ticket, `reveal` proves that the order of the tickets matches the commitment.',
  response: PoolResponse,
  errors: [ERRORS.notFound],
  example: {
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
});
