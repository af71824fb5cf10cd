/**
 * Simulates blackjack players who retry until they are answered, whatever is killed meanwhile. Each settled
 * round is compared with the result that the reference model of test/domain/blackjack computes from its shoe
 * and its actions. Finally the ledger is compared with the answers.
 */
import { isDeepStrictEqual } from 'node:util';
import postgres from 'postgres';
import { DEFAULT_RULES } from '../../src/domain/games/blackjackRules.js';
import { cardText } from '../../src/domain/games/cards.js';
import { shuffleShoe } from '../../src/domain/games/shoe.js';
import { reference } from '../domain/blackjack/reference.js';
import { ConnectionEnded, postRequest, Wire, type WireAnswer } from '../support/load.js';
import { Random } from '../support/random.js';
import type { RoundAnswer } from '../support/rounds.js';
import { pause } from '../support/wait.js';

export const WAGER_USD = 0.5;
export const OPENING_USD = 1000;
const PATIENCE_MS = 5000;
const ASK_AGAIN_MS = 100;
/** Results of a request that an outage explains. Such a request is retried. */
export const OUTAGE = ['no answer', 'KS-4110', 'KS-4203', 'KS-5002', 'KS-5012', 'KS-5004'];
export const RULES: readonly Record<string, unknown>[] = [
  {},
  { decks: 1, blackjackPays: '6:5', maxHands: 4, lateSurrender: true, peek: false },
];

export interface RoundStage {
  port(): number;
  readonly key: string;
  /** Game ids of the blackjack tables. Each table has the {@link RULES} at the same position. */
  readonly tables: readonly number[];
  readonly connections: number;
  readonly seed: string;
}

const micros = (usd: number): number => Math.round(usd * 1e6);

/** One connection, which is reopened when it ends. */
export class Line {
  #wire: Wire | undefined;

  constructor(private readonly stage: Pick<RoundStage, 'port'>) {}

