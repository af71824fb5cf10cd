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
  SLUG_PATTERN,
  timestamp,
} from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';
import { DealingState } from '../dealing/contract.js';

const { operator } = endpointsOf('Partners');
const keys = endpointsOf('API keys').operator;

const RATE_LIMIT = { minimum: 1, maximum: 1_000_000_000 };

export const BalanceMode = Type.Union([Type.Literal('track'), Type.Literal('enforce')], {
  description:
    '`enforce` refuses a wager above the balance. `track` records the balance without limiting wagers.',
});

const cap = (description: string) => Type.Integer({ minimum: 0, maximum: 100_000, description });

export const settings = {
  spinRateLimit: Type.Integer({ ...RATE_LIMIT, description: 'Maximum number of spins in a minute' }),
  apiRateLimit: Type.Integer({ ...RATE_LIMIT, description: 'Maximum number of other requests in a minute' }),
  openingBalanceUsd: Type.Number({ minimum: 0, description: 'Balance of a new player, in USD' }),
  balanceMode: BalanceMode,
  fundingUsd: nullable(
    Type.Number({
      minimum: 0,
      description:
        'Maximum by which the total payouts may exceed the total wagers of all players, in USD; null if unlimited',
    }),
  ),
  largeWinThresholdUsd: Type.Number({ minimum: 0 }),
  minReadyBlocks: Type.Integer({ minimum: 1, maximum: 100 }),
  maxGames: cap(
    'Maximum number of games that the partner can register. Games that the operator creates do not count.',
  ),
  maxParSheets: cap('Maximum number of active PAR sheets of the partner'),
  maxWebhooks: Type.Integer({
    minimum: 0,
    maximum: 200,
    description: 'Maximum number of webhooks of the partner',
  }),
  contactEmail: nullable(Type.String({ pattern: EMAIL_PATTERN })),
};

const PARTNER_NAME = opaque('Name of the partner');

export const Environment = choice(['sandbox', 'production']);

export const PartnerBody = Type.Object({
  slug: Type.String({ pattern: SLUG_PATTERN }),
  name: PARTNER_NAME,
  environment: Environment,
  cell: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: CELL_MAX,
      description: 'Number of the cell. Default: the cell with the fewest partners.',
    }),
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
  cell: Type.Integer({ description: 'Number of the cell that contains the partner' }),
  createdAt: timestamp(),
  ...settings,
});

export const MoveBody = Type.Object({
  cell: Type.Integer({
    minimum: 0,
    maximum: CELL_MAX,
    description: 'Number of the cell to which the partner moves',
  }),
  reason: Type.Optional(AUDIT_REASON),
});

export const PartnerMoves = Type.Object({
  moves: Type.Array(PartnerMove, { description: 'The newest 20 moves, newest first' }),
});

export type MoveBody = Static<typeof MoveBody>;

export const PartnerList = Type.Object({ partners: Type.Array(PartnerResponse) });

export const KeyBody = Type.Object({
  name: Type.Optional(opaque('Name that describes the purpose of the key')),
  expiresAt: Type.Optional(
    nullable(
      Type.String({
        description:
          'Time at which the key expires, as an RFC 3339 time in the future; null if the key never expires',
      }),
    ),
  ),
});

export const KeyPatch = Type.Object({
  expiresAt: nullable(
    Type.String({
      description:
        'New time at which the key expires, as an RFC 3339 time in the future; null if the key never expires',
    }),
  ),
  reason: Type.Optional(AUDIT_REASON),
});

/** Time in seconds for which a replaced key stays valid, by default and at most: one day, 30 days. */
export const OVERLAP_DEFAULT_S = 86_400;
const OVERLAP_MAX_S = 2_592_000;

export const KeyRotationBody = Type.Object({
  ...KeyBody.properties,
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 60,
      maximum: OVERLAP_MAX_S,
      default: OVERLAP_DEFAULT_S,
      description: 'Time for which the replaced key stays valid, in seconds. Default: 24 hours.',
    }),
  ),
  reason: Type.Optional(AUDIT_REASON),
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
  apiKey: Type.String({ description: 'API key, shown only in this response' }),
});

