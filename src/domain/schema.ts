/** Schemas shared by many requests and responses: texts, amounts, times, ids, pages. */
import { type Static, Type } from '#typebox';
import { CELL_MAX } from './entryId.js';
import { MAX_MICROS, usdToMicros } from './money.js';

/**
 * 1 to `most` Unicode characters, without control characters and lone surrogates. The text is opaque: case
 * and normal form are kept.
 */
export const opaquePattern = (most: number): string => `^[^\\p{Cc}\\p{Cs}]{1,${most}}$`;
const OPAQUE_PATTERN = opaquePattern(128);

/**
 * 1 to 2,000 Unicode characters, without lone surrogates and without control characters except newline and
 * tab.
 */
export const REASON_PATTERN = '^(?:[^\\p{Cc}\\p{Cs}]|[\\n\\t]){1,2000}$';

export const CONFIG_NAME_PATTERN = '^[A-Z0-9_]{1,64}$';

export const SLUG_PATTERN = '^[a-z0-9-]{1,64}$';

/** Name of a person or program that runs the service; it may be an e-mail address. */
export const OPERATOR_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$';

/**
 * Characters of an e-mail address, without those that separate or enclose addresses in a list (RFC 5322,
 * `specials`).
 */
const NO_SPECIALS = '[^\\s@\\p{Cc}\\p{Cs}()<>\\[\\]:;,"\\\\]';
export const EMAIL_PATTERN = `^${NO_SPECIALS}{1,64}@${NO_SPECIALS}{1,190}$`;

/**
 * Position in the ledger as settlement reports have it in `ledgerFrom` and `ledgerTo`. It has at most 19
 * digits, like the largest entry id.
 */
export const ENTRY_POSITION_PATTERN = '^(0|[1-9][0-9]{0,18})$';

/** Descriptions of the patterns in words, for fault messages. */
export const PATTERN_MESSAGES: Readonly<Record<string, string>> = {
  [OPAQUE_PATTERN]: 'must have 1 to 128 Unicode characters, without control characters or lone surrogates',
  [REASON_PATTERN]:
    'must have 1 to 2,000 Unicode characters, without lone surrogates, and without control characters except newline and tab',
  [CONFIG_NAME_PATTERN]: 'must have 1 to 64 characters, only uppercase letters, digits and underscores',
  [SLUG_PATTERN]: 'must have 1 to 64 characters, only lowercase letters, digits and hyphens',
  [OPERATOR_NAME_PATTERN]:
    'must have 1 to 64 characters, only letters, digits and . _ @ + -, and begin with a letter or a digit',
  [EMAIL_PATTERN]: 'must be an e-mail address',
  [ENTRY_POSITION_PATTERN]:
    'must be a whole number of at most 19 digits, such as `ledgerFrom` of a settlement report',
};

export const opaque = (description: string) => Type.String({ pattern: OPAQUE_PATTERN, description });

export const AUDIT_REASON = Type.String({
  pattern: REASON_PATTERN,
  description: 'Reason of the change, recorded in the audit log',
});

export const usd = (description: string) => Type.Number({ description });

export const timestamp = () => Type.String({ format: 'date-time' });

/**
 * Type of the values of a schema in the stores, where times are dates. A JSON response has them as RFC 3339
 * texts.
 */
export type WithDates<Schema extends Type.TSchema, Times extends keyof Static<Schema>> = Readonly<
  Omit<Static<Schema>, Times>
> & { readonly [Time in Times]: Date | Extract<Static<Schema>[Time], null> };

export const id = (description: string) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description });

/** Largest id of a partner, key, sheet or game: the maximum of an integer in the database. */
export const ID_MAX = 2_147_483_647;

const pathNumber = (description: string) => Type.Integer({ minimum: 1, maximum: ID_MAX, description });
const GAME_ID = pathNumber('Id of the game: its `gameConfigId`');
const DELIVERY_ID = Type.String({ description: 'Id of the delivery, from its header `X-…-Delivery-Id`' });

/**
 * Schema of a text that currently has one of these values. Clients must expect further values
 * (docs/contract.md §16).
 */
export const extensible = (values: readonly string[], description: string) =>
  Type.String({ description: `${description}. More values may be added`, 'x-extensible-enum': values });

export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const KEY_PREFIX = nullable(
  Type.String({ description: 'First characters of the key; null if the key is older than this member' }),
);

