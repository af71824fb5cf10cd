/**
 * Simulates players of every kind of game behind a load balancer. Connections are kept alive, and a request
 * whose connection was closed is retried once at another address. Responses are kept, so that their requests
 * can be repeated and compared.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { Agent } from 'undici';

const CONNECTIONS_PER_ADDRESS = 8;
const TICK_MS = 10;
const PLAYERS = 200;
/** Maximum number of responses that are kept for a repetition of their requests. */
const KEPT_MAX = 4000;

export interface Games {
  readonly key: string;
  readonly slots: readonly number[];
  readonly raffle: number;
  readonly table: number;
}

export interface Kept {
  readonly key: string;
  readonly body: string;
  readonly text: string;
}

interface WireAnswer {
  readonly status: number;
  readonly text: string;
}

/** A request that failed or got a wrong response. */
export interface Failure {
  readonly at: string;
  readonly what: string;
}

export class Traffic {
  readonly #agent = new Agent({
    connections: CONNECTIONS_PER_ADDRESS,
    pipelining: 1,
    keepAliveTimeout: 60_000,
  });
  readonly #addresses: string[] = [];
  readonly #underWay = new Set<Promise<void>>();
  #isOver = false;
  #running: Promise<void> = Promise.resolve();
  #next = 0;
  /** True after a process was killed: requests that were in flight are retried until they are answered. */
  mayFail = false;
  readonly failures: Failure[] = [];
  readonly kept: Kept[] = [];
  /** Number of spins and tickets whose response had status 200, without repetitions. */
  dealt = 0;
  rounds = 0;
  retried = 0;
  /** Latencies of requests in ms, by the phase in which they were sent. */
  readonly latencies = new Map<string, number[]>();
  phase = 'steady';

  constructor(private readonly partners: readonly Games[]) {}

  add(address: string): void {
    this.#addresses.push(address);
  }

  remove(address: string): void {
    const at = this.#addresses.indexOf(address);
    if (at >= 0) this.#addresses.splice(at, 1);
  }

  /** Sends the given number of requests per second, however long each request takes. */
  start(perSecond: number): void {
    const loop = async (): Promise<void> => {
      const begun = performance.now();
      for (let sent = 0; !this.#isOver; ) {
        const due = Math.floor(((performance.now() - begun) / 1000) * perSecond);
        for (; sent < due; sent++) this.#send();
        await pause(TICK_MS);
      }
    };
    this.#running = loop();
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#running;
    await Promise.all(this.#underWay);
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  /**
   * Repeats the requests whose responses were kept.
   * @returns the responses that differ
   */
  async differing(): Promise<Kept[]> {
    const differing: Kept[] = [];
    for (const each of this.kept) {
      const answer = await this.#ask(each.key, '/api/partner/v1/spin', each.body);
      if (answer.text !== each.text) differing.push(each);
    }
    return differing;
  }

  #send(): void {
    const number = this.#next++;
    const partner = this.partners[number % this.partners.length]!;
    const work = this.#play(partner, number)
      .catch((error: unknown) => this.#fail(String(error)))
      .finally(() => this.#underWay.delete(work));
    this.#underWay.add(work);
  }

  #play(partner: Games, number: number): Promise<void> {
    if (number % 50 === 1) return this.#look(partner);
    return number % 20 === 0 ? this.#round(partner, number) : this.#spin(partner, number);
  }

  async #look({ key }: Games): Promise<void> {
    const { status, text } = await this.#ask(key, '/api/partner/v1/games');
    if (status !== 200) this.#fail(`${status} ${text.slice(0, 120)}`);
  }

  async #spin({ key, slots, raffle }: Games, number: number): Promise<void> {
    const isTicket = number % 7 === 0;
    const gameId = isTicket ? raffle : slots[number % slots.length]!;
    const wagerUsd = isTicket ? 1 : 0.25;
    const playerId = `p${number % PLAYERS}`;
    const body = JSON.stringify({ gameId, playerId, wagerUsd, requestId: `r${number}` });
    const { status, text } = await this.#timed(key, '/api/partner/v1/spin', body);
    if (status !== 200) return this.#fail(`${status} ${text.slice(0, 120)}`);
    this.dealt++;
    if (this.kept.length < KEPT_MAX) this.kept.push({ key, body, text });
  }

  async #round({ key, table }: Games, number: number): Promise<void> {
    const playerId = `t${number}`;
    const order = { gameId: table, playerId, wagerUsd: 0.25, requestId: `d${number}` };
    let answer = await this.#timed(key, '/api/play/blackjack/deal', JSON.stringify(order));
    for (let steps = 0; steps < 12; steps++) {
      if (answer.status !== 200 && answer.status !== 201)
        return this.#fail(`${answer.status} ${answer.text.slice(0, 120)}`);
      const round = JSON.parse(answer.text) as {
        roundId: string;
        status: string;
        lastActionSeq: number;
        legalActions: { action: string }[];
      };
      if (round.status !== 'OPEN') {
        this.rounds++;
        return;
      }
      const names = round.legalActions.map(({ action }) => action);
      const action = names.find((name) => name === 'noInsurance' || name === 'stand') ?? names[0]!;
      const step = { roundId: round.roundId, seq: round.lastActionSeq + 1, action };
      answer = await this.#timed(key, '/api/play/blackjack/action', JSON.stringify(step));
    }
  }

  async #timed(key: string, path: string, body: string): Promise<WireAnswer> {
    const { phase } = this;
    const begun = performance.now();
    const answer = await this.#ask(key, path, body);
    const all = this.latencies.get(phase) ?? [];
    all.push(performance.now() - begun);
    this.latencies.set(phase, all);
    return answer;
  }

  /** @throws if the second attempt, at another address, also ends with a closed connection */
  async #ask(key: string, path: string, body?: string): Promise<WireAnswer> {
    let first: string | undefined;
    for (let tries = 1; ; tries++) {
      const others = this.#addresses.filter((address) => address !== first);
      const address = others[this.#next % others.length] ?? this.#addresses[0]!;
      try {
        return await this.#once(address, key, path, body);
      } catch (error) {
        if (tries >= (this.mayFail ? 20 : 2)) throw error;
        this.retried++;
        first = address;
        if (tries > 1) await pause(100);
      }
    }
  }

  async #once(origin: string, key: string, path: string, body?: string): Promise<WireAnswer> {
    const response = await this.#agent.request({
      origin,
      path,
      ...(body === undefined ? { method: 'GET' as const } : { body, method: 'POST' as const }),
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
    });
    const answer = { status: response.statusCode, text: await response.body.text() };
    // A service that can't determine the state of its stores yet returns an error, and the request is
    // retried.
    if (this.mayFail && (answer.status >= 500 || answer.text.includes('KS-4110')))
      throw new Error(`${answer.status} ${answer.text.slice(0, 80)}`);
    return answer;
  }

  #fail(what: string): void {
    this.failures.push({ at: new Date().toISOString(), what });
  }
}

/** @param share quantile from 0 to 1; for 0.99 returns the lowest latency of the slowest hundredth */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
