/** Plays rounds at a blackjack table of the running service and compares the responses with the model. */
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import postgres from 'postgres';
import { until } from '../support/wait.js';
import { Violation } from './changing.js';
import { amount, at, numbersAsText, usd } from './decimal.js';
import { type Answer, isReplayed, outcomeOf, parsed } from './exchange.js';
import { Front } from './front.js';
import { PLAYERS, type TableOperation, type TableScenario, tableScenarios } from './tableChoices.js';
import { type Expected, shoeCards, type TableRound, TableRounds, WAGER } from './tableRounds.js';

interface World {
  readonly fronts: readonly Front[];
  readonly operatorKey: string;
  readonly sql: postgres.Sql<{ bigint: bigint }>;
  readonly seen: Map<string, number>;
}

/** Results that leave the effect of a request open or ask for a retry. The request is retried. */
const AGAIN = ['409 KS-4110', '503 KS-5002', '500 KS-5004', '503 KS-5012', '503 KS-4203'];
const OPERATIONS_MAX = 60;
const PLAY = '/api/play/blackjack';
const NO_ROUND = '0123456789abcdef0123456789abcdef';

/**
 * Plays random scenarios, each with a new partner and table. fast-check shrinks the first scenario that
 * fails.
 * @returns the number of occurrences of each response
 */
