/**
 * Checks that the served OpenAPI documents equal the files in openapi/, and that the service's responses
 * match these documents.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type AnySchema } from 'ajv/dist/2020.js';
import { beforeAll, describe, expect, test } from 'vitest';
import { API_VERSION, BASES } from '../../../src/api/contract/apis.js';
import { ENDPOINTS } from '../../../src/api/index.js';
import { ERRORS } from '../../../src/domain/errors.js';
import { authFailuresKey } from '../../../src/engine/redis/keys.js';
import { fuzzParameters } from '../../fuzz/parameters.js';
import { world } from '../../setup/world.js';
import type { Answer } from '../../support/client.js';
import { everyOperation, type Operation as Prepared } from '../../support/everyOperation.js';
import { ROOT } from '../../support/root.js';
import { constants } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type Refused, type Schemas, wrongRequests } from './wrongRequests.js';

interface Operation {
  operationId: string;
  parameters: { name: string; in: string; required?: boolean; schema: AnySchema }[];
  requestBody?: { required?: boolean; content: Record<string, { schema: AnySchema }> };
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

/** Share of the hostile values that this test sends. The command `npm run test:fuzz` sends all of them. */
const SHARE = 0.1;

const byCode = new Map(Object.values(ERRORS).map((entry) => [entry.code as string, entry]));

const { service: client, sql, redis, partner } = world(constants({ authFailureLimit: 1_000_000 }));
const documents = {} as Record<Scope, Document>;
let prepared: Prepared[];
const ajv = new Ajv2020({ strict: false, allErrors: true });
ajv.addFormat('date-time', { validate: (text: string) => new Date(text).toISOString() === text });

