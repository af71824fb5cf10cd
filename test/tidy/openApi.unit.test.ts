/**
 * Checks that clients can be generated from the OpenAPI documents: a linter passes, examples match their
 * schemas, and everything that becomes a type has a name.
 */
import { Ajv2020, type AnySchema } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { openApiDocuments } from '../../src/api/contract/documents.js';
import { openApiFaults } from '../support/openApiLinter.js';

type Json = Record<string, unknown>;
interface Content {
  schema: AnySchema;
  example?: unknown;
  examples?: Record<string, { value: unknown }>;
}
type Media = Record<string, Content>;
interface Operation {
  operationId: string;
  tags?: string[];
  summary?: string;
  description?: string;
  requestBody?: { content: Media };
  responses: Record<string, { content?: Media; $ref?: string }>;
}
interface Document {
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  webhooks?: Record<string, Record<string, Operation>>;
  components: { responses: Record<string, { content: Media }>; schemas: Record<string, Json> };
}

const documents = Object.entries(openApiDocuments('Spindle')).map(
  ([scope, document]) => [scope, document as Document] as const,
);

const operationsOf = ({ paths, webhooks = {} }: Document): Operation[] =>
  [...Object.values(paths), ...Object.values(webhooks)].flatMap((methods) => Object.values(methods));

const WHERE = 'add it to the operation in the contract.ts of its resource, in src/api';

describe.each(documents)('the OpenAPI document of the %s API', (scope, document) => {
  test('the OpenAPI document passes the linter without a warning', async () => {
    expect(await openApiFaults(document)).toEqual([]);
  });

  test('the OpenAPI document gives every operation a known tag, a summary and a description', () => {
    const known = document.tags.map(({ name }) => name);
    const faults = operationsOf(document).flatMap(({ operationId, tags, summary, description }) => [
      ...(tags?.length === 1 && known.includes(tags[0]!) ? [] : [`${operationId} has no known tag`]),
      ...(summary ? [] : [`${operationId} has no summary`]),
      ...(description ? [] : [`${operationId} has no description: ${WHERE}`]),
    ]);
    expect(faults).toEqual([]);
  });

  test('the OpenAPI document has a valid example for every body of every operation and error', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
    ajv.addSchema(closed(document) as AnySchema, scope);
    const bodies = [
      ...operationsOf(document).flatMap(({ operationId, requestBody, responses }) => [
        [`the request of ${operationId}`, requestBody?.content] as const,
        ...Object.entries(responses).map(
          ([status, { content }]) => [`the ${status} response of ${operationId}`, content] as const,
        ),
      ]),
      ...Object.entries(document.components.responses).map(
        ([name, { content }]) => [`the response ${name}`, content] as const,
      ),
    ];
    const faults: string[] = [];
    for (const [what, content] of bodies) {
      for (const [type, { schema, example, examples }] of Object.entries(content ?? {})) {
        const values =
          example === undefined ? Object.values(examples ?? {}).map(({ value }) => value) : [example];
        if (values.length === 0) faults.push(`${what} has no example (${type}): ${WHERE}`);
        const text = JSON.stringify(closed(schema as Json)).replaceAll('"$ref":"#', `"$ref":"${scope}#`);
        const validate = ajv.compile(JSON.parse(text));
        for (const value of values) {
          if (!validate(value)) {
            faults.push(`an example of ${what} does not fit: ${ajv.errorsText(validate.errors)}`);
          }
        }
      }
    }
    expect(faults).toEqual([]);
  });

  test('the OpenAPI document names every object and every choice, so generated types have names', () => {
    const faults = anonymous(document.components.schemas, ['components', 'schemas']);
    for (const { operationId, requestBody, responses } of operationsOf(document)) {
      for (const [what, part] of Object.entries({ requestBody, ...responses })) {
        for (const { schema } of Object.values(part?.content ?? {})) {
          faults.push(...anonymous({ [what]: schema as Json }, [operationId]));
          if (isNamed(schema as Json)) faults.push(`${operationId} ${what}`);
        }
      }
    }
    expect(faults, 'export the schema from the contract.ts of its resource, in src/api').toEqual([]);
  });
});

/** Returns whether a generator would make a separate type for a schema. */
const isNamed = ({ type, properties, enum: choices }: Json): boolean =>
  (type === 'object' && properties !== undefined) || (Array.isArray(choices) && choices.length > 1);

/** Returns the places inside other schemas where a schema becomes a type without a name. */
function anonymous(schemas: Record<string, Json>, at: readonly string[]): string[] {
  const found: string[] = [];
  const look = (value: unknown, path: readonly string[]): void => {
    if (typeof value !== 'object' || value === null) return;
    if (!Array.isArray(value) && isNamed(value as Json)) found.push(path.join('/'));
    for (const [name, member] of Object.entries(value)) look(member, [...path, name]);
  };
  for (const [name, schema] of Object.entries(schemas)) {
    for (const [part, member] of Object.entries(schema)) look(member, [...at, name, part]);
  }
  return found;
}

/**
 * Returns a copy of the schema in which no object accepts unnamed members, because an example must not have
 * any.
 */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, closed(member)]));
  const isOpen = (value as Json).type === 'object' && 'properties' in value;
  return isOpen ? { ...members, additionalProperties: false } : members;
}
