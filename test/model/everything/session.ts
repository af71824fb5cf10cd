/** Talks to the service for one sequence of commands, and keeps what was asked and answered. */
import { type Client, OPERATOR_KEY, type TestPartner } from '../../support/client.js';
import { portOf, Wire } from '../../support/load.js';
import { until } from '../../support/wait.js';
import { at, type Json, numbersAsText } from '../decimal.js';

/** The service did otherwise than the reference. */
export class Difference extends Error {}

export interface Reply {
  readonly status: number;
  readonly text: string;
  /** With each number as the text that it was written as; undefined where the body is no JSON. */
  readonly json: Json | undefined;
  readonly isReplayed: boolean;
}

/** What all sequences share. */
export interface World {
  /** The service; another one after a restart. */
  readonly client: () => Client;
  /** Stops the service and starts it on the same stores; no sequence may have a request under way. */
  restart(): Promise<void>;
  /** Resolves when Redis holds no request id any more; no sequence may have a request under way. */
  requestIds(): Promise<void>;
  /** What the service has printed, warnings and worse, and those before it. */
  readonly log: () => string;
  /** How often each command had each outcome. */
  readonly seen: Map<string, number>;
  /** How long what comes by itself may take, milliseconds. */
  readonly patienceMs: number;
  /** Whether each command is followed by all reads that it can have changed; otherwise by some of them, in turn. */
  readonly isThorough: boolean;
}

const TRACED_CHARACTERS = 400;

/** How often is looked for what comes by itself, milliseconds: to look costs more than to wait. */
const LOOK_EVERY_MS = 50;

export class Session {
  readonly trace: string[] = [];
  /** A move of the partner may be under way. */
  isMoving = false;
  /** Counts what is chosen in turn. */
  turn = 0;
  #wire: Wire | undefined;
  #base = '';

  constructor(
    readonly world: World,
    readonly partner: TestPartner,
  ) {}

  /** The partner API. */
  partnerApi(method: string, path: string, body?: object, headers = {}, key = this.partner.key) {
    return this.#ask(method, `/api/partner/v1${path}`, key, body, headers);
  }

  operator(method: string, path: string, body?: object) {
    return this.#ask(method, `/api/operator/v1${path}`, OPERATOR_KEY, body, {});
  }

  /** The API of blackjack rounds. */
  play(method: string, path: string, body?: object, headers = {}) {
    return this.#ask(method, `/api/play/blackjack${path}`, this.partner.key, body, headers);
  }

  /** An answer of the partner API that is no JSON and has no length. */
  async partnerText(path: string, accept: string): Promise<string> {
    const headers = { Accept: accept };
    const asked = `/api/partner/v1${path}`;
    const { status, text } = await this.world
      .client()
      .request('GET', asked, { key: this.partner.key, headers });
    this.trace.push(`GET ${asked} ${accept}: ${status} ${text}`.slice(0, TRACED_CHARACTERS));
    return text;
  }

  /** Ends the connection. */
  close(): void {
    this.#wire?.close();
    this.#wire = undefined;
  }

  /** One connection for all requests: a session asks one thing at a time. */
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
      // KS-5002: nothing happened, and it is to be sent again. Requests that wait for the ledger are refused while it is slow,
      // those of other partners of the cell, too. Of a partner that moves a spin is held; all else may meet the moment of it.
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

  /** Notes what came of a command. */
  saw(what: string): void {
    this.world.seen.set(what, (this.world.seen.get(what) ?? 0) + 1);
  }

  /** @throws Difference unless the answer has this status and, of an error, this code */
  expect(reply: Reply, what: string, wanted: string): void {
    const code = reply.status < 400 ? '' : ` ${String(at(reply.json, 'errorCode'))}`;
    same(`${what} is answered`, `${reply.status}${code}`, wanted, reply.text);
    this.saw(`${what} ${wanted}`);
  }

  /** @throws Difference where a read does not show what was acknowledged before it */
  async compare(what: string, differs: () => Promise<string | undefined>): Promise<void> {
    const difference = await differs();
    if (difference !== undefined) throw new Difference(`${what}: ${difference}`);
  }

  /** Waits for what the contract says comes within some time. @throws Difference where it does not come */
  async awaited(what: string, differs: () => Promise<string | undefined>): Promise<void> {
    let last: string | undefined;
    const length = this.trace.length;
    const agrees = async (): Promise<boolean> => {
      // Of the attempts the last alone is worth a line.
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

/** The service says that it can't now (docs/contract.md §8.4, §14). */
export const isUnavailable = ({
  status,
  text,
}: {
  readonly status: number;
  readonly text: string;
}): boolean => status === 503 && text.includes('"KS-5002"');

/** It reads, or has something by which the service knows it when it comes again. */
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

/** @throws Difference unless both are the same */
export function same(what: string, found: unknown, wanted: unknown, more = ''): void {
  const difference = unlike(found, wanted);
  if (difference !== undefined) throw new Difference(`${what}: ${difference}${more && `\n${more}`}`);
}

/** What differs between two values, in words; undefined where nothing does. */
export function unlike(found: unknown, wanted: unknown): string | undefined {
  const [a, b] = [shown(found), shown(wanted)];
  return a === b ? undefined : `found ${a}, expected ${b}`;
}

const shown = (value: unknown): string =>
  JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each} micro-USD` : each)) ?? 'nothing';
