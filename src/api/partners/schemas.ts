/** Partners and their keys. */
import { type Static, Type } from '#typebox';
import { CELL_MAX } from '../../domain/entryId.js';
import {
  AUDIT_REASON,
  choice,
  EMAIL_PATTERN,
  KEY_PREFIX,
  nullable,
  opaque,
  SLUG_PATTERN,
  timestamp,
} from '../../domain/schema.js';
import { DealingState } from '../dealing/schemas.js';

const RATE_LIMIT = { minimum: 1, maximum: 1_000_000_000 };

export const BalanceMode = Type.Union([Type.Literal('track'), Type.Literal('enforce')], {
  description: 'enforce: a wager above the balance is refused; track: the balance is only recorded',
});
const cap = (description: string) => Type.Integer({ minimum: 0, maximum: 100_000, description });

const settings = {
  spinRateLimit: Type.Integer({ ...RATE_LIMIT, description: 'Spins in a minute' }),
  apiRateLimit: Type.Integer({ ...RATE_LIMIT, description: 'Other requests in a minute' }),
  openingBalanceUsd: Type.Number({ minimum: 0, description: "A player's first balance" }),
  balanceMode: BalanceMode,
  fundingUsd: nullable(Type.Number({ minimum: 0, description: 'What the operator covers; null: no bound' })),
  largeWinThresholdUsd: Type.Number({ minimum: 0 }),
  minReadyBlocks: Type.Integer({ minimum: 1, maximum: 100 }),
  maxGames: cap('Games that the partner may register; those that the operator makes do not count'),
  maxParSheets: cap('Active PAR sheets that the partner may have'),
  maxWebhooks: Type.Integer({ minimum: 0, maximum: 200, description: 'Webhooks that the partner may have' }),
  contactEmail: nullable(Type.String({ pattern: EMAIL_PATTERN })),
};

const PARTNER_NAME = opaque('Name of the partner');

export const Environment = choice(['sandbox', 'production']);

export const PartnerBody = Type.Object({
  slug: Type.String({ pattern: SLUG_PATTERN }),
  name: PARTNER_NAME,
  environment: Environment,
  cell: Type.Optional(
    Type.Integer({ minimum: 0, maximum: CELL_MAX, description: 'Default: the one with the fewest partners' }),
  ),
  ...Type.Partial(Type.Object(settings)).properties,
});

export const PartnerPatch = Type.Partial(
  Type.Object({
    name: PARTNER_NAME,
    isActive: Type.Boolean(),
    dealing: DealingState,
    ...settings,
    reason: AUDIT_REASON,
  }),
);

export const PartnerResponse = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  name: Type.String(),
  environment: Environment,
  isActive: Type.Boolean(),
  dealing: DealingState,
  cell: Type.Integer({ description: 'The cell that it lives in (docs/scaling.md)' }),
  createdAt: timestamp(),
  ...settings,
});

export const MoveBody = Type.Object({
  cell: Type.Integer({ minimum: 0, maximum: CELL_MAX, description: 'The cell that the partner moves to' }),
  reason: Type.Optional(AUDIT_REASON),
});

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

export const PartnerMoves = Type.Object({
  moves: Type.Array(PartnerMove, { description: 'The newest 20, newest first' }),
});

export type MoveBody = Static<typeof MoveBody>;

export const PartnerList = Type.Object({ partners: Type.Array(PartnerResponse) });

export const KeyBody = Type.Object({
  name: Type.Optional(opaque('What the key is for')),
  expiresAt: Type.Optional(
    nullable(Type.String({ description: 'RFC 3339 time in the future; null: never' })),
  ),
});

const keyMembers = {
  keyId: Type.Integer(),
  name: nullable(Type.String()),
  prefix: KEY_PREFIX,
  createdAt: timestamp(),
  expiresAt: nullable(timestamp()),
};

export const IssuedKey = Type.Object({
  ...keyMembers,
  apiKey: Type.String({ description: 'Shown this once' }),
});

export const ReasonQuery = Type.Object({ reason: Type.Optional(AUDIT_REASON) });

export const KeyStatus = choice(['active', 'revoked', 'expired']);

export const ApiKey = Type.Object({
  ...keyMembers,
  status: KeyStatus,
  lastUsedAt: nullable(timestamp()),
});

export const KeyList = Type.Object({
  keys: Type.Array(ApiKey),
});

export type PartnerBody = Static<typeof PartnerBody>;

export type PartnerPatch = Static<typeof PartnerPatch>;

export type KeyBody = Static<typeof KeyBody>;
