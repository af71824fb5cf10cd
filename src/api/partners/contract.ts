/** Schemas and operations of partners, their API keys and their moves between cells. */
import { type Static, Type } from '#typebox';
import { KeyStatus } from '../../domain/apiKey.js';
import { CELL_MAX } from '../../domain/entryId.js';
import { ERRORS } from '../../domain/errors.js';
import { PartnerMove } from '../../domain/partnerMove.js';
import {
  AUDIT_REASON,
  choice,
  EMAIL_PATTERN,
  KEY_PREFIX,
  nullable,
  opaque,
  PATH,
  SLUG_PATTERN,
  timestamp,
} from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';
import { DealingState } from '../dealing/contract.js';

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

const PARTNER = {
  partnerId: 2,
  slug: 'acme',
  name: 'Acme Games',
  environment: 'sandbox',
  isActive: true,
  dealing: 'ON',
  cell: 0,
  createdAt: '2026-11-22T04:13:56.258Z',
  spinRateLimit: 300,
  apiRateLimit: 600,
  openingBalanceUsd: 1000,
  balanceMode: 'track',
  fundingUsd: null,
  largeWinThresholdUsd: 10,
  minReadyBlocks: 2,
  maxGames: 1000,
  maxParSheets: 1000,
  maxWebhooks: 50,
  contactEmail: 'games@acme.example',
};

const MOVE = {
  moveId: 1,
  partnerId: 2,
  fromCell: 0,
  toCell: 5,
  requestedAt: '2026-11-22T04:20:00.950Z',
  switchedAt: null,
  finishedAt: null,
  failure: null,
};

const KEY = {
  keyId: 2,
  name: 'back end',
  prefix: 'ks_AAAAAA',
  createdAt: '2026-11-22T04:13:56.480Z',
  expiresAt: '2027-12-31T00:00:00.000Z',
};

export const movePartner = endpoint(
  {
    method: 'post',
    path: '/partners/{id}/move',
    params: { id: PATH.partnerId },
    operationId: 'movePartner',
    tag: 'Partners',
    summary: 'Move a partner to another cell, while it spins',
    scope: 'operator',
    body: MoveBody,
    status: 202,
    response: PartnerMove,
    errors: [ERRORS.partnerNotFound],
    failure: ERRORS.internal,
  },
  {
    description:
      'The answer comes at once; `GET /partners/{id}/moves` tells how far it is. Spins wait while the partner is switched, less than two seconds. A move that fails again and again is given up: the partner stays where it is.',
    request: { cell: 5 },
    response: MOVE,
  },
);

export const listMoves = endpoint(
  {
    method: 'get',
    path: '/partners/{id}/moves',
    params: { id: PATH.partnerId },
    operationId: 'listMoves',
    tag: 'Partners',
    summary: 'Moves of a partner from cell to cell',
    scope: 'operator',
    status: 200,
    response: PartnerMoves,
    errors: [ERRORS.partnerNotFound],
    failure: ERRORS.internal,
  },
  {
    description: 'From `switchedAt` on the partner is dealt for in the new cell.',
    response: {
      moves: [{ ...MOVE, switchedAt: '2026-11-22T04:20:01.310Z', finishedAt: '2026-11-22T04:20:04.820Z' }],
    },
  },
);

export const createPartner = endpoint(
  {
    method: 'post',
    path: '/partners',
    operationId: 'createPartner',
    tag: 'Partners',
    summary: 'Create a partner',
    scope: 'operator',
    body: PartnerBody,
    status: 201,
    response: PartnerResponse,
    errors: [ERRORS.slugTaken],
    failure: ERRORS.partnerCreationFailed,
  },
  {
    description:
      'Opens an account. Whether it is sandbox or production never changes. Settings that are not sent have their defaults. Without `cell` the partner comes to the cell that has the fewest; a cell that does not exist, or that drains, is refused.',
    request: {
      slug: 'acme',
      name: 'Acme Games',
      environment: 'sandbox',
      contactEmail: 'games@acme.example',
      largeWinThresholdUsd: 10,
    },
    response: PARTNER,
  },
);

