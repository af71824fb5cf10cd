/** Sends spins and compares their responses with the ledger. */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { outboxKey } from '../../src/engine/redis/keys.js';
import { booksHold } from './books.js';
import type { Answer, Client, TestPartner } from './client.js';
import type { StoreUrls } from './stores.js';
import { until } from './wait.js';

export interface SpinAnswer extends Record<string, unknown> {
  readonly spinId: string;
  readonly errorCode?: string;
  readonly outcome: { readonly payoutUsd: number };
  readonly balance: { readonly balanceUsd: number };
}

export interface Asked {
  readonly playerId: string;
  readonly requestId: string | undefined;
  /** The first response of a spin and the responses to its retries. */
  readonly answers: Answer<SpinAnswer>[];
}

interface Row {
  readonly player_id: string;
  readonly request_id: string | null;
  readonly entry_id: bigint;
  readonly credit_micros: bigint;
  readonly balance_micros: bigint;
}

export interface Verdict {
  /** Number of spins by first response: `200`, `KS-5002`, … */
  readonly answers: Record<string, number>;
  /** Number of spins that were dealt although no response contained their outcome. */
  readonly happened: number;
  /** Spins whose ledger entries contradict their responses, with the reason. */
  readonly wrong: string[];
}

/** Returns the newest response to a spin as a short code: `200`, or its error code. */
export const codeOf = ({ answers }: Asked): string =>
  answers.at(-1)?.body.errorCode ?? String(answers.at(-1)?.status ?? 'none');

/** Spins one game with a new player for each spin, so that a row of the ledger identifies its spin. */
export class Witness {
  readonly asked: Asked[] = [];
  readonly #sql: postgres.Sql<{ bigint: bigint }>;
  readonly #redis: Redis;
  readonly #prefix: string;
  static #made = 0;

  /** @param padding lengthens the names of players and requests, and thereby the ledger entries */
  constructor(
    stores: StoreUrls,
    private readonly partner: TestPartner,
    private readonly gameId: number,
    padding = '',
  ) {
    this.#prefix = `w${++Witness.#made}${padding}`;
    this.#sql = postgres(stores.databaseUrl, { max: 2, types: { bigint: postgres.BigInt } });
    this.#redis = new Redis(stores.redisUrl, { protocol: 2 });
    // Errors are ignored, because some tests stop the servers.
    this.#redis.on('error', () => {});
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
    await this.#sql.end({ timeout: 2 });
  }

  /** Prepares the next spin without sending it. */
  next(isNamed: boolean): Asked & { readonly body: Record<string, unknown> } {
    const playerId = `${this.#prefix}-${this.asked.length}`;
    const requestId = isNamed ? `request-${playerId}` : undefined;
    const asked = { playerId, requestId, answers: [] };
    this.asked.push(asked);
    return Object.assign(asked, { body: this.body(asked) });
  }

  body({ playerId, requestId }: Pick<Asked, 'playerId' | 'requestId'>): Record<string, unknown> {
    return {
      gameId: this.gameId,
      playerId,
      wagerUsd: 0.25,
      ...(requestId === undefined ? {} : { requestId }),
    };
  }

  /** Sends a spin and stores its response. */
  async spin(client: Client, isNamed: boolean): Promise<Asked> {
    const asked = this.next(isNamed);
    asked.answers.push(await client.spin<SpinAnswer>(this.partner.key, asked.body));
    return asked;
  }

  async retry(client: Client, asked: Asked): Promise<Answer<SpinAnswer>> {
    const answer = await client.spin<SpinAnswer>(this.partner.key, this.body(asked));
    asked.answers.push(answer);
    return answer;
  }

  /** Keeps a number of spins in progress until it is stopped. Every third spin has no requestId. */
  async keepSpinning(client: Client, concurrency: number, isEnough: () => boolean): Promise<void> {
    await Promise.all(
      Array.from({ length: concurrency }, async () => {
        while (!isEnough()) {
          const asked = await this.spin(client, this.asked.length % 3 !== 0);
          // Refused spins return at once, so a short pause avoids thousands of useless requests a second.
          if (codeOf(asked) === 'KS-5002') await new Promise((resolve) => setTimeout(resolve, 5));
        }
      }),
    );
  }

