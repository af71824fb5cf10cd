/** Reads request bodies: UTF-8, JSON, an object; and checks them against the schema of their route. */
import { isUtf8 } from 'node:buffer';
import type { Static, TSchema } from '#typebox';
import { Compile, type Validator } from '#typebox/compile';
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { PATTERN_MESSAGES } from '../../domain/schema.js';
import { type SchemaFaults, schemaFaults } from '../../domain/validation.js';

export type JsonObject = Record<string, unknown>;

/** The text of a body. @throws ApiError (KS-4101) where it is not UTF-8. */
export function bodyText(body: Buffer): string {
  if (!isUtf8(body)) throw notJson('The body is not UTF-8');
  return body.toString('utf8');
}

/** @throws ApiError (KS-4101) where the text is not a JSON object. */
export function parseObject(text: string): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw notJson('The body is not JSON (RFC 8259)');
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw notJson('The body must be a JSON object');
  }
  return value as JsonObject;
}

const notJson = (message: string): ApiError => invalid([{ path: '', message }]);

const JSON_TOKEN = /"(?:[^"\\]+|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g;

/**
 * The text of an object's own member as it was sent, where that is no object or array: what JSON.parse takes for its
 * value, so the last of several of that name.
 * @param json the text of an object that JSON.parse takes
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

/** @returns undefined where the value fits the schema */
export function faultsOf(schema: TSchema, value: unknown): SchemaFaults | undefined {
  let validator = validators.get(schema);
  if (validator === undefined) {
    validator = Compile(schema) as Validator;
    validators.set(schema, validator);
  }
  return schemaFaults(validator, value, PATTERN_MESSAGES);
}

/**
 * Checks a value against a schema.
 * @throws ApiError: KS-4102 where a required field is missing, KS-4101 for any other fault; `details` has them all.
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
