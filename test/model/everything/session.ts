/** Sends the requests of one sequence and records them with their responses. */
import { type Client, OPERATOR_KEY, type TestPartner } from '../../support/client.js';
import { portOf, Wire } from '../../support/load.js';
import { until } from '../../support/wait.js';
import { at, type Json, numbersAsText } from '../decimal.js';

export class Difference extends Error {}

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** Body with each number as its original text. Undefined if the body is not JSON. */
  readonly json: Json | undefined;
  readonly isReplayed: boolean;
}

export interface World {
  /** Client of the running service. A restart replaces it. */
  readonly client: () => Client;
  /** Restarts the service on the same stores. No sequence may have a request in progress. */
  restart(): Promise<void>;
  /** Resolves once Redis holds no request id. No sequence may have a request in progress. */
  requestIds(): Promise<void>;
  /**
   * Lets Redis refuse every write while a callback runs. No sequence may have another request in progress.
   */
  refusing(during: () => Promise<unknown>): Promise<void>;
  /** Output of the service and of its earlier processes: warnings and errors. */
  readonly log: () => string;
  /** Number of occurrences of each result of each command. */
  readonly seen: Map<string, number>;
  /** Longest wait, in ms, for an effect that appears without a further request. */
  readonly patienceMs: number;
  /**
   * Whether all read operations are compared after a command that may have changed their results; otherwise
   * they are compared in turn.
   */
  readonly isThorough: boolean;
}

const TRACED_CHARACTERS = 400;

/** Interval of polls in ms. It is not shorter, because a poll costs more than the wait before it. */
const LOOK_EVERY_MS = 50;

export class Session {
  readonly trace: string[] = [];
  /** True while a move of the partner may be in progress. */
  isMoving = false;
  /** Counter for choices among several values that are used in turn. */
  turn = 0;
  #wire: Wire | undefined;
  #base = '';

  constructor(
    readonly world: World,
    readonly partner: TestPartner,
  ) {}

  partnerApi(method: string, path: string, body?: object, headers = {}, key = this.partner.key) {
    return this.#ask(method, `/api/partner/v1${path}`, key, body, headers);
  }

  operator(method: string, path: string, body?: object) {
    return this.#ask(method, `/api/operator/v1${path}`, OPERATOR_KEY, body, {});
  }

  play(method: string, path: string, body?: object, headers = {}) {
    return this.#ask(method, `/api/play/blackjack${path}`, this.partner.key, body, headers);
  }

  /** Returns a response of the partner API that is not JSON and has no Content-Length. */
  async partnerText(path: string, accept: string): Promise<string> {
    const headers = { Accept: accept };
    const asked = `/api/partner/v1${path}`;
    const { status, text } = await this.world
      .client()
      .request('GET', asked, { key: this.partner.key, headers });
    this.trace.push(`GET ${asked} ${accept}: ${status} ${text}`.slice(0, TRACED_CHARACTERS));
    return text;
  }

  close(): void {
    this.#wire?.close();
    this.#wire = undefined;
  }

