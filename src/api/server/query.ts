/**
 * Parses the query of a request strictly: an unknown parameter is refused, because ignoring it would mislead
 * the client.
 */
import type { TSchema } from '#typebox';
import { ApiError, ERRORS, type Fault } from '../../domain/errors.js';
import { FAULTS_MAX } from '../../domain/validation.js';
import { faultsOf, shown } from './body.js';

interface QueryProperty {
  readonly type: string;
  readonly default?: number;
}

/**
 * Control characters, which parameters may not contain. Postgres rejects NUL in text, and no parameter needs
 * any other control character.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds them
const CONTROL = /[\0-\x1f\x7f]/;

/**
 * Returns the parameters of a query, with the defaults of the schema. Numbers must be integers of at most ten
 * digits.
 *
 * @param schema undefined: the operation has no query
 * @param more further parameters beyond the schema, which are accepted without validation
 * @throws ApiError (KS-4101) with every fault: unknown and repeated names, wrong encoding, values that the
 * schema rejects
 */
export function readQuery(
  schema: TSchema | undefined,
  text: string,
  more: Readonly<Record<string, QueryProperty>> = {},
): Record<string, number | string> {
  const own = (schema as { properties?: Record<string, QueryProperty> } | undefined)?.properties;
  const properties = { ...own, ...more };
  if (text === '') return checked(schema, withDefaults(properties, new Map()), []);
  const faults: Fault[] = [];
  const given = new Map<string, string>();
  for (const part of text.split('&')) {
    if (part === '') continue;
    if (faults.length >= FAULTS_MAX) break;
    const equals = part.indexOf('=');
    const name = decoded(equals < 0 ? part : part.slice(0, equals));
    const value = decoded(equals < 0 ? '' : part.slice(equals + 1));
    const fault = faultOf(properties, given, name, value);
    if (fault !== undefined) faults.push({ path: `/${shown(name ?? part)}`, message: fault });
    else given.set(name!, value!);
  }
  return checked(schema, withDefaults(properties, given), faults);
}

/** Returns undefined if the text is not percent-encoded UTF-8. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

function faultOf(
  properties: Readonly<Record<string, QueryProperty>>,
  given: ReadonlyMap<string, string>,
  name: string | undefined,
  value: string | undefined,
): string | undefined {
  if (name === undefined || value === undefined) return 'must be percent-encoded UTF-8';
  if (!Object.hasOwn(properties, name)) {
    const known = Object.keys(properties);
    const names = known.length === 0 ? 'which accepts none' : `which accepts ${known.join(', ')}`;
    return `is not a query parameter of this operation, ${names}`;
  }
  if (given.has(name)) return 'must be sent only once';
  return CONTROL.test(value) ? 'must not contain control characters' : undefined;
}

function withDefaults(
  properties: Readonly<Record<string, QueryProperty>>,
  given: ReadonlyMap<string, string>,
): Record<string, number | string> {
  const query: Record<string, number | string> = {};
  for (const [name, { type, default: otherwise }] of Object.entries(properties)) {
    const value = given.get(name);
    if (value === undefined) {
      if (otherwise !== undefined) query[name] = otherwise;
    } else if (type === 'string') query[name] = value;
    else query[name] = /^\d{1,10}$/.test(value) ? Number(value) : Number.NaN;
  }
  return query;
}

function checked(
  schema: TSchema | undefined,
  query: Record<string, number | string>,
  faults: readonly Fault[],
): Record<string, number | string> {
  const found = schema === undefined ? undefined : faultsOf(schema, query);
  if (found === undefined && faults.length === 0) return query;
  const details = [...faults, ...(found?.faults ?? [])].slice(0, FAULTS_MAX);
  throw new ApiError(found?.isMissing ? ERRORS.fieldMissing : ERRORS.validationFailed, { details });
}
