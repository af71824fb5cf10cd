/**
 * Makes requests that an operation must refuse: without a key, with members that are missing, of another
 * type, too long or out of range, with unknown ids, or for a resource of another partner. The schemas of the
 * OpenAPI documents say what is wrong, and the tables of this file add what the schemas can't say.
 */
import type { ValidateFunction } from 'ajv/dist/2020.js';
import { BASES } from '../../../src/api/contract/apis.js';
import type { TestPartner } from '../../support/client.js';
import type { Operation, Request } from '../../support/everyOperation.js';

type Json = Record<string, unknown>;

/** Schemas of an operation in its OpenAPI document. */
export interface Schemas {
  readonly query: readonly { readonly name: string; readonly schema: Json }[];
  readonly body: Json | undefined;
  readonly isBodyRequired: boolean;
  readonly validateBody: ValidateFunction | undefined;
  /** Follows a reference within the document. */
  resolve(ref: string): Json;
}

export interface Refused {
  readonly code: string;
  /** What differs from the valid request. */
  readonly changed: {
    readonly path?: string;
    readonly key?: string | undefined;
    readonly headers?: undefined;
    readonly body?: unknown;
  };
  /** JSON Pointers that `details` must name; undefined if the error has no details. */
  readonly wrong?: readonly string[];
}

/** Values for members of a body. Every schema refuses some of them. */
const VALUES = [null, true, 7, -1, 1.5, 1e300, '', 'x', 'a\0b', '\u0085', 'x'.repeat(129), [], [null], {}];
const QUERY_VALUES = ['', 'x', '-1', '0', '1.5', '99999999999', 'x'.repeat(201), 'a%00b', '%ff'];
const TEXTS = ['x'.repeat(2001), 'a\rb', '\ud800'];
const TIMES = ['yesterday', '2099-01-01', '2026-02-30T00:00:00Z'];
const EXPIRIES = [...TIMES, '2020-01-01T00:00:00Z'];
const SUMS = [0.0000001, 9_000_000_001, 1e300];
/** Values that the service refuses although the schema allows them, by the name of the member. */
const ALSO_WRONG: Readonly<Record<string, readonly unknown[]>> = {
  amountUsd: [0, ...SUMS, -9e10, '0', '1e3', '0.0000001', '9000000001', 'five'],
  cell: [254],
  deprecatedAt: EXPIRIES,
  displayName: TEXTS,
  expiresAt: EXPIRIES,
  fundingUsd: SUMS,
  gameType: ['raffle', 'scratch_card', ''],
  largeWinThresholdUsd: SUMS,
  maxWagerUsd: [0.1, 1],
  minWagerUsd: [0.1, 1],
  openingBalanceUsd: SUMS,
  playerId: TEXTS,
  reason: TEXTS,
  requestId: TEXTS,
  since: TIMES,
  sunsetAt: TIMES,
  text: TEXTS,
  ticketPriceUsd: [0, -1, ...SUMS],
  wagerIncrementUsd: [0.1, 1],
  wagerUsd: [0, -0.25, 0.2500001, 0.2499999999999999, 25_000, 1e300, 1e-300],
};
const ALSO_WRONG_IN_QUERY: Readonly<Record<string, readonly string[]>> = {
  after: ['x'],
  cursor: ['x', '!!!!'],
  from: ['yesterday', '2026-02-30T00:00:00Z'],
  to: ['yesterday', '2026-02-30T00:00:00Z'],
};
/** Operations whose `from` and `to` are days, which they read only if the interval is RANGE. */
const WITH_DAYS = ['getGamesReport', 'getPartnerGamesReport'];

const NO_OBJECTS = ['[]', '"x"', 'null', '{"a":', '{}x', '\ufeff{}'];

const NUMBERS = ['2000000000', '0', '-1', '1e3', 'x', '%20', '99999999999999999999'];
const ENTRIES = ['0'.repeat(32), 'f'.repeat(32), 'x', '%20'];
/** The error for an unknown id, and such ids, by the part of the path before the id. */
const UNKNOWN: Readonly<Record<string, readonly [code: string, ids: readonly string[]]>> = {
  'api-versions': ['KS-4215', ['v9', 'x']],
  blocks: ['KS-4215', ['2000000000', '-1', 'x']],
  cells: ['KS-4215', ['254', '256', '-1', 'x']],
  deliveries: ['KS-4215', ['dlv_1', 'x']],
  games: ['KS-4201', NUMBERS],
  keys: ['KS-4212', NUMBERS],
  operators: ['KS-4212', ['nobody', '%20']],
  'par-sheets': ['KS-4205', NUMBERS],
  partners: ['KS-4209', NUMBERS],
  players: ['KS-4204', ['nobody']],
  raffles: ['KS-4201', NUMBERS],
  rounds: ['KS-4221', ENTRIES],
  'rtp-reviews': ['KS-4215', NUMBERS],
  settlements: ['KS-4301', ['2001-01-01']],
  spins: ['KS-4215', ENTRIES],
  webhooks: ['KS-4206', NUMBERS],
};
const NO_DAYS = [
  ...['x', '2026-02-30', '2025-02-29', '2026-13-01', '2026-00-10', '2026-1-1', '20260101', '0000-01-01'],
  ...['2026-01-01T00:00:00Z', '-2026-01-01', '2026-01-011', '%202026-01-01', '%F0%9F%8E%B0'],
];
/** The error for an unknown id, or one of another partner, in a body. */
const UNKNOWN_MEMBER: Readonly<Record<string, readonly [code: string, ids: readonly unknown[]]>> = {
  gameId: ['KS-4006', [2_000_000_000, 2 ** 31, Number.MAX_SAFE_INTEGER]],
  parSheetId: ['KS-4205', [2_000_000_000, 2 ** 31, Number.MAX_SAFE_INTEGER]],
  roundId: ['KS-4221', ENTRIES],
};

