/**
 * Reads request bodies (UTF-8 text with a JSON object) and validates them against the schema of their route.
 */
import { isUtf8 } from 'node:buffer';
import type { Static, TSchema } from '#typebox';
import { Compile, type Validator } from '#typebox/compile';
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { PATTERN_MESSAGES } from '../../domain/schema.js';
import { type SchemaFaults, schemaFaults } from '../../domain/validation.js';

export type JsonObject = Record<string, unknown>;

/** Number of characters at which an error message truncates the text of a client. */
const SHOWN_MAX = 64;
export const shown = (text: string): string =>
  text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;

/**
 * Checks that a body has no content coding, such as gzip.
 * @param contentEncoding value of Content-Encoding; empty if the header was not sent
 */
export function checkContentEncoding(contentEncoding: string): void {
  if (contentEncoding === '' || contentEncoding.toLowerCase() === 'identity') return;
  const message = `The Content-Encoding «${shown(contentEncoding)}» is not supported. Send the body without compression`;
  throw invalid([{ path: '', message }]);
}

export function bodyText(body: Buffer): string {
  if (!isUtf8(body)) throw notJson('The body is not UTF-8');
  return body.toString('utf8');
}

export function parseObject(text: string): JsonObject {
  if (text.trim() === '') throw notJson('The body is empty. Send a JSON object');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw notJson('The body is not valid JSON (RFC 8259)');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw notJson('The body must be a JSON object');
  }
  return value as JsonObject;
}

/** The fault of a body over its limit, which is answered with status 413. */
export const tooLong = (limit: number): ApiError =>
  invalid([{ path: '', message: `The body must have at most ${limit} bytes` }]);

const notJson = (message: string): ApiError => invalid([{ path: '', message }]);

const JSON_TOKEN = /"(?:[^"\\]+|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/**
 * Returns the text of a top-level member of a JSON object exactly as the client sent it. If several members
 * have the name, the last one counts, as in JSON.parse. Returns undefined if the value is an object or an
 * array.
 *
 * @param json text that JSON.parse accepts as an object
 */
export function memberText(json: string, name: string): string | undefined {
  let depth = 0;
  let key: string | undefined;
  let before = '';
  let found: string | undefined;
  for (const [token] of json.matchAll(JSON_TOKEN)) {
    if (token === '{' || token === '[') depth++;
    else if (token === '}' || token === ']') depth--;
    else if (depth === 1 && token === ':') key = before;
    else if (depth === 1 && before === ':' && JSON.parse(key!) === name) found = token;
    before = token;
  }
  return found;
}

const validators = new WeakMap<TSchema, Validator>();

/** Returns undefined if the value is valid. */
export function faultsOf(schema: TSchema, value: unknown): SchemaFaults | undefined {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = Compile(schema) as Validator;
    validators.set(schema, validator);
  }
  return schemaFaults(validator, value, PATTERN_MESSAGES);
}

/**
 * @throws ApiError KS-4102 if a required member is missing, KS-4101 for any other fault; `details` lists all
 * faults
 */
export function check<Schema extends TSchema>(
  schema: Schema,
  value: unknown,
): asserts value is Static<Schema> {
  const found = faultsOf(schema, value);
  if (found === undefined) return;
  throw new ApiError(found.isMissing ? ERRORS.fieldMissing : ERRORS.validationFailed, {
    details: found.faults,
  });
}
