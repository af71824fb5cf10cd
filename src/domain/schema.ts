/** Schemas that many requests and answers share: texts, amounts, times, ids, pages. */
import { type Static, Type } from '#typebox';
import { CELL_MAX } from './entryId.js';
import { MAX_MICROS, usdToMicros } from './money.js';

/** 1 to 128 Unicode characters, neither control characters nor lone surrogates; opaque, nothing is folded. */
const OPAQUE_PATTERN = '^[^\\p{Cc}\\p{Cs}]{1,128}$';

/** 1 to 2,000 Unicode characters; of the control characters newline and tab only, no lone surrogates. */
export const REASON_PATTERN = '^(?:[^\\p{Cc}\\p{Cs}]|[\\n\\t]){1,2000}$';

export const CONFIG_NAME_PATTERN = '^[A-Z0-9_]{1,64}$';

export const SLUG_PATTERN = '^[a-z0-9-]{1,64}$';

/** A person or a program that runs the service; also an e-mail address. */
export const OPERATOR_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$';

/** One address: without what separates addresses in a list, or encloses them (RFC 5322, `specials`). */
const NO_SPECIALS = '[^\\s@\\p{Cc}\\p{Cs}()<>\\[\\]:;,"\\\\]';
export const EMAIL_PATTERN = `^${NO_SPECIALS}{1,64}@${NO_SPECIALS}{1,190}$`;

/** The patterns' rules in words, for faults. */
export const PATTERN_MESSAGES: Readonly<Record<string, string>> = {
  [OPAQUE_PATTERN]: 'must have 1 to 128 Unicode characters, without control characters or lone surrogates',
  [REASON_PATTERN]:
    'must have 1 to 2,000 Unicode characters, without lone surrogates and control characters but newline and tab',
  [CONFIG_NAME_PATTERN]: 'must have 1 to 64 uppercase letters, digits and underscores',
  [SLUG_PATTERN]: 'must have 1 to 64 lowercase letters, digits and hyphens',
  [OPERATOR_NAME_PATTERN]:
    'must have 1 to 64 letters, digits and . _ @ + -, and begin with a letter or a digit',
  [EMAIL_PATTERN]: 'must be an e-mail address',
};

export const opaque = (description: string) => Type.String({ pattern: OPAQUE_PATTERN, description });

/** Why an operator does something. */
export const AUDIT_REASON = Type.String({ pattern: REASON_PATTERN, description: 'Kept in the audit log' });

export const usd = (description: string) => Type.Number({ description });

export const timestamp = () => Type.String({ format: 'date-time' });

/** What a schema describes, as the stores hold it: times are dates, which the JSON of an answer has as RFC 3339 texts. */
export type WithDates<Schema extends Type.TSchema, Times extends keyof Static<Schema>> = Readonly<
  Omit<Static<Schema>, Times>
> & { readonly [Time in Times]: Date | Extract<Static<Schema>[Time], null> };

export const id = (description: string) =>
  Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description });

/** The largest number that names a partner, key, sheet or game: the database's integer. */
export const ID_MAX = 2_147_483_647;

const pathNumber = (description: string) => Type.Integer({ minimum: 1, maximum: ID_MAX, description });

/** A text that has one of these values today; a client must expect further ones (docs/contract.md §16). */
export const extensible = (values: readonly string[], description: string) =>
  Type.String({ description: `${description}. May get further values`, 'x-extensible-enum': values });

export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** How a key begins. */
export const KEY_PREFIX = nullable(
  Type.String({ description: 'How the key begins; null: it was made before this was kept' }),
);

/** One of some texts. */
export const choice = <const Values extends readonly string[]>(values: Values, description?: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    description === undefined ? {} : { description },
  ) as unknown as Type.TUnion<{ -readonly [Place in keyof Values]: Type.TLiteral<Values[Place]> }>;

/** The variable parts of paths, by what they name. */
export const PATH = {
  partnerId: pathNumber('Id of the partner'),
  cell: Type.Integer({ minimum: 0, maximum: CELL_MAX, description: 'Number of the cell' }),
  keyId: pathNumber('Id of the API key'),
  operatorName: Type.String({ description: 'Name of the operator' }),
  gameId: pathNumber('Game configuration id: the `gameConfigId` of the game'),
  parSheetId: pathNumber('Id of the PAR sheet'),
  reviewId: pathNumber('Id of the review'),
  webhookId: pathNumber('Id of the webhook'),
  deliveryId: Type.String({
    description: 'Id of the delivery: the `X-…-Delivery-Id` header that it carries',
  }),
  apiVersion: Type.String({ description: 'Version of the partner API, such as `v1`' }),
  playerId: opaque(
    "The partner's own identifier of the player, percent-encoded; `_` where the query names the player, as it must for `.` and `..`",
  ),
  /** In the query of every operation on a player: browsers and proxies take `.` and `..` out of a path, however they are encoded. */
  playerInQuery: opaque('The player, where the path has `_` in its place'),
  blockNumber: Type.Integer({ minimum: 0, description: 'Number of the entry in the public log' }),
  roundId: Type.String({ description: 'The `roundId` of the deal' }),
  spinId: Type.String({ description: 'The `spinId` of the response' }),
  reportDate: Type.String({ pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$', description: 'UTC day, YYYY-MM-DD' }),
} satisfies Record<string, Type.TSchema>;

export const Page = Type.Object({
  page: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000_000_000, default: 1, description: 'Page, from 1' }),
  ),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Items on a page' }),
});

export const pageMembers = { page: Type.Integer(), limit: Type.Integer(), total: Type.Integer() };

/** An amount of a request in micro-USD; undefined where it is finer than that, or beyond ±{@link MAX_MICROS}. */
export function amountMicros(usdAmount: number): number | undefined {
  const micros = usdToMicros(usdAmount);
  return micros === undefined || Math.abs(micros) > MAX_MICROS ? undefined : micros;
}

/** Of a query whose answer may be CSV. */
export const escapeFormulas = Type.Optional(
  Type.String({
    pattern: '^(true|false)$',
    description:
      'As CSV only: `true` puts an apostrophe before a text that a spreadsheet would run as a formula. Absent: texts are as they are',
  }),
);

/** Of a spin, and of what follows from it. */
export const SandboxMark = Type.Optional(
  Type.Object(
    {
      forced: Type.Boolean({
        description: 'True: a tester chose the outcome (`POST /sandbox/next-outcome`)',
      }),
    },
    { description: 'Of a sandbox account only, and absent where the outcome was drawn' },
  ),
);

/** Of an operation that voids what can't be brought back. */
export const VoidBody = Type.Object({
  reason: Type.String({ pattern: REASON_PATTERN, description: 'Kept in the audit log' }),
});

/** Of a query that may ask for one partner. */
export const partnerFilter = {
  partnerId: Type.Optional(
    Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Those of this partner only' }),
  ),
};

/** An amount as a decimal text, where a pot is divided to the micro-dollar and a reader should not go through a float. */
export const amountText = (description: string) =>
  Type.String({ description: `${description}; USD as a decimal string such as "12.5", not a number` });

export const hex = (description: string, bytes = 32) =>
  Type.String({ description: `${description}; ${bytes} bytes, lowercase hexadecimal` });
