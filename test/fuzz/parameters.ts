/**
 * Sends hostile values to every operation of the OpenAPI documents, for each parameter of its path and query
 * and for each member of its body. No answer may be an internal error. Only the documented 5xx refusals of a
 * game that can't be dealt are allowed.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from '../support/client.js';
import { plainRequest, portOf, postRequest, Wire } from '../support/load.js';
import { ROOT } from '../support/root.js';
import { parSheet } from '../support/sheets.js';

export const FUZZED_APIS = ['partner', 'operator', 'play'] as const;
const BASES = { partner: '/api/partner/v1', operator: '/api/operator/v1', play: '/api/play/blackjack' };
/** Refusals for a game without outcomes or funding at the moment, or while dealing is switched off. */
const REFUSALS = ['KS-4203', 'KS-5011', 'KS-5012', 'KS-5013'];
const CONNECTIONS = 4;

/** Texts for paths and queries, which are already percent-encoded, some of them wrongly. */
const TEXTS = [
  '',
  '%00',
  '%zz',
  '%',
  '%ED%A0%80',
  '%F0%9F%8E%B0',
  '%0a',
  '%7f',
  '.',
  '..',
  '%2e',
  '%2e%2e',
  '%2F',
  '-1',
  '0',
  '1',
  '1.5',
  '1e3',
  'NaN',
  'null',
  'true',
  '2147483648',
  '4294967296',
  '9223372036854775807',
  '9223372036854775808',
  '99999999999999999999999999',
  '0000-00-00',
  '1000-01-01',
  '2026-02-30',
  '9999-12-31',
  '1000-01-01T00:00:00Z',
  '9999-12-31T23:59:59.999999999Z',
  '+275760-09-13T00:00:00Z',
  '%27%22%5C%3B--',
  '%25%5F',
  'a'.repeat(4000),
];
/** Values for members of bodies. */
const VALUES: readonly unknown[] = [
  null,
  true,
  '',
  '\0',
  '\ud800',
  '🎰'.repeat(600),
  'x'.repeat(5000),
  '2026-02-30',
  '1000-01-01T00:00:00Z',
  '+275760-09-13T00:00:00Z',
  -1,
  0,
  1.5,
  1e308,
  2 ** 31,
  2 ** 53,
  2 ** 63,
  [],
  [null],
  {},
  { toString: 1, __proto__: null },
];

interface Parameter {
  readonly name: string;
  readonly in: string;
}
interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly example: Record<string, unknown> | undefined;
}

function operationsOf(api: (typeof FUZZED_APIS)[number]): Operation[] {
  const document = JSON.parse(readFileSync(join(ROOT, 'openapi', `${api}.v1.json`), 'utf8'));
  const resolved = (each: { $ref?: string }) =>
    each.$ref === undefined ? each : document.components.parameters[each.$ref.split('/').at(-1)!];
  return Object.entries(document.paths as Record<string, Record<string, Record<string, unknown>>>).flatMap(
    ([path, methods]) =>
      Object.entries(methods)
        .filter(([method]) => ['get', 'post', 'put', 'patch', 'delete'].includes(method))
        .map(([method, operation]) => ({
          method: method.toUpperCase(),
          path,
          parameters: [
            ...((methods.parameters as unknown as { $ref?: string }[]) ?? []),
            ...((operation.parameters as { $ref?: string }[]) ?? []),
          ].map(resolved) as Parameter[],
          example: exampleOf(operation.requestBody),
        })),
  );
}

function exampleOf(body: unknown): Record<string, unknown> | undefined {
  const content = (body as { content?: Record<string, Record<string, unknown>> } | undefined)?.content;
  const json = content?.['application/json'];
  if (json === undefined) return undefined;
  const [first] = Object.values((json.examples as Record<string, { value: unknown }>) ?? {});
  return (json.example ?? first?.value ?? {}) as Record<string, unknown>;
}

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly body: string | undefined;
}

/** Yields requests for an operation in which all values but one are valid. */
function* requestsOf(
  base: string,
  operation: Operation,
  right: (name: string, path: string) => string,
): Generator<Sent> {
  const { method, path, parameters, example } = operation;
  const pathWith = (hostile?: string, value = ''): string =>
    path.replace(/\{(\w+)\}/g, (_, name: string) => (name === hostile ? value : right(name, path)));
  const body = example === undefined ? undefined : JSON.stringify(example);
  const target = base + pathWith();
  for (const { name, in: place } of parameters)
    for (const value of TEXTS) {
      if (place === 'query') yield { method, target: `${target}?${name}=${value}`, body };
      if (place === 'path') yield { method, target: base + pathWith(name, value), body };
    }
  yield { method, target: `${target}?unknown=1`, body };
  if (example === undefined) return;
  for (const text of ['', '[]', '"', 'null', '{"a":', '{"__proto__":1}'])
    yield { method, target, body: text };
  for (const name of Object.keys(example))
    for (const value of VALUES) yield { method, target, body: JSON.stringify({ ...example, [name]: value }) };
}

export interface FuzzResult {
  readonly requests: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Internal errors that the service answered with, each with its request. */
  readonly faults: readonly string[];
}

/** @param share the share of the requests that are sent, from 0 to 1, spread over all operations */
export async function fuzzParameters(client: Client, operatorKey: string, share = 1): Promise<FuzzResult> {
  const statuses: Record<string, number> = {};
  const faults: string[] = [];
  let requests = 0;
  for (const api of FUZZED_APIS) {
    for (const operation of operationsOf(api)) {
      // Each operation gets a new partner, so that it is not affected by partners, keys or games that earlier
      // operations deactivated, moved or revoked.
      const partner = await client.newPartner({ spinRateLimit: 1_000_000, apiRateLimit: 1_000_000 });
      const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
      const right = (name: string, path: string): string => {
        if (name === 'id') return String(path.startsWith('/partners') ? partner.partnerId : gameId);
        if (name === 'playerId') return 'p';
        return name === 'date' ? '2026-01-01' : '1';
      };
      const key = api === 'operator' ? operatorKey : partner.key;
      const wanted = [...requestsOf(BASES[api], operation, right)].filter(
        (_, i) => Math.floor(i * share) !== Math.floor((i - 1) * share),
      );
      const next = wanted.values();
      const lane = async (): Promise<void> => {
        let wire = await Wire.open(portOf(client.base));
        let last = 0;
        for (const { method, target, body } of next) {
          const line = `${method} ${target.slice(0, 200)} ${body?.slice(0, 200) ?? ''}`;
          const asked =
            body === undefined
              ? plainRequest(method, target, key)
              : String(postRequest(target, key, body)).replace(/^POST/, method);
          requests++;
          try {
            const { status, text } = await wire.ask(asked);
            last = status;
            statuses[status] = (statuses[status] ?? 0) + 1;
            if (status >= 500 && !REFUSALS.some((code) => text.includes(code)))
              faults.push(`${line} ${text}`);
          } catch (error) {
            faults.push(`${line} ${error}`);
          }
          // The server closes the connection after a head that is too large.
          if (wire.hasEnded || last === 431) wire = await Wire.open(portOf(client.base));
        }
        wire.close();
      };
      await Promise.all(Array.from({ length: CONNECTIONS }, lane));
    }
  }
  return { requests, statuses, faults };
}