export function* wrongRequests(
  operation: Operation,
  request: Request,
  schemas: Schemas,
  stranger: TestPartner,
): Generator<Refused> {
  yield { code: 'KS-4001', changed: { key: undefined, headers: undefined } };
  yield { code: 'KS-4002', changed: { key: 'ks_wrong', headers: undefined } };
  yield* wrongQueries(operation, request, schemas);
  yield* wrongPaths(operation, request, stranger);
  if (request.body !== undefined) yield* wrongBodies(operation.name, request.body, schemas, stranger);
}

function* wrongQueries(
  { name, template }: Operation,
  { path }: Request,
  { query }: Schemas,
): Generator<Refused> {
  const [bare, sent] = path.split('?') as [string, string?];
  // The player in the query counts only if the path has `_` in its place.
  const parameters = query.filter((parameter) => !template.includes(`{${parameter.name}}`));
  for (const value of QUERY_VALUES) {
    const wrong = parameters.filter(({ schema }) => !isAllowed(schema, value)).map((each) => each.name);
    // A required parameter that can't be read is missing.
    const code = sent !== undefined && value.includes('%') ? 'KS-4102' : 'KS-4101';
    const path = `${bare}?${wrong.map((each) => `${each}=${value}`).join('&')}`;
    if (wrong.length > 0) yield { code, changed: { path }, wrong: wrong.map((each) => `/${each}`) };
  }
  for (const parameter of WITH_DAYS.includes(name) ? [] : parameters)
    for (const value of ALSO_WRONG_IN_QUERY[parameter.name] ?? [])
      yield {
        code: 'KS-4101',
        changed: { path: `${bare}?${parameter.name}=${value}` },
        wrong: [`/${parameter.name}`],
      };
  if (sent !== undefined) yield { code: 'KS-4102', changed: { path: bare } };
}

/** Whether a schema allows a value of a query, which is percent-encoded. */
function isAllowed(
  { type, pattern, minimum = 0, maximum = Infinity, maxLength = Infinity }: Json,
  value: string,
) {
  if (value.includes('%')) return false;
  const isBetween = Number(minimum) <= Number(value) && Number(value) <= Number(maximum);
  if (type === 'integer') return /^\d{1,10}$/.test(value) && isBetween;
  return value.length <= Number(maxLength) && new RegExp(String(pattern ?? ''), 'u').test(value);
}

function* wrongPaths(
  { name, scope, template }: Operation,
  { path }: Request,
  stranger: TestPartner,
): Generator<Refused> {
  const [bare, query] = path.split('?') as [string, string?];
  const places = template.split('/');
  const given = bare.slice(BASES[scope].length).split('/');
  const codeOf = (of: string) => (scope === 'partner' && of === 'games' ? 'KS-4006' : UNKNOWN[of]![0]);
  for (const [place, parameter] of places.entries()) {
    if (!parameter.startsWith('{')) continue;
    const of = places[place - 1]!;
    const withId = (id: string) => {
      const changed = BASES[scope] + given.map((part, i) => (i === place ? id : part)).join('/');
      return { path: query === undefined ? changed : `${changed}?${query}` };
    };
    yield { code: 'KS-4101', changed: withId('%ff') };
    // An adjustment creates its player.
    const ids = name === 'adjustBalance' && of === 'players' ? [] : UNKNOWN[of]![1];
    for (const id of ids) yield { code: codeOf(of), changed: withId(id) };
    if (of === 'settlements') for (const id of NO_DAYS) yield { code: 'KS-4105', changed: withId(id) };
    if (of === 'partners' && places.includes('{keyId}'))
      yield { code: 'KS-4213', changed: withId(String(stranger.partnerId)) };
  }
  if (scope === 'operator' || !template.includes('{')) return;
  const code = places[1] === 'webhooks' ? 'KS-4207' : codeOf(places[1]!);
  yield { code, changed: { key: stranger.key } };
}