export const listPartners = endpoint(
  {
    method: 'get',
    path: '/partners',
    operationId: 'listPartners',
    tag: 'Partners',
    summary: 'List the partners',
    scope: 'operator',
    status: 200,
    response: PartnerList,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description: 'Lists all partners with their settings, the deactivated ones too.',
    response: { partners: [PARTNER] },
  },
);

export const getPartner = endpoint(
  {
    method: 'get',
    path: '/partners/{id}',
    params: { id: PATH.partnerId },
    operationId: 'getPartner',
    tag: 'Partners',
    summary: 'A partner with its settings',
    scope: 'operator',
    status: 200,
    response: PartnerResponse,
    errors: [ERRORS.partnerNotFound],
    failure: ERRORS.internal,
  },
  {
    description: 'Returns one partner with its settings.',
    response: PARTNER,
  },
);

export const updatePartner = endpoint(
  {
    method: 'patch',
    path: '/partners/{id}',
    params: { id: PATH.partnerId },
    operationId: 'updatePartner',
    tag: 'Partners',
    summary: "Change a partner's settings, or deactivate it",
    scope: 'operator',
    body: PartnerPatch,
    status: 200,
    response: PartnerResponse,
    errors: [ERRORS.partnerNotFound],
    failure: ERRORS.internal,
  },
  {
    description:
      'Members that are not sent keep their values. Limits, `isActive` and `dealing` are in force on every front end within a second.',
    request: { spinRateLimit: 600 },
    response: { ...PARTNER, spinRateLimit: 600 },
  },
);

export const issueKey = endpoint(
  {
    method: 'post',
    path: '/partners/{id}/keys',
    params: { id: PATH.partnerId },
    operationId: 'issueKey',
    tag: 'API keys',
    summary: 'Issue an API key; it is shown this once',
    scope: 'operator',
    body: KeyBody,
    status: 201,
    response: IssuedKey,
    errors: [ERRORS.partnerNotFound, ERRORS.partnerIsDeactivated],
    failure: ERRORS.keyIssueFailed,
  },
  {
    description: 'The answer shows the key, of which the service keeps only the SHA-256 and `prefix`.',
    request: { name: 'back end', expiresAt: '2027-12-31T00:00:00.000Z' },
    // Example text only: nobody has this key.
    response: { ...KEY, apiKey: `ks_${'A'.repeat(43)}` },
  },
);

export const listKeys = endpoint(
  {
    method: 'get',
    path: '/partners/{id}/keys',
    params: { id: PATH.partnerId },
    operationId: 'listKeys',
    tag: 'API keys',
    summary: "List a partner's keys, without their secrets",
    scope: 'operator',
    status: 200,
    response: KeyList,
    errors: [ERRORS.partnerNotFound],
    failure: ERRORS.internal,
  },
  {
    description: 'Lists the keys of a partner without their secrets, the revoked and expired ones too.',
    response: { keys: [{ ...KEY, status: 'active', lastUsedAt: '2026-11-22T04:14:01.783Z' }] },
  },
);

export const revokeKey = endpoint(
  {
    method: 'delete',
    path: '/partners/{id}/keys/{keyId}',
    params: { id: PATH.partnerId, keyId: PATH.keyId },
    query: ReasonQuery,
    operationId: 'revokeKey',
    tag: 'API keys',
    summary: 'Revoke an API key',
    scope: 'operator',
    status: 204,
    errors: [ERRORS.partnerNotFound, ERRORS.keyNotFound, ERRORS.keyForeign],
    failure: ERRORS.internal,
  },
  {
    description: `A revoked key is refused with ${ERRORS.revokedApiKey.code} on every front end within a second, for ever.`,
  },
);