export const RotatedKey = Type.Object({
  ...IssuedKey.properties,
  replacedKeyId: Type.Integer({ description: 'Id of the key that the new key replaces' }),
  replacedExpiresAt: Type.String({
    format: 'date-time',
    description:
      'Time at which the replaced key expires: after the overlap, or earlier if it expired earlier anyway',
  }),
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

export const movePartner = operator.post('movePartner', '/partners/{id}/move', {
  summary: 'Move a partner to another cell',
  description:
    'Starts the move and responds at once. `GET /partners/{id}/moves` shows its progress. The partner can spin during the move; spins wait less than two seconds while the partner is switched. A move that fails repeatedly is abandoned, and the partner stays in its cell.',
  body: MoveBody,
  status: 202,
  response: PartnerMove,
  bodyExample: { cell: 5 },
  example: MOVE,
});

export const listMoves = operator.get('listMoves', '/partners/{id}/moves', {
  summary: "List a partner's moves between cells",
  description: 'Lists the newest moves. From `switchedAt` on, the new cell deals for the partner.',
  response: PartnerMoves,
  example: {
    moves: [{ ...MOVE, switchedAt: '2026-11-22T04:20:01.310Z', finishedAt: '2026-11-22T04:20:04.820Z' }],
  },
});

export const createPartner = operator.post('createPartner', '/partners', {
  summary: 'Create a partner',
  description:
    'Opens a sandbox or production account. The environment never changes. Omitted settings have their default values. Without `cell` the partner is placed in the cell with the fewest partners. A cell that does not exist or is draining is refused.',
  body: PartnerBody,
  status: 201,
  response: PartnerResponse,
  errors: [ERRORS.slugTaken],
  failure: ERRORS.partnerCreationFailed,
  bodyExample: {
    slug: 'acme',
    name: 'Acme Games',
    environment: 'sandbox',
    contactEmail: 'games@acme.example',
    largeWinThresholdUsd: 10,
  },
  example: PARTNER,
});

export const listPartners = operator.get('listPartners', '/partners', {
  summary: 'List the partners',
  description: 'Lists all partners with their settings, including deactivated partners.',
  response: PartnerList,
  example: { partners: [PARTNER] },
});

export const getPartner = operator.get('getPartner', '/partners/{id}', {
  summary: 'Get a partner with its settings',
  description: 'Returns one partner with its settings.',
  response: PartnerResponse,
  example: PARTNER,
});

export const updatePartner = operator.patch('updatePartner', '/partners/{id}', {
  summary: "Change a partner's settings, or deactivate it",
  description:
    'Omitted members keep their values. `isActive`, `dealing` and the limits take effect on every front end within a second.',
  body: PartnerPatch,
  response: PartnerResponse,
  bodyExample: { spinRateLimit: 600 },
  example: { ...PARTNER, spinRateLimit: 600 },
});

export const issueKey = keys.post('issueKey', '/partners/{id}/keys', {
  summary: 'Issue an API key',
  description:
    'Returns the key. It is shown only once, because the service stores only its SHA-256 and `prefix`.',
  body: KeyBody,
  status: 201,
  response: IssuedKey,
  errors: [ERRORS.partnerIsDeactivated],
  failure: ERRORS.keyIssueFailed,
  bodyExample: { name: 'back end', expiresAt: '2027-12-31T00:00:00.000Z' },
  // Example text only: no partner has this key.
  example: { ...KEY, apiKey: `ks_${'A'.repeat(43)}` },
});

export const listKeys = keys.get('listKeys', '/partners/{id}/keys', {
  summary: "List a partner's keys, without their secrets",
  description: 'Lists the keys of a partner without their secrets, including revoked and expired keys.',
  response: KeyList,
  example: { keys: [{ ...KEY, status: 'active', lastUsedAt: '2026-11-22T04:14:01.783Z' }] },
});

export const updateKey = keys.patch('updateKey', '/partners/{id}/keys/{keyId}', {
  summary: 'Change the time at which an API key expires',
  description: `Every front end learns of the new time within a second. A key that is revoked or has expired cannot be changed (${ERRORS.validationFailed.code}); issue another key. The event \`api_key.expiring\` follows for the new time.`,
  body: KeyPatch,
  response: ApiKey,
  bodyExample: { expiresAt: '2028-12-31T00:00:00.000Z' },
  example: { ...KEY, expiresAt: '2028-12-31T00:00:00.000Z', status: 'active', lastUsedAt: null },
});

export const rotateKey = keys.post('rotateKey', '/partners/{id}/keys/{keyId}/rotate', {
  summary: 'Issue a new API key, and let the key that it replaces expire after an overlap',
  description: `Both keys are valid during the overlap, so that the partner can change its back end without an interruption. The new key has the name of the replaced key if \`name\` is omitted, and never expires if \`expiresAt\` is omitted. It is shown only once. A key that is revoked or has expired cannot be rotated (${ERRORS.validationFailed.code}).`,
  body: KeyRotationBody,
  isBodyOptional: true,
  status: 201,
  response: RotatedKey,
  errors: [ERRORS.partnerIsDeactivated],
  failure: ERRORS.keyIssueFailed,
  bodyExample: { overlapSeconds: 3600 },
  // Example text only: no partner has this key.
  example: {
    ...KEY,
    keyId: 3,
    expiresAt: null,
    apiKey: `ks_${'A'.repeat(43)}`,
    replacedKeyId: 2,
    replacedExpiresAt: '2026-11-22T05:13:56.480Z',
  },
});

export const revokeKey = keys.delete('revokeKey', '/partners/{id}/keys/{keyId}', {
  summary: 'Revoke an API key',
  description: `Every front end refuses a revoked key permanently with ${ERRORS.revokedApiKey.code} within a second.`,
  query: ReasonQuery,
});
