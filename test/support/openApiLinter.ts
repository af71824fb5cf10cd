/** Finds faults in an OpenAPI document with the rules of the linter Redocly and with additional rules. */
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { Ajv2020 } from 'ajv/dist/2020.js';

type Node = Record<string, unknown>;

/** Rules in addition to `recommended-strict`, whose warnings count as errors. */
const RULES = {
  'operation-description': 'error',
  'operation-tag-defined': 'error',
  'operation-singular-tag': 'error',
  'operation-operationId-url-safe': 'error',
  'operation-4xx-response': 'error',
  'tag-description': 'error',
  'parameter-description': 'error',
  'path-not-include-query': 'error',
  'path-declaration-must-exist': 'error',
  'no-server-example.com': 'error',
  'no-server-trailing-slash': 'error',
  'no-invalid-media-type-examples': { severity: 'error', allowAdditionalProperties: true },
  'no-invalid-parameter-examples': { severity: 'error', allowAdditionalProperties: true },
  'no-invalid-schema-examples': { severity: 'error', allowAdditionalProperties: true },
} as const;

/** @returns one line for each fault, with its rule, message and position, or an empty list */
export async function openApiFaults(document: object): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended-strict'], rules: RULES });
  const source = JSON.stringify(document);
  const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config });
  return [
    ...problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} ${location[0]?.pointer}`),
    ...rootFaults(document as Node),
    ...webhookFaults(document as Node),
    ...defaultFaults(document as Node),
    ...callbackFaults(document, false),
    ...nodeFaults(document, []),
  ];
}

/** Checks that the head of the OpenAPI document has a description and lists each tag once. */
function rootFaults({ info, tags }: Node): string[] {
  const { description } = info as { description?: string };
  const names = Array.isArray(tags) ? tags.map(({ name }) => name) : [];
  return [
    ...(new Set(names).size === names.length ? [] : ['tags: a tag stands twice']),
    ...(description ? [] : ['info-description: the document has no description']),
    ...(Array.isArray(tags) && tags.length > 0 ? [] : ['tags: the document has no tags']),
  ];
}

/**
 * Checks that webhooks have no servers and no callbacks, because the receiver has an address already (OpenAPI
 * 3.1.1, 4.8.1).
 */
function webhookFaults({ webhooks = {} }: Node): string[] {
  const faults: string[] = [];
  for (const [name, item] of Object.entries(webhooks as Record<string, Node>)) {
    for (const part of [item, ...(Object.values(item) as Node[])]) {
      if ('servers' in part) faults.push(`webhook-servers: ${name} has servers`);
      if ('callbacks' in part) faults.push(`webhook-callbacks: ${name} has callbacks`);
    }
  }
  return faults;
}

/**
 * Checks that no callback in the document contains callbacks.
 * @param inside whether the value is part of a callback
 */
function callbackFaults(value: unknown, inside: boolean): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    ...(name === 'callbacks' && inside ? ['callbacks: a callback has callbacks'] : []),
    ...callbackFaults(member, inside || name === 'callbacks'),
  ]);
}

/** Checks that each default value in the document matches its schema. */
function defaultFaults(document: Node): string[] {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, 'openapi');
  const faults: string[] = [];
  const look = (value: unknown, path: readonly string[]): void => {
    if (typeof value !== 'object' || value === null) return;
    if ('default' in value && path.at(-2) !== 'variables' && path.at(-1) !== 'properties') {
      const schema = JSON.parse(JSON.stringify(value).replaceAll('"$ref":"#', '"$ref":"openapi#'));
      if (!ajv.validate(schema, value.default)) faults.push(`default: does not fit ${path.join('/')}`);
    }
    for (const [name, member] of Object.entries(value)) {
      if (!name.startsWith('example') && name !== 'responses') look(member, [...path, name]);
    }
    if ('responses' in value)
      for (const [name, member] of Object.entries(value.responses as Node)) {
        if (name !== 'default') look(member, [...path, 'responses', name]);
      }
  };
  look(document, []);
  return faults;
}

/** Checks the members of each object in the document, except in examples, which may contain anything. */
function nodeFaults(value: unknown, path: readonly string[]): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const faults: string[] = [];
  const { enum: choices, description, operationId, tags, type } = value as Node;
  const where = path.join('/');
  if (
    Array.isArray(choices) &&
    new Set(choices.map((choice) => JSON.stringify(choice))).size < choices.length
  ) {
    faults.push(`enum: a choice stands twice ${where}`);
  }
  if (typeof description === 'string' && /<script|eval\(/i.test(description)) {
    faults.push(`description: holds a script ${where}`);
  }
  if (typeof operationId === 'string' && !(Array.isArray(tags) && tags.length > 0)) {
    faults.push(`operation-tags: ${operationId} has no tag ${where}`);
  }
  if ([type].flat().includes('array') && !('items' in value || 'prefixItems' in value)) {
    faults.push(`items: a list says nothing of its items ${where}`);
  }
  for (const [name, member] of Object.entries(value)) {
    if (name !== 'example' && name !== 'examples') faults.push(...nodeFaults(member, [...path, name]));
  }
  return faults;
}