function* wrongBodies(name: string, body: Json, schemas: Schemas, stranger: TestPartner): Generator<Refused> {
  for (const text of [...(schemas.isBodyRequired ? [''] : []), ...NO_OBJECTS])
    yield { code: 'KS-4101', changed: { body: text }, wrong: [''] };
  yield { code: 'KS-4101', changed: { body: ' '.repeat(65_537) }, wrong: [''] };
  const isSheet = name === 'uploadParSheet';
  const members = membersOf(schemas, schemas.body!, body);
  // Members at one depth don't contain each other, so all of them can be wrong in one request. Only the
  // outermost members of a PAR sheet are replaced, because the rules of a sheet connect its parts.
  for (const depth of isSheet ? [1] : [1, 2, 3, 4]) {
    const some = members.filter(({ pointer }) => pointer.split('/').length - 1 === depth);
    const missing = some.filter(({ isRequired }) => isRequired).map(({ pointer }) => pointer);
    if (missing.length > 0)
      yield {
        code: isSheet ? 'KS-4104' : 'KS-4102',
        changed: { body: replaced(body, missing, undefined) },
        wrong: missing,
      };
    const values = [
      ...VALUES,
      ...some.flatMap(({ schema }) => [Number(schema.minimum) - 1, Number(schema.maximum) + 1]),
    ];
    for (const value of new Set(values.filter((each) => !Number.isNaN(each)))) {
      const wrong = some
        .map(({ pointer }) => pointer)
        .filter((pointer) => !schemas.validateBody!(replaced(body, [pointer], value)));
      for (const code of new Set(wrong.map((pointer) => codeOf(name, pointer, value)))) {
        const pointers = wrong.filter((pointer) => codeOf(name, pointer, value) === code);
        yield refused(name, code, body, pointers, value);
      }
    }
  }
  for (const { pointer } of members) {
    const member = pointer.split('/').at(-1)!;
    for (const value of ALSO_WRONG[member] ?? [])
      yield refused(name, codeOf(name, pointer, value), body, [pointer], value);
    const [code, ids] = UNKNOWN_MEMBER[member] ?? [];
    if (code === undefined) continue;
    yield { code, changed: { key: stranger.key } };
    for (const id of ids!) yield { code, changed: { body: replaced(body, [pointer], id) } };
  }
}

function refused(
  name: string,
  code: string,
  body: Json,
  pointers: readonly string[],
  value: unknown,
): Refused {
  const hasDetails = code !== 'KS-4216' && !(name === 'dealRound' && code === 'KS-4103');
  const changed = { body: replaced(body, pointers, value) };
  return hasDetails ? { code, changed, wrong: pointers } : { code, changed };
}

interface Member {
  readonly pointer: string;
  readonly schema: Json;
  readonly isRequired: boolean;
}

/** Lists the members of a body at every depth. A list counts with its first item. */
function membersOf(schemas: Schemas, schema: Json, value: unknown, pointer = ''): Member[] {
  const {
    $ref,
    items,
    properties = {},
    required = [],
  } = schema as {
    $ref?: string;
    items?: Json;
    properties?: Record<string, Json>;
    required?: readonly string[];
  };
  if ($ref !== undefined) return membersOf(schemas, schemas.resolve($ref), value, pointer);
  if (Array.isArray(value))
    return items === undefined ? [] : membersOf(schemas, items, value[0], `${pointer}/0`);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(properties).flatMap(([name, member]) => [
    { pointer: `${pointer}/${name}`, schema: member, isRequired: required.includes(name) },
    ...membersOf(schemas, member, (value as Json)[name], `${pointer}/${name}`),
  ]);
}

/** Returns the error for a member of a body with a wrong value. */
function codeOf(name: string, pointer: string, value: unknown): string {
  if (name === 'uploadParSheet') return 'KS-4104';
  if (name === 'testWebhook' && typeof value === 'string') return 'KS-4107';
  if (pointer === '/gameType') return 'KS-4216';
  if (isWager(name, pointer, value)) return 'KS-4103';
  if (pointer === '/url') return 'KS-4106';
  return pointer === '/events' ? 'KS-4107' : 'KS-4101';
}

/** Whether a value is a wager, but not that of the game. */
const isWager = (name: string, pointer: string, value: unknown): boolean =>
  typeof value === 'number' &&
  (name === 'registerGame' || name === 'spin' || name === 'dealRound') &&
  /[wW]ager\w*Usd$/.test(pointer);

/** Replaces parts of a body by a value, or removes them if the value is undefined. */
function replaced(body: Json, pointers: readonly string[], value: unknown): Json {
  const changed = structuredClone(body);
  for (const pointer of pointers) {
    const names = pointer.split('/').slice(1);
    const last = names.pop()!;
    names.reduce((part, name) => part[name] as Json, changed)[last] = value;
  }
  return changed;
}