  async ask(bytes: Buffer): Promise<WireAnswer | undefined> {
    let timer: NodeJS.Timeout | undefined;
    try {
      if (this.#wire === undefined || this.#wire.hasEnded) this.#wire = await Wire.open(this.stage.port());
      timer = setTimeout(() => this.#wire?.close(), PATIENCE_MS);
      return await this.#wire.ask(bytes);
    } catch (error) {
      if (!(error instanceof ConnectionEnded) && (error as NodeJS.ErrnoException).code === undefined)
        throw error;
      this.close();
      return undefined;
    } finally {
      clearTimeout(timer);
    }
  }

  close(): void {
    this.#wire?.close();
    this.#wire = undefined;
  }
}

export class RoundPlayers {
  rounds = 0;
  actions = 0;
  /** Number of requests that were retried because their answer was missing. */
  again = 0;
  /** Problems that no outage explains. */
  readonly wrong: string[] = [];
  /** Expected balance change by playerId, in micro-USD relative to the opening balance. */
  readonly #net = new Map<string, number>();
  readonly #shoes = new Set<string>();

  constructor(private readonly stage: RoundStage) {}

  async play(total: number): Promise<void> {
    const { connections, seed } = this.stage;
    await Promise.all(
      Array.from({ length: connections }, async (_, i) => {
        const line = new Line(this.stage);
        const random = new Random(seed, 'plays', i);
        // Each connection has its own players because a player has only one open round at a table.
        for (let n = i; n < total; n += connections) await this.#playRound(line, n, random);
        line.close();
      }),
    );
  }

  /** @returns problems of the answers, and differences between answers and ledger */
  async judge(databaseUrl: string): Promise<string[]> {
    const wrong = [...this.wrong];
    const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
    try {
      const [row] = await sql<{ rounds: string; settled: string; actions: string }[]>`
        SELECT count(*) AS rounds, count(*) FILTER (WHERE status = 'SETTLED') AS settled,
          coalesce(sum(cardinality(moves)), 0) AS actions FROM rounds`;
      const is = `${row!.rounds} rounds, ${row!.settled} settled, ${row!.actions} actions`;
      const should = `${this.rounds} rounds, ${this.rounds} settled, ${this.actions} actions`;
      if (is !== should) wrong.push(`Postgres has ${is}; players were told ${should}`);
      const balances = await sql<{ player_id: string; balance: string }[]>`
        SELECT DISTINCT ON (player_id) player_id, balance_micros AS balance FROM ledger ORDER BY player_id, entry_id DESC`;
      for (const { player_id, balance } of balances) {
        const expected = micros(OPENING_USD) + (this.#net.get(player_id) ?? 0);
        if (Number(balance) !== expected) wrong.push(`${player_id} has ${balance}, not ${expected}`);
      }
      if (balances.length !== this.#net.size)
        wrong.push(`${balances.length} players have balances, ${this.#net.size} played`);
    } finally {
      await sql.end();
    }
    return wrong;
  }

  async #answered(line: Line, path: string, body: object): Promise<WireAnswer> {
    const bytes = postRequest(`/api/play/blackjack${path}`, this.stage.key, JSON.stringify(body));
    for (;;) {
      const answer = await line.ask(bytes);
      if (answer !== undefined && answer.status < 300) return answer;
      const code = answer === undefined ? 'no answer' : String(JSON.parse(answer.text).errorCode);
      if (!OUTAGE.includes(code)) this.wrong.push(`no outage explains ${answer!.text}`);
      this.again++;
      await pause(ASK_AGAIN_MS);
    }
  }

  /** Plays one round and repeats some of its requests. */
  async #playRound(line: Line, n: number, random: Random): Promise<void> {
    const { tables, connections } = this.stage;
    const table = n % tables.length;
    const gameId = tables[table]!;
    const playerId = `player-${n % connections}-${Math.floor(n / connections) % 8}`;
    const order = { gameId, playerId, wagerUsd: WAGER_USD, requestId: `round-${n}` };
    const dealt = await this.#answered(line, '/deal', order);
    let round = JSON.parse(dealt.text) as RoundAnswer;
    const made: string[] = [];
    let last: { body: object; text: string } | undefined;
    while (round.status === 'OPEN') {
      const { action } = random.pick(round.legalActions);
      const body = { roundId: round.roundId, action, seq: round.lastActionSeq + 1 };
      const answer = await this.#answered(line, '/action', body);
      const next = JSON.parse(answer.text) as RoundAnswer;
      if (next.lastActionSeq !== body.seq)
        this.wrong.push(`${action} ${body.seq} was answered ${answer.text}`);
      round = next;
      made.push(action);
      last = { body, text: answer.text };
    }
    if (last !== undefined && n % 4 === 0) await this.#repeat(line, '/action', last.body, last.text);
    if (n % 8 === 0) await this.#repeat(line, '/deal', order, dealt.text);
    this.#settle(round, RULES[table]!, made);
  }

  async #repeat(line: Line, path: string, body: object, text: string): Promise<void> {
    const again = await this.#answered(line, path, body);
    if (again.text !== text) this.wrong.push(`${path} again is ${again.text}, it was ${text}`);
  }

  /** Checks that the round ended with the result that its shoe and its actions determine. */
  #settle(round: RoundAnswer, rules: Record<string, unknown>, made: string[]): void {
    const { gameId, playerId, shoe } = round;
    const name = `${gameId}/${shoe.index}`;
    if (this.#shoes.has(name)) this.wrong.push(`shoe ${name} was dealt twice`);
    this.#shoes.add(name);
    const all = { ...DEFAULT_RULES, ...rules };
    const cards = Array.from(shuffleShoe(all.decks, Buffer.from(shoe.seed!, 'hex')), cardText);
    const expected = reference(all, cards, made);
    // The reference model counts amounts in units of 1/20 of the wager.
    const unit = micros(WAGER_USD) / 20;
    const told = {
      dealer: round.dealer.cards,
      hands: round.hands.map((hand) => hand.cards),
      staked: micros(round.wageredUsd),
      returned: micros(round.payoutUsd!),
    };
    const should = expected?.over && {
      dealer: expected.dealer,
      hands: expected.hands.map((hand) => hand.cards),
      staked: expected.staked * unit,
      returned: expected.returned * unit,
    };
    if (!isDeepStrictEqual(told, should))
      this.wrong.push(
        `${made} of ${name} was settled ${JSON.stringify(told)}, not ${JSON.stringify(should)}`,
      );
    this.#net.set(playerId, (this.#net.get(playerId) ?? 0) + told.returned - told.staked);
    this.rounds++;
    this.actions += made.length;
  }
}
