/**
 * Checks that the served OpenAPI documents equal the files in openapi/, and that the service's responses
 * match these documents.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type AnySchema } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, test } from 'vitest';
import { API_VERSION, BASES } from '../../../src/api/contract/apis.js';
import { ERRORS } from '../../../src/domain/errors.js';
import { world } from '../../setup/world.js';
import type { Answer } from '../../support/client.js';
import { everyOperation } from '../../support/everyOperation.js';
import { ROOT } from '../../support/root.js';
import { constants } from '../../support/service.js';

interface Operation {
  operationId: string;
  parameters: { name: string; in: string; required?: boolean; schema: AnySchema }[];
  requestBody?: { content: Record<string, { schema: AnySchema }> };
  responses: Record<string, Response | { $ref: string }>;
}
interface Response {
  description: string;
  headers: Record<string, unknown>;
  content?: Record<string, { schema: AnySchema }>;
}
interface Document {
  openapi: string;
  info: { title: string; version: string };
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: {
    responses: Record<string, Response>;
    schemas: Record<string, AnySchema>;
    securitySchemes: Record<string, unknown>;
  };
}
type Scope = keyof typeof BASES;
const SCOPES = Object.keys(BASES) as Scope[];

const byCode = new Map(Object.values(ERRORS).map((entry) => [entry.code as string, entry]));

const { service: client, sql, partner } = world(constants({ authFailureLimit: 1_000_000 }));
const documents = {} as Record<Scope, Document>;
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addFormat('date-time', { validate: (text: string) => new Date(text).toISOString() === text });

beforeAll(async () => {
  for (const scope of SCOPES) {
    const answer = await client.request<Document>('GET', `${BASES[scope]}/openapi.json`);
    expect(answer.status).toBe(200);
    documents[scope] = answer.body;
    ajv.addSchema(answer.body as unknown as AnySchema, scope);
  }
});

interface Located {
  path: string;
  method: string;
  operation: Operation;
}
const operationsOf = (scope: Scope): Located[] =>
  Object.entries(documents[scope].paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );

/** Finds a response in a document, following references. Returns its JSON Pointer and its content. */
function found(scope: Scope, pointer: string): { pointer: string; response: Response } | undefined {
  const value = at(documents[scope], pointer) as Response | { $ref: string } | undefined;
  if (value === undefined) return undefined;
  return '$ref' in value ? found(scope, value.$ref.slice(1)) : { pointer, response: value };
}

/** Builds a JSON Pointer from the names along a path in a document. */
const pointerOf = (names: readonly string[]): string =>
  `/${names.map((name) => name.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`;

/** Lists the error codes that an operation documents, with the HTTP statuses that mention each code. */
function codesOf(scope: Scope, { path, method, operation }: Located): Map<string, number[]> {
  const codes = new Map<string, number[]>();
  for (const status of Object.keys(operation.responses)) {
    const { response } = found(scope, pointerOf(['paths', path, method, 'responses', status]))!;
    for (const [code] of response.description.matchAll(/KS-\d{4}/g)) {
      codes.set(code, [...(codes.get(code) ?? []), Number(status)]);
    }
  }
  return codes;
}

/** Returns the value at a JSON Pointer, or undefined if there is none. */
const at = (value: unknown, pointer: string): unknown =>
  pointer
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (part, name) =>
        (part as Record<string, unknown> | undefined)?.[name.replaceAll('~1', '/').replaceAll('~0', '~')],
      value,
    );

/** Validates an answer against its schema in the OpenAPI document. */
function expectDocumented(scope: Scope, method: string, path: string, answer: Answer): void {
  const what = `${method} ${path} ${answer.status} ${answer.text}`;
  const documented = found(scope, pointerOf(['paths', path, method, 'responses', String(answer.status)]));
  expect(documented, what).toBeDefined();
  const { pointer, response } = documented!;
  for (const name of Object.keys(response.headers)) {
    if (!/^(Retry-After|Idempotent-Replayed|Deprecation|Sunset|Link)$/.test(name))
      expect(answer.headers.get(name), what).not.toBeNull();
  }
  if (response.content === undefined) {
    expect(answer.text).toBe('');
    return;
  }
  expect(answer.headers.get('content-type')).toBe('application/json');
  if (answer.status >= 400) expect(response.description, what).toContain(answer.body.errorCode);
  const $ref = `${scope}#${encodeURI(`${pointer}/content/application~1json/schema`)}`;
  const validate = ajv.getSchema($ref)!;
  expect(validate(answer.body), `${what} ${ajv.errorsText(validate.errors)}`).toBe(true);
}