  /**
   * Returns the connection for all requests of the session, which has only one request in progress at a time.
   */
  async #connection(): Promise<Wire> {
    const { base } = this.world.client();
    if (this.#wire === undefined || this.#wire.hasEnded || this.#base !== base) {
      this.close();
      this.#base = base;
      this.#wire = await Wire.open(portOf(base));
    }
    return this.#wire;
  }

  async #ask(
    method: string,
    path: string,
    key: string,
    body: object | undefined,
    headers: Record<string, string>,
  ): Promise<Reply> {
    const bytes = bytesOf(method, path, key, body, headers);
    let answer = await (await this.#connection()).ask(bytes);
    if (isRepeatable(method, body, headers) || (this.isMoving && !path.endsWith('/spin'))) {
      // KS-5002 means that nothing happened and that the request may be retried. Requests that wait for the
      // ledger are refused while it is slow, including those of other partners in the cell. The spins of a
      // moving partner are held back, but its other requests may arrive at the moment at which the partner is
      // switched to the new cell.
      const isDone = async (): Promise<boolean> => {
        if (!isUnavailable(answer)) return true;
        this.saw(this.isMoving ? 'refused in a move' : 'refused for the moment');
        answer = await (await this.#connection()).ask(bytes);
        return false;
      };
      await until(isDone, `${method} ${path} is not refused any more`, this.world.patienceMs, LOOK_EVERY_MS);
    }
    const { status, text, headers: answered } = answer;
    const line = `${method} ${path} ${JSON.stringify({ ...body, ...headers })}: ${status} ${text}`;
    this.trace.push(line.slice(0, TRACED_CHARACTERS));
    let json: Json | undefined;
    try {
      json = text === '' ? undefined : numbersAsText(text);
    } catch {
      json = undefined;
    }
    return { status, text, json, isReplayed: answered.get('idempotent-replayed') === 'true' };
  }

  saw(what: string): void {
    this.world.seen.set(what, (this.world.seen.get(what) ?? 0) + 1);
  }

  /** @throws Difference unless the response has this status and, for an error, this code */
  expect(reply: Reply, what: string, wanted: string): void {
    const code = reply.status < 400 ? '' : ` ${String(at(reply.json, 'errorCode'))}`;
    same(`${what} is answered`, `${reply.status}${code}`, wanted, reply.text);
    this.saw(`${what} ${wanted}`);
  }

  /** @throws Difference if a response lacks what was acknowledged before the request */
  async compare(what: string, differs: () => Promise<string | undefined>): Promise<void> {
    const difference = await differs();
    if (difference !== undefined) throw new Difference(`${what}: ${difference}`);
  }

  /**
   * Waits for an effect that the contract promises within some time.
   * @throws Difference if it does not appear
   */
  async awaited(what: string, differs: () => Promise<string | undefined>): Promise<void> {
    let last: string | undefined;
    const length = this.trace.length;
    const agrees = async (): Promise<boolean> => {
      // Of a request that is sent repeatedly, the trace keeps only the last attempt.
      this.trace.length = length;
      last = await differs();
      return last === undefined;
    };
    try {
      await until(agrees, what, this.world.patienceMs, LOOK_EVERY_MS);
    } catch (error) {
      if (last === undefined) throw error;
      throw new Difference(`${what}: ${last}`);
    }
  }
}

/** Returns whether the service reports that it is temporarily unavailable (docs/contract.md §8.4, §14). */
export const isUnavailable = ({
  status,
  text,
}: {
  readonly status: number;
  readonly text: string;
}): boolean => status === 503 && text.includes('"KS-5002"');

/** Returns whether a request may be retried: it is a read, or the service recognises the retry. */
const isRepeatable = (method: string, body: object | undefined, headers: object): boolean =>
  method === 'GET' ||
  'Idempotency-Key' in headers ||
  (body !== undefined && ('requestId' in body || 'seq' in body));

function bytesOf(
  method: string,
  path: string,
  key: string,
  body: object | undefined,
  headers: Record<string, string>,
): string {
  const content = body === undefined ? '' : JSON.stringify(body);
  const length = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(content)}\r\n`;
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${key}\r\n${more.join('')}${
    body === undefined ? '' : length
  }\r\n${content}`;
}

/** @throws Difference unless the two values are equal */
export function same(what: string, found: unknown, wanted: unknown, more = ''): void {
  const difference = unlike(found, wanted);
  if (difference !== undefined) throw new Difference(`${what}: ${difference}${more && `\n${more}`}`);
}

/** Describes the difference between two values. Undefined if they are equal. */
export function unlike(found: unknown, wanted: unknown): string | undefined {
  const [a, b] = [shown(found), shown(wanted)];
  return a === b ? undefined : `found ${a}, expected ${b}`;
}

const shown = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each} micro-USD` : each)) ?? 'nothing';
