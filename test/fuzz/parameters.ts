/**
 * Sends hostile values to every operation of the OpenAPI documents, for each parameter of its path and query
 * and for each member of its body. No answer may be an internal error. Only the documented 5xx refusals of a
 * game that can't be dealt are allowed.
 */
import { type Client, OPERATOR_KEY } from '../support/client.js';
import type { Operation, Request } from '../support/everyOperation.js';
import { plainRequest, portOf, postRequest, Wire } from '../support/load.js';

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

interface Sent {
  readonly method: string;
  readonly target: string;
  readonly body: string | undefined;
}

/** Yields requests for an operation in which all values but one are valid. */
function* requestsOf(
  { template, query }: Operation,
  { method, path, body: valid }: Request,
): Generator<Sent> {
  const body = valid === undefined ? undefined : JSON.stringify(valid);
  const [bare] = path.split('?') as [string];
  const places = bare.split('/');
  const first = places.length - template.split('/').length;
  for (const [place, part] of template.split('/').entries())
    if (part.startsWith('{'))
      for (const value of TEXTS) yield { method, target: places.with(first + place, value).join('/'), body };
  for (const name of query)
    for (const value of TEXTS) yield { method, target: `${bare}?${name}=${value}`, body };
  yield { method, target: `${bare}?unknown=1`, body };
  if (valid === undefined) return;
  for (const text of ['', '[]', '"', 'null', '{"a":', '{"__proto__":1}'])
    yield { method, target: path, body: text };
  for (const name of Object.keys(valid))
    for (const value of VALUES)
      yield { method, target: path, body: JSON.stringify({ ...valid, [name]: value }) };
}

export interface FuzzResult {
  readonly requests: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Internal errors that the service answered with, each with its request. */
  readonly faults: readonly string[];
}

/** @param share the share of the requests that are sent, from 0 to 1, spread over all operations */
export async function fuzzParameters(
  client: Client,
  operations: readonly Operation[],
  share = 1,
): Promise<FuzzResult> {
  const statuses: Record<string, number> = {};
  const faults: string[] = [];
  let requests = 0;
  // The valid requests come first, because a hostile value may be valid and lower a limit of the partner.
  const valid: Request[] = [];
  for (const { prepare } of operations) valid.push(await prepare());
  for (const [at, operation] of operations.entries()) {
    const { key = OPERATOR_KEY } = valid[at]!;
    const next = [...requestsOf(operation, valid[at]!)]
      .filter((_, i) => Math.floor(i * share) !== Math.floor((i - 1) * share))
      .values();
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
          if (status >= 500 && !REFUSALS.some((code) => text.includes(code))) faults.push(`${line} ${text}`);
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
  return { requests, statuses, faults };
}
