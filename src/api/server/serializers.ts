/** Serializes results to JSON by the schema of their response. */
import fastJson from 'fast-json-stringify';
import type { TSchema } from '#typebox';
import { unmarked } from '../../domain/exactJson.js';
import type { Endpoint } from '../contract/endpoint.js';

type FastJsonSchema = Parameters<typeof fastJson>[0];
type Serialize = (result: unknown) => string;

/**
 * Serializers by response schema. Compiling all of them takes 0.15 s, so each is compiled with its first
 * answer instead of at the start.
 */
const SERIALIZERS = { plain: new WeakMap<TSchema, Serialize>(), summed: new WeakMap<TSchema, Serialize>() };

/** Returns undefined if the answer has no body. */
export function serializerOf({ response, hasSums }: Endpoint): Serialize | undefined {
  if (response === undefined) return undefined;
  const made = hasSums === true ? SERIALIZERS.summed : SERIALIZERS.plain;
  return (result) => {
    let serialize = made.get(response);
    if (serialize === undefined) {
      serialize = hasSums === true ? sumSerializer(response) : fastJson(response as FastJsonSchema);
      made.set(response, serialize);
    }
    return serialize(result);
  };
}

function sumSerializer(response: TSchema): Serialize {
  const serialize = fastJson(withoutNumbers(response) as FastJsonSchema);
  return (result) => unmarked(serialize(result));
}

/** Removes the type of number members from a schema, so that JSON.stringify writes these members. */
function withoutNumbers(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutNumbers);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { type, anyOf } = schema as { type?: unknown; anyOf?: { type?: unknown }[] };
  const isNumber = (each: unknown): boolean => each === 'number' || each === 'integer';
  if (isNumber(type) || anyOf?.some((each) => isNumber(each.type))) return {};
  return Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, withoutNumbers(value)]));
}