  /** Retries each spin that was answered with KS-4110 until its outcome is known. */
  async resolve(client: Client): Promise<void> {
    for (const asked of this.asked) {
      if (codeOf(asked) !== 'KS-4110') continue;
      await until(
        async () => (await this.retry(client, asked)).status === 200,
        `${asked.requestId} is told (${asked.answers.at(-1)?.text})`,
      );
    }
  }

  /** Waits until everything that was dealt before this call is in the ledger. */
  async flushed(client: Client, cell = 0): Promise<void> {
    let entryCount = 0;
    // The outbox is a queue, so entries dealt before this spin are committed before it.
    await until(async () => {
      const last = await this.spin(client, true);
      return last.answers[0]!.status === 200;
    }, 'a last spin is dealt');
    const { playerId } = this.asked.at(-1)!;
    await until(async () => {
      entryCount = (await this.#rows(playerId)).length;
      return entryCount > 0;
    }, 'the last spin is booked');
    await until(async () => (await this.#redis.xlen(outboxKey(cell))) === 0, 'the outbox is trimmed');
  }

  /** Returns the number of committed spins of a player. */
  async booked(playerId: string): Promise<number> {
    return (await this.#rows(playerId)).length;
  }

  #rows(playerId: string): Promise<Row[]> {
    return this.#sql<Row[]>`
      SELECT player_id, request_id, entry_id, credit_micros, balance_micros FROM ledger
      WHERE kind = 1 AND partner_id = ${this.partner.partnerId} AND player_id = ${playerId}`;
  }

  /**
   * Compares each spin with the ledger, and checks that the books are consistent. Call {@link flushed} first.
   */
  async judge(): Promise<Verdict> {
    await booksHold(this.#sql);
    const rows = new Map<string, Row[]>();
    for (const row of await this.#sql<Row[]>`
      SELECT player_id, request_id, entry_id, credit_micros, balance_micros FROM ledger
      WHERE kind = 1 AND partner_id = ${this.partner.partnerId}`) {
      rows.set(row.player_id, [...(rows.get(row.player_id) ?? []), row]);
    }
    const answers: Record<string, number> = {};
    const wrong: string[] = [];
    let happened = 0;
    for (const asked of this.asked) {
      const first = asked.answers[0];
      const code = first === undefined ? 'none' : (first.body.errorCode ?? String(first.status));
      answers[code] = (answers[code] ?? 0) + 1;
      const own = rows.get(asked.playerId) ?? [];
      if (code !== '200' && own.length > 0) happened++;
      const fault = faultOf(asked, own);
      if (fault !== undefined) wrong.push(`${asked.playerId}, ${describe(asked)}: ${fault}`);
    }
    return { answers, happened, wrong };
  }
}

const describe = ({ answers }: Asked): string =>
  answers.map(({ status, body }) => body.errorCode ?? `${status} ${body.spinId}`).join(' then ');

const micros = (usd: number): bigint => BigInt(Math.round(usd * 1e6));

/** Returns the fault in the ledger entries of a spin, or undefined if there is none. */
function faultOf({ requestId, answers }: Asked, rows: readonly Row[]): string | undefined {
  if (rows.length > 1) return `is in the ledger ${rows.length} times`;
  const [row] = rows;
  if (row !== undefined && row.request_id !== (requestId ?? null))
    return 'has another requestId in the ledger';
  const told = answers.filter(({ status }) => status === 200);
  if (new Set(told.map(({ text }) => text)).size > 1) return 'was told in two ways';
  if (told.length > 0) {
    if (row === undefined) return 'was told and is not in the ledger';
    const { outcome, balance } = told[0]!.body;
    if (row.credit_micros !== micros(outcome.payoutUsd)) return `paid ${row.credit_micros}`;
    if (row.balance_micros !== micros(balance.balanceUsd)) return `left ${row.balance_micros}`;
    return undefined;
  }
  const codes = answers.map(({ body }) => body.errorCode);
  const other = codes.find((code) => code !== 'KS-4110' && code !== 'KS-5002');
  if (other !== undefined) return `was answered with ${other}`;
  // A spin that got a response that leaves its result open may have been dealt. A spin that was refused each
  // time must not have been dealt.
  const isRefused = requestId !== undefined && codes.length > 0 && codes.every((code) => code === 'KS-5002');
  return isRefused && row !== undefined ? 'was refused and is in the ledger' : undefined;
}
