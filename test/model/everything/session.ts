/** Talks to the service for one sequence of commands, and keeps what was asked and answered. */
import type { Client, TestPartner } from '../../support/client.js';
import { OPERATOR_KEY } from '../../support/client.js';
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
  /** Stops the service and starts it on the same stores; where it is this sequence's alone. */
  readonly restart?: () => Promise<void>;
  /** Resolves when Redis holds no request id any more; where the service is this sequence's alone. */
  readonly handedOver?: () => Promise<void>;
  /** How often each command had each outcome. */
  readonly seen: Map<string, number>;
  /** How long a read may take to show what was done, milliseconds. */
  readonly patienceMs: number;
}

const TRACED_CHARACTERS = 400;

export class Session {
  readonly trace: string[] = [];

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

  async #ask(
    method: string,
    path: string,
    key: string,
    body: object | undefined,
    headers: Record<string, string>,
  ): Promise<Reply> {
    const sent = body === undefined ? {} : { body };
    const answer = await this.world.client().request(method, path, { key, headers, ...sent });
    const { status, text } = answer;
    const line = `${method} ${path} ${JSON.stringify({ ...body, ...headers })}: ${status} ${text}`;
    this.trace.push(line.slice(0, TRACED_CHARACTERS));
    let json: Json | undefined;
    try {
      json = text === '' ? undefined : numbersAsText(text);
    } catch {
      json = undefined;
    }
    return { status, text, json, isReplayed: answer.headers.get('Idempotent-Replayed') === 'true' };
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

  /** Compares until nothing differs: some reads show what the ledger has, which is a moment behind. */
  async compare(what: string, differs: () => Promise<string | undefined>): Promise<void> {
    let last: string | undefined;
    const length = this.trace.length;
    const agrees = async (): Promise<boolean> => {
      // Of the attempts the last alone is worth a line.
      this.trace.length = length;
      last = await differs();
      return last === undefined;
    };
    try {
      await until(agrees, what, this.world.patienceMs);
    } catch (error) {
      if (last === undefined) throw error;
      throw new Difference(`${what}: ${last}`);
    }
  }
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
