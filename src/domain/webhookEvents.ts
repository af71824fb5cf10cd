/** Schemas of the events for webhooks and the event feed (docs/contract.md §13). */
import { Type } from '#typebox';
import { adjustmentMembers } from './adjustment.js';
import { choice, nullable, SandboxMark, timestamp, usd } from './schema.js';

export const EVENT_TYPES = [
  'spin.large_win',
  'settlement.report_ready',
  'block.low_reserve',
  'api_key.expiring',
  'player.adjusted',
  'game.status_changed',
] as const;

export const StatusOfGame = choice(
  ['ACTIVE', 'SUSPENDED', 'CLOSED', 'DEALING_OFF'],
  '`DEALING_OFF`: the operator has switched off dealing for this partner or for all games',
);

export const GameStatusReason = choice(
  ['OPERATOR', 'RESTORED', 'VOIDED', 'SOLD_OUT', 'SWITCH', 'PARTNER_SWITCH'],
  'Reason why the game stopped or resumed. More values may be added',
);

const eventOf = <Data extends Type.TProperties>(event: string, data: Data) =>
  Type.Object({
    id: Type.String({ description: 'Id of the event, the same in every attempt and for every webhook' }),
    event: Type.Literal(event),
    createdAt: timestamp(),
    partnerId: Type.Integer(),
    data: Type.Object(data),
    test: Type.Optional(Type.Boolean({ description: 'True if `POST /webhooks/{id}/test` made the event' })),
  });

export const EVENTS = {
  'spin.large_win': eventOf('spin.large_win', {
    spinId: Type.String({ description: 'Id of the spin, or the roundId of the blackjack round' }),
    roundId: Type.Optional(Type.String({ description: 'Id of the blackjack round; absent for a spin' })),
    gameId: Type.Integer(),
    playerId: Type.String(),
    payoutUsd: usd("Payout of the spin or round, above the partner's threshold"),
    prizeTier: Type.Integer({
      minimum: 0,
      maximum: 6,
      description: 'Prize tier of the spin; 0 for a blackjack round',
    }),
    requestId: Type.Optional(Type.String()),
    sandbox: SandboxMark,
  }),
  'settlement.report_ready': eventOf('settlement.report_ready', {
    reportDate: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
    revision: Type.Integer(),
    integrityHash: Type.String(),
    totalSpins: Type.Integer(),
    ggrUsd: usd('Gross gaming revenue: wagered − paid out'),
  }),
  'block.low_reserve': eventOf('block.low_reserve', {
    gameId: Type.Integer(),
    readyBlocks: Type.Integer({ minimum: 0 }),
    minReadyBlocks: Type.Integer({ minimum: 1 }),
  }),
  'api_key.expiring': eventOf('api_key.expiring', {
    keyId: Type.Integer(),
    name: nullable(Type.String()),
    expiresAt: timestamp(),
    daysLeft: Type.Integer({ description: 'Days until the key expires: 30, 7 or 1' }),
  }),
  'player.adjusted': eventOf('player.adjusted', adjustmentMembers),
  'game.status_changed': eventOf('game.status_changed', {
    gameId: Type.Integer(),
    status: StatusOfGame,
    reason: GameStatusReason,
  }),
  'api.version.deprecated': eventOf('api.version.deprecated', {
    version: Type.String(),
    deprecatedAt: timestamp(),
    sunsetAt: timestamp(),
    successor: nullable(Type.String()),
    migrationUrl: nullable(Type.String()),
  }),
} satisfies Record<(typeof EVENT_TYPES)[number] | 'api.version.deprecated', Type.TSchema>;