beforeAll(async () => {
  for (const scope of SCOPES) {
    const answer = await client.request<Document>('GET', `${BASES[scope]}/openapi.json`);
    expect(answer.status).toBe(200);
    documents[scope] = answer.body;
    ajv.addSchema(answer.body as unknown as AnySchema, scope);
  }
  prepared = await everyOperation(client, sql, partner);
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

/** Returns the schemas of what an operation accepts. */
function schemasOf(scope: Scope, path: string, method: string): Schemas {
  const { parameters, requestBody } = documents[scope].paths[path]![method]!;
  const names = ['paths', path, method, 'requestBody', 'content', 'application/json', 'schema'];
  return {
    query: parameters.filter(({ in: place }) => place === 'query') as Schemas['query'],
    body: requestBody?.content['application/json']?.schema as Record<string, unknown> | undefined,
    isBodyRequired: requestBody?.required === true,
    validateBody: requestBody && ajv.getSchema(`${scope}#${encodeURI(pointerOf(names))}`),
    resolve: (ref) => at(documents[scope], ref.slice(1)) as Record<string, unknown>,
  };
}

test('refuses each wrong part of a request of every operation with its error, and changes nothing', async () => {
  const stranger = await client.newPartner();
  const changes = async () =>
    (await sql`SELECT count(*) FROM audit_log WHERE actor <> 'worker'`)[0]!.count as bigint;
  const faults: string[] = [];
  let sent = 0;
  for (const operation of prepared) {
    const { name, scope, template, prepare } = operation;
    const method = operation.method.toLowerCase();
    const request = await prepare();
    const ask = async (changed: Refused['changed'] = {}) => {
      const { path, ...sent } = { ...request, ...changed };
      const answer = await client.request(sent.method, path, sent);
      expectDocumented(scope, method, template, answer);
      return answer;
    };
    const before = await changes();
    // From the fourth wrong key within a minute on, answers come later.
    await redis.del(authFailuresKey('127.0.0.1'));
    const schemas = schemasOf(scope, template, method);
    for (const { code, changed, wrong } of wrongRequests(operation, request, schemas, stranger)) {
      const { body, text } = await ask(changed);
      sent++;
      const details = (body?.details ?? []) as { path: string }[];
      const isNamed = (pointer: string) => details.some(({ path }) => path.startsWith(pointer));
      const isWrong = ({ path }: { path: string }) => wrong!.some((pointer) => path.startsWith(pointer));
      // The rules of a PAR sheet connect its parts, so that a fault of one part is also one of another.
      const isExact =
        wrong === undefined ||
        (wrong.every(isNamed) && (name === 'uploadParSheet' || details.every(isWrong)));
      if (body?.errorCode !== code || !isExact)
        faults.push(`${name} ${JSON.stringify(changed).slice(0, 200)}: not ${code} ${wrong}, but ${text}`);
    }
    if ((await changes()) !== before) faults.push(`${name}: a refused request changed something`);
    const { status, text, headers } = await ask();
    if (status >= 300 || headers.has('idempotent-replayed')) faults.push(`${name}: ${status} ${text}`);
    await ask();
  }
  expect(faults).toEqual([]);
  expect(sent).toBeGreaterThan(2000);
});

const faultsOf = async (path: string, method = 'GET', body?: unknown) => {
  const answer = await client.partner<{ errorCode: string; details: { path: string; message: string }[] }>(
    method,
    path,
    partner.key,
    body,
  );
  return [
    answer.status,
    answer.body.errorCode,
    ...(answer.body.details ?? []).map(({ path, message }) => `${path} ${message}`),
  ];
};

test("refuses query parameters that an operation doesn't have, and lists the parameters that it has", async () => {
  const known = 'which accepts from, to, fromEntry, toEntry, gameId, playerId, cursor, limit, escapeFormulas';
  expect(await faultsOf('/spins?page=2')).toEqual([
    400,
    'KS-4101',
    `/page is not a query parameter of this operation, ${known}`,
  ]);
  expect(await faultsOf('/spins?player=alice&limit=0')).toEqual([
    400,
    'KS-4101',
    `/player is not a query parameter of this operation, ${known}`,
    '/limit must be >= 1',
  ]);
  expect(await faultsOf('/games?limit=5')).toEqual([
    400,
    'KS-4101',
    '/limit is not a query parameter of this operation, which accepts none',
  ]);
});

test('refuses query values that are badly encoded, given twice, or contain control characters', async () => {
  expect(await faultsOf('/spins?playerId=%zz')).toEqual([
    400,
    'KS-4101',
    '/playerId must be percent-encoded UTF-8',
  ]);
  expect(await faultsOf('/spins?limit=5&limit=6')).toEqual([400, 'KS-4101', '/limit must be sent only once']);
  expect(await faultsOf('/spins?playerId=a%00b')).toEqual([
    400,
    'KS-4101',
    '/playerId must not contain control characters',
  ]);
});

test('refuses a spin whose requestId is in the query, and deals nothing', async () => {
  const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
  const body = { gameId, playerId: 'queried', wagerUsd: 0.25 };
  expect(await faultsOf('/spin?requestId=r', 'POST', body)).toEqual([
    400,
    'KS-4101',
    '/requestId is not a query parameter of this operation, which accepts none',
  ]);
  expect((await client.partner('GET', '/players/queried', partner.key)).status).toBe(404);
});

test('limits the pages of every list to 1 to 100 items, with 20 as the default', () => {
  const lists = ENDPOINTS.flatMap(({ operationId, query }) => {
    const properties = (query as { properties?: Record<string, object> } | undefined)?.properties ?? {};
    const isPaged = ['page', 'cursor', 'after'].some((name) => name in properties);
    return isPaged && 'limit' in properties ? [{ operationId, limit: properties.limit }] : [];
  });
  expect(lists.length).toBeGreaterThan(10);
  for (const { operationId, limit } of lists)
    expect(limit, operationId).toMatchObject({ minimum: 1, maximum: 100, default: 20 });
});

test('answers hostile values for a tenth of all parameters and members without an internal error', async () => {
  const { faults, requests } = await fuzzParameters(client, prepared, SHARE);
  expect(faults).toEqual([]);
  expect(requests).toBeGreaterThan(500);
});