export async function runTables(options: {
  readonly bases: readonly string[];
  readonly operatorKey: string;
  readonly databaseUrl: string;
  readonly runs: number;
  readonly seed: number;
  /** Time in ms after which no further scenario starts. */
  readonly forMs: number;
}): Promise<ReadonlyMap<string, number>> {
  const { bases, operatorKey, databaseUrl, runs, seed, forMs } = options;
  const sql = postgres(databaseUrl, { max: 2, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  const fronts = bases.map((base) => new Front(base));
  const world: World = { fronts, operatorKey, sql, seen: new Map() };
  try {
    const beginUntil = performance.now() + forMs;
    // This test limits the time itself and plays at least one scenario to its end. The time limit of
    // fast-check would interrupt a scenario and report a failure.
    const property = fc.asyncProperty(tableScenarios(OPERATIONS_MAX), async (scenario) => {
      if (performance.now() < beginUntil || world.seen.size === 0) await new TablePlay(world, scenario).run();
    });
    await fc.assert(property, { seed, numRuns: runs, unbiased: true });
    return world.seen;
  } finally {
    await sql.end();
  }
}

class TablePlay {
  readonly #rounds: TableRounds;
  #partnerId = 0;
  #key = '';
  #gameId = 0;

  constructor(
    private readonly world: World,
    private readonly scenario: TableScenario,
  ) {
    this.#rounds = new TableRounds(scenario);
  }

  /** @throws Violation if the service does what the model does not allow */
  async run(): Promise<void> {
    await this.#open();
    for (const operation of this.scenario.operations) await this.#perform(operation);
    await this.#judgeBooks();
    this.#count('scenario');
  }

  async #open(): Promise<void> {
    const { isEnforced, opening, funding, rules } = this.scenario;
    const partner = await this.#operator('POST', '/partners', {
      slug: `t-${randomBytes(8).toString('hex')}`,
      name: 'Model',
      environment: 'sandbox',
      spinRateLimit: 1_000_000,
      apiRateLimit: 1_000_000,
      openingBalanceUsd: Number(opening),
      balanceMode: isEnforced ? 'enforce' : 'track',
      fundingUsd: funding === null ? null : Number(funding),
    });
    this.#partnerId = Number(at(partner, 'partnerId'));
    const path = `/partners/${this.#partnerId}`;
    this.#key = at(await this.#operator('POST', `${path}/keys`, {}), 'apiKey') as string;
    const body = { displayName: 'A table', configName: 'T', wagerUsd: Number(usd(WAGER)), rules };
    this.#gameId = Number(at(await this.#operator('POST', `${path}/blackjack-games`, body), 'gameConfigId'));
    await until(async () => {
      const game = await this.#operator('GET', `/games/${this.#gameId}`);
      return Number(at(game, 'queue', 'outcomesReady')) > 0;
    }, 'the table has shoes');
  }

  async #perform(operation: TableOperation): Promise<void> {
    const playerId = PLAYERS[operation.player]!;
    if (operation.op === 'deal') return this.#deal(operation, playerId);
    const round = this.#rounds.newestOf(playerId);
    if (operation.op === 'act') return this.#act(operation, round);
    if (round === undefined) return;
    if (operation.op === 'end') return this.#end(operation, round);
    if (round.newest === undefined) return;
    const again = { action: round.newest.action, seq: round.actions };
    await this.#ask('action', { roundId: round.roundId, ...again }, operation.front, 1, round.newest);
  }

  async #deal(operation: TableOperation & { op: 'deal' }, playerId: string): Promise<void> {
    const { isWagerRight, front, copies } = operation;
    const requestId = `r-${operation.requestId}`;
    const wagerUsd = Number(usd(isWagerRight ? WAGER : 2n * WAGER));
    const body = { gameId: this.#gameId, playerId, wagerUsd, requestId };
    const expected = this.#rounds.expectDeal(operation, playerId, requestId);
    const text = await this.#ask('deal', body, front, copies, expected);
    if (text === undefined) return;
    const json = parsed(text);
    // The service must deal shoes in their order and leave none out.
    const index = this.#rounds.all.length;
    if (at(json, 'shoe', 'index') !== String(index)) throw new Violation(`Shoe ${index} was next: ${text}`);
    const [block] = await this.world.sql<{ seed: Buffer }[]>`
      SELECT substring(seed FROM (${index} - from_index)::int * 32 + 1 FOR 32) AS seed FROM blocks
      WHERE game_id = ${this.#gameId} AND from_index <= ${index} AND to_index > ${index}`;
    const round: TableRound = {
      roundId: at(json, 'roundId') as string,
      playerId,
      requestId,
      text,
      shoe: shoeCards(this.scenario.rules.decks, block!.seed),
      moves: [],
      actions: 0,
      newest: undefined,
      ended: undefined,
    };
    this.#rounds.all.push(round);
    await this.#judge(round, text, front);
  }

  async #act(operation: TableOperation & { op: 'act' }, round: TableRound | undefined): Promise<void> {
    const { front, copies } = operation;
    if (round === undefined) {
      const body = { roundId: NO_ROUND, action: 'stand', seq: 1 };
      await this.#ask('action', body, front, copies, '404 KS-4221');
      return;
    }
    const chosen = this.#rounds.chosen(round, operation);
    const expected = this.#rounds.expectAction(round, chosen);
    const body = { roundId: round.roundId, ...chosen };
    const text = await this.#ask('action', body, front, copies, expected);
    if (text === undefined) return;
    this.#rounds.act(round, chosen.action, text);
    await this.#judge(round, text, front);
  }

  async #end({ how, front }: TableOperation & { op: 'end' }, round: TableRound): Promise<void> {
    const isOpen = this.#rounds.isOpen(round);
    if (how === 'timeout') {
      if (!isOpen) return;
      await this.world.sql`
        UPDATE rounds SET expires_at = now()
        WHERE game_id = ${this.#gameId} AND shoe_index = ${this.#rounds.all.indexOf(round)}`;
      await until(
        async () => at(parsed((await this.#read(round, front)).text), 'status') === 'SETTLED',
        'the worker plays the round out',
      );
      this.#count('timeout');
    } else {
      const body = how === 'void' ? { reason: 'model' } : undefined;
      const path = `/api/operator/v1/rounds/${round.roundId}/${how}`;
      const answer = await this.#send(front, path, this.world.operatorKey, body);
      this.#count(`${how} ${outcomeOf(answer)}`);
      const expected = isOpen ? '200' : '409 KS-4223';
      if (outcomeOf(answer) !== expected) throw new Violation(`${how}: expected ${expected}: ${answer.text}`);
      if (!isOpen) return;
    }
    this.#rounds.end(round, how);
    await this.#judge(round, undefined, front);
  }

  /** Checks the round in the response and the same round on another front end. */
  async #judge(round: TableRound, text: string | undefined, front: number): Promise<void> {
    const texts = text === undefined ? [] : [text];
    for (const each of [...texts, (await this.#read(round, front + 1)).text]) {
      const fault = this.#rounds.faultOf(round, parsed(each));
      if (fault !== undefined) throw new Violation(`After ${round.moves.join()}: ${fault}`);
    }
  }

  #read({ roundId }: TableRound, front: number): Promise<Answer> {
    const path = `${PLAY}/rounds/${roundId}`;
    return this.#front(front).ask({ method: 'GET', path, key: this.#key });
  }

  /**
   * Sends equal requests concurrently.
   * @returns the response that all of them got, if the request had a new effect
   */
  async #ask(
    what: 'deal' | 'action',
    body: object,
    front: number,
    copies: number,
    expected: Expected,
  ): Promise<string | undefined> {
    const path = `${PLAY}/${what}`;
    const answers = await Promise.all(
      Array.from({ length: copies }, async (_, i) => {
        let answer: Answer | undefined;
        await until(async () => {
          answer = await this.#send(front + i, path, this.#key, body);
          return !AGAIN.includes(outcomeOf(answer));
        }, `${what} is answered`);
        return answer!;
      }),
    );
    const [first] = answers as [Answer];
    const complain = (wanted: string): never => {
      const found = answers.map((each) => `${each.status} ${each.text}`).join('\n  ');
      throw new Violation(`${what} ${JSON.stringify(body)}: expected ${wanted}, not\n  ${found}`);
    };
    for (const answer of answers)
      this.#count(`${what} ${outcomeOf(answer)}${isReplayed(answer) ? ' replayed' : ''}`);
    if (expected !== 'effect' && typeof expected === 'string') {
      if (answers.some((answer) => outcomeOf(answer) !== expected)) complain(expected);
      return undefined;
    }
    const status = what === 'deal' ? '201' : '200';
    const text = expected === 'effect' ? first.text : expected.text;
    if (answers.some((answer) => outcomeOf(answer) !== status || answer.text !== text))
      complain(`${status} with the same bytes ${text}`);
    const fresh = answers.filter((answer) => !isReplayed(answer)).length;
    if (fresh > (expected === 'effect' ? 1 : 0)) complain('no second effect');
    return expected === 'effect' ? text : undefined;
  }

  /** Checks that balances, entries and totals match the rounds. */
  async #judgeBooks(): Promise<void> {
    const { all } = this.#rounds;
    const rows = await this.world.sql<{ player_id: string; kind: number; balance_micros: bigint }[]>`
      SELECT player_id, kind, balance_micros FROM ledger WHERE partner_id = ${this.#partnerId} ORDER BY entry_id`;
    const balances = new Map(rows.map((row) => [row.player_id, row.balance_micros]));
    const players = new Set(all.map((round) => round.playerId));
    const count = (kind: number): number => rows.filter((row) => row.kind === kind).length;
    const kept = all.filter((round) => round.ended !== 'void');
    const ended = all.filter((round) => round.ended !== undefined && round.ended !== 'void');
    const actions = all.reduce((sum, round) => sum + round.actions, ended.length);
    const game = await this.#operator('GET', `/games/${this.#gameId}`);
    const total = (name: string): bigint => amount(at(game, 'totals', name)) ?? -1n;
    const found = [
      ...[...balances].map(([playerId, balance]) => `${playerId} ${usd(balance)}`).sort(),
      `${count(2)} opened, ${count(6)} dealt, ${count(7)} acted, ${count(8)} voided`,
      `${at(game, 'totals', 'spins')} rounds, net ${usd(total('paidOutUsd') - total('wageredUsd'))}`,
    ];
    const wanted = [
      ...[...players].map((playerId) => `${playerId} ${usd(this.#rounds.balanceOf(playerId))}`).sort(),
      `${players.size} opened, ${all.length} dealt, ${actions} acted, ${all.length - kept.length} voided`,
      `${kept.length} rounds, net ${usd(this.#rounds.netOf(kept))}`,
    ];
    if (found.join() !== wanted.join())
      throw new Violation(`The books have ${found.join('; ')}, and should have ${wanted.join('; ')}`);
  }

  #front(number: number): Front {
    const { fronts } = this.world;
    return fronts[number % fronts.length]!;
  }

  #send(front: number, path: string, key: string, body: object | undefined): Promise<Answer> {
    const request = { method: 'POST', path, key };
    return this.#front(front).ask(body === undefined ? request : { ...request, body: JSON.stringify(body) });
  }

  async #operator(method: string, path: string, body?: object) {
    const request = { method, path: `/api/operator/v1${path}`, key: this.world.operatorKey };
    const answer = await this.#front(0).ask(
      body === undefined ? request : { ...request, body: JSON.stringify(body) },
    );
    if (answer.status >= 300) throw new Violation(`${method} ${path}: ${answer.text}`);
    return numbersAsText(answer.text);
  }

  #count(name: string): void {
    this.world.seen.set(name, (this.world.seen.get(name) ?? 0) + 1);
  }
}