describe.each(SCOPES)('the OpenAPI document of the %s API', (scope) => {
  test('serves an OpenAPI document that equals the file in openapi/', () => {
    const file = readFileSync(join(ROOT, 'openapi', `${scope}.v1.json`), 'utf8');
    expect(documents[scope]).toEqual(JSON.parse(file));
  });

  test('serves an OpenAPI 3.1 document whose references resolve and whose schemas compile', () => {
    const document = documents[scope];
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document.info).toMatchObject({ title: expect.any(String), version: API_VERSION });
    expect(document.servers).toMatchObject([
      { url: BASES[scope] },
      { url: `https://{host}${BASES[scope]}`, variables: { host: { default: 'spindle.example.com' } } },
    ]);
    for (const [, pointer] of JSON.stringify(document).matchAll(/"\$ref":"#([^"]*)"/g)) {
      expect(at(document, pointer!), pointer).toBeDefined();
    }
    const compiled = new Set<string>();
    for (const { operation } of operationsOf(scope)) {
      const { parameters, requestBody, responses } = operation;
      const inline = Object.values(responses).filter((each): each is Response => !('$ref' in each));
      const shared = Object.values(document.components.responses);
      const bodies = [requestBody, ...inline, ...shared].flatMap((part) =>
        Object.values(part?.content ?? {}),
      );
      for (const schema of [...bodies, ...parameters].map((part) => part.schema)) {
        // In a schema that is part of a document, `#` refers to the document, so each reference needs the
        // document's name.
        const text = JSON.stringify(schema).replaceAll('"$ref":"#', `"$ref":"${scope}#`);
        if (compiled.has(text)) continue;
        compiled.add(text);
        expect(() => ajv.compile(JSON.parse(text)), operation.operationId).not.toThrow();
      }
    }
  });

  test('declares every path parameter and gives each operation of the OpenAPI document a unique id', () => {
    const ids = operationsOf(scope).map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation } of operationsOf(scope)) {
      const inPath = operation.parameters.filter((parameter) => parameter.in === 'path');
      expect(inPath.every((parameter) => parameter.required)).toBe(true);
      expect(inPath.map(({ name }) => name)).toEqual(
        [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
      );
    }
  });

  test('declares the header Idempotency-Key exactly for the operations whose body has a requestId', () => {
    const isDeclared = ({ parameters }: Operation): boolean =>
      parameters.some(({ name, in: place }) => name === 'Idempotency-Key' && place === 'header');
    const { schemas } = documents[scope].components as unknown as {
      schemas: Record<string, { properties?: object }>;
    };
    const takesId = ({ requestBody }: Operation): boolean => {
      const schema = requestBody?.content?.['application/json']?.schema as
        | { $ref?: string; properties?: object }
        | undefined;
      const named = schema?.$ref === undefined ? schema : schemas[schema.$ref.split('/').at(-1)!];
      return 'requestId' in (named?.properties ?? {});
    };
    const all = operationsOf(scope).map(({ operation }) => operation);
    expect(all.filter(takesId).length).toBeGreaterThan(0);
    expect(all.filter(isDeclared).map(({ operationId }) => operationId)).toEqual(
      all.filter(takesId).map(({ operationId }) => operationId),
    );
  });

  test('serves the same OpenAPI document for every Host header', async () => {
    const path = `${BASES[scope]}/openapi.json`;
    const headers = { Host: 'evil.example.com', 'X-Forwarded-Host': 'evil.example.com' };
    const { text } = await client.request('GET', path, { headers });
    expect(JSON.parse(text)).toEqual(documents[scope]);
    expect(text).not.toContain('evil');
  });

  test('documents each error code under its own HTTP status, and KS-4101 also under 413 if there is a body', () => {
    for (const located of operationsOf(scope)) {
      const { operation } = located;
      for (const [code, statuses] of codesOf(scope, located)) {
        const entry = byCode.get(code);
        expect(entry?.reserved, code).toBeUndefined();
        const also413 = code === ERRORS.validationFailed.code && operation.requestBody !== undefined;
        expect(statuses, `${operation.operationId} ${code}`).toEqual(also413 ? [400, 413] : [entry?.status]);
      }
    }
  });
});

test('answers valid and invalid requests of every operation as the OpenAPI document says', async () => {
  for (const { name, scope, method, template, prepare } of await everyOperation(client, sql, partner)) {
    const { path, ...request } = await prepare();
    const ask = async (changed: Partial<typeof request> & { path?: string } = {}) => {
      const answer = await client.request(method, changed.path ?? path, { ...request, ...changed });
      expectDocumented(scope, method.toLowerCase(), template, answer);
      return answer;
    };
    const { status, text } = await ask();
    expect(status, `${name} ${text}`).toBeLessThan(300);
    await ask();
    for (const wrong of ['x', '%ff', '2000000000', '2026-02-30'])
      if (template.includes('{')) await ask({ path: BASES[scope] + template.replaceAll(/\{\w+\}/g, wrong) });
    if (request.body !== undefined)
      for (const body of [{}, [], 'x', 'x'.repeat(65_537)])
        await ask({ body: body as Record<string, unknown> });
    const [bare, query] = path.split('?');
    if (query !== undefined) await ask({ path: bare });
  }
  // Each further wrong key from an address is answered later.
  for (const scope of SCOPES) {
    const path = { partner: '/version', operator: '/partners', play: '/rounds' }[scope];
    const refused = await client.request('GET', BASES[scope] + path, { key: 'ks_wrong' });
    expectDocumented(scope, 'get', path, refused);
  }
});