export const choice = <const Values extends readonly string[]>(values: Values, description?: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    description === undefined ? {} : { description },
  ) as unknown as Type.TUnion<{ -readonly [Place in keyof Values]: Type.TLiteral<Values[Place]> }>;

/**
 * Schemas of the path parameters, each with the part of the path before it. Only the OpenAPI documents use
 * these schemas, because handlers answer 404 to an unknown id.
 */
export const PATH: Readonly<Record<string, Type.TSchema>> = {
  'partners/{id}': pathNumber('Id of the partner'),
  'cells/{cell}': Type.Integer({ minimum: 0, maximum: CELL_MAX, description: 'Number of the cell' }),
  'keys/{keyId}': pathNumber('Id of the API key'),
  'operators/{name}': Type.String({ description: 'Name of the operator' }),
  'games/{id}': GAME_ID,
  'raffles/{id}': GAME_ID,
  'par-sheets/{id}': pathNumber('Id of the PAR sheet'),
  'rtp-reviews/{id}': pathNumber('Id of the review'),
  'webhooks/{id}': pathNumber('Id of the webhook'),
  'deliveries/{id}': DELIVERY_ID,
  'deliveries/{deliveryId}': DELIVERY_ID,
  'api-versions/{version}': Type.String({ description: 'Version of the partner API, such as `v1`' }),
  'players/{playerId}': opaque(
    "The partner's own id of the player, percent-encoded. It is `_` if the query names the player, which is required for the ids `.` and `..`",
  ),
  'blocks/{number}': Type.Integer({ minimum: 0, description: 'Number of the entry in the public log' }),
  'rounds/{roundId}': Type.String({ description: 'The `roundId` in the response to the deal' }),
  'spins/{spinId}': Type.String({ description: 'The `spinId` in the response to the spin' }),
  'settlements/{date}': Type.String({
    pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$',
    description: 'UTC day, YYYY-MM-DD',
  }),
};

/**
 * Query parameter `playerId` of all operations on a player. It is not part of the path, because browsers and
 * proxies remove `.` and `..` from a path, however they are encoded.
 */
export const PLAYER_IN_QUERY = opaque('Id of the player, if the path has `_` in its place');

export const Page = Type.Object({
  page: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000_000,
      default: 1,
      description: 'Number of the page, from 1',
    }),
  ),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Number of items on a page' }),
});

export const pageMembers = { page: Type.Integer(), limit: Type.Integer(), total: Type.Integer() };

/**
 * Converts an amount of a request to micro-USD. Undefined if it is not a whole number of micro-USD or is
 * beyond ±{@link MAX_MICROS}.
 */
export function amountMicros(usdAmount: number): number | undefined {
  const micros = usdToMicros(usdAmount);
  return micros === undefined || Math.abs(micros) > MAX_MICROS ? undefined : micros;
}

/** Query parameter of operations whose response may be CSV. */
export const escapeFormulas = Type.Optional(
  Type.String({
    pattern: '^(true|false)$',
    description:
      'Only for CSV: `true` puts an apostrophe before texts that a spreadsheet would run as a formula, or round as a number, such as ids of 19 digits. By default texts stay unchanged',
  }),
);

export const timeRange = {
  from: Type.Optional(
    Type.String({ description: 'Only entries from this time on, as an RFC 3339 time. Default: all' }),
  ),
  to: Type.Optional(
    Type.String({ description: 'Only entries before this time, as an RFC 3339 time. Default: all' }),
  ),
};

/** Property that marks a spin with a forced outcome, and data that results from such a spin. */
export const SandboxMark = Type.Optional(
  Type.Object(
    {
      forced: Type.Boolean({
        description: 'True if a tester chose the outcome with `POST /sandbox/next-outcome`',
      }),
    },
    { description: 'Only in a sandbox account. Absent if the outcome was drawn' },
  ),
);

/** Schema of the request body of operations that void something irrevocably. */
export const VoidBody = Type.Object({
  reason: Type.String({
    pattern: REASON_PATTERN,
    description: 'Reason for the void, recorded in the audit log',
  }),
});

export const partnerFilter = {
  partnerId: Type.Optional(
    Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Only items of this partner' }),
  ),
};

/**
 * Schema of an amount as a decimal text. It is used where a pot is divided to the micro-dollar and readers
 * should avoid floating point.
 */
export const amountText = (description: string) =>
  Type.String({ description: `${description}; in USD, as a decimal string such as "12.5", not a number` });

export const hex = (description: string, bytes = 32) =>
  Type.String({ description: `${description}: ${bytes} bytes in lowercase hexadecimal` });
