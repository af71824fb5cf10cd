/**
 * Rounds of blackjack on many connections while the service, Redis and Postgres are killed: every round is settled by its shoe and
 * its actions, every answer is had again byte by byte, the money is exact, the audit is clean.
 */
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { bodyOf } from '../../src/client/client.js';
import type { Cleanup } from '../support/cleanup.js';
import { runToEnd } from '../support/cleanup.js';
import { ConnectionEnded, postRequest, Wire, type WireAnswer } from '../support/load.js';
import { pause, until } from '../support/wait.js';
import { type Arena, openArena } from './arena.js';
import { type FaultName, faultKind } from './faults.js';
import { Random } from './random.js';
import { audit } from './round.js';

const WAGER_USD = 0.5;
const OPENING_USD = 1000;
const PATIENCE_MS = 5000;
const ASK_AGAIN_MS = 100;
const KILLS: readonly FaultName[] = ['kill-service', 'kill-worker', 'kill-redis', 'kill-postgres'];
const READY_WITHIN_MS = 60_000;
/** What an outage explains; the request is sent again. */
const OUTAGE = ['no answer', 'KS-4110', 'KS-4203', 'KS-5002', 'KS-5012', 'KS-5004'];
const RULES = [{}, { decks: 1, blackjackPays: '6:5', maxHands: 4, lateSurrender: true, peek: false }];

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20000' },
    connections: { type: 'string', default: '64' },
    seed: { type: 'string', default: randomBytes(4).toString('hex') },
    'kill-every': { type: 'string', default: '1500,6000' },
    calm: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});

interface Round {
  readonly roundId: string;
  readonly status: string;
  readonly phase: string;
  readonly lastActionSeq: number;
  readonly wageredUsd: number;
  readonly payoutUsd: number | null;
  readonly legalActions: readonly { readonly action: string }[];
  readonly shoe: { readonly index: number };
}

interface Stage extends Arena {
  readonly key: string;
  readonly tables: readonly number[];
}

interface Tally {
  rounds: number;
  actions: number;
  again: number;
  readonly wrong: string[];
  /** playerId → what it must have, micro-USD above its opening. */
  readonly net: Map<string, number>;
  readonly shoes: Set<string>;
}

const micros = (usd: number): number => Math.round(usd * 1e6);

/** One connection, opened again where it ends. */
class Line {
  #wire: Wire | undefined;

  constructor(readonly fleet: Stage['fleet']) {}

  async ask(bytes: Buffer): Promise<WireAnswer | undefined> {
    let timer: NodeJS.Timeout | undefined;
    try {
      if (this.#wire === undefined || this.#wire.hasEnded) this.#wire = await Wire.open(this.fleet.port);
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

/** Sends a request until it is answered. */
async function answered(
  line: Line,
  { key }: Stage,
  path: string,
  body: object,
  tally: Tally,
): Promise<WireAnswer> {
  const bytes = postRequest(`/api/play/blackjack${path}`, key, JSON.stringify(body));
  for (;;) {
    const answer = await line.ask(bytes);
    if (answer !== undefined && answer.status < 300) return answer;
    const code = answer === undefined ? 'no answer' : String(JSON.parse(answer.text).errorCode);
    if (!OUTAGE.includes(code)) tally.wrong.push(`no outage explains ${answer!.text}`);
    tally.again++;
    await pause(ASK_AGAIN_MS);
  }
}

/** Plays one round, asking for some answers twice. */
async function playRound(line: Line, stage: Stage, n: number, random: Random, tally: Tally): Promise<void> {
  const gameId = stage.tables[n % stage.tables.length]!;
  const connections = Number(values.connections);
  const playerId = `player-${n % connections}-${Math.floor(n / connections) % 8}`;
  const order = { gameId, playerId, wagerUsd: WAGER_USD, requestId: `round-${n}` };
  const dealt = await answered(line, stage, '/deal', order, tally);
  let round = JSON.parse(dealt.text) as Round;
  let last: { body: object; text: string } | undefined;
  while (round.status === 'OPEN') {
    const { action } = random.pick(round.legalActions);
    const body = { roundId: round.roundId, action, seq: round.lastActionSeq + 1 };
    const answer = await answered(line, stage, '/action', body, tally);
    const next = JSON.parse(answer.text) as Round;
    if (next.lastActionSeq !== body.seq)
      tally.wrong.push(`${action} ${body.seq} was answered ${answer.text}`);
    round = next;
    last = { body, text: answer.text };
    tally.actions++;
  }
  if (last !== undefined && n % 4 === 0) {
    const again = await answered(line, stage, '/action', last.body, tally);
    if (again.text !== last.text) tally.wrong.push(`the replay is ${again.text}, it was ${last.text}`);
  }
  if (n % 8 === 0) {
    const again = await answered(line, stage, '/deal', order, tally);
    if (again.text !== dealt.text) tally.wrong.push(`the deal again is ${again.text}, it was ${dealt.text}`);
  }
  const shoe = `${gameId}/${round.shoe.index}`;
  if (tally.shoes.has(shoe)) tally.wrong.push(`shoe ${shoe} was dealt twice`);
  tally.shoes.add(shoe);
  const net = micros(round.payoutUsd!) - micros(round.wageredUsd);
  tally.net.set(playerId, (tally.net.get(playerId) ?? 0) + net);
  tally.rounds++;
}

async function trouble(stage: Stage, seed: string, isOver: () => boolean): Promise<string> {
  const random = new Random(seed, 'kills');
  const done: Record<string, number> = {};
  const [least, most] = values['kill-every'].split(',').map(Number) as [number, number];
  while (!values.calm && !isOver()) {
    await pause(random.whole(least, most));
    if (isOver()) break;
    const name = random.pick(KILLS);
    await faultKind(name).run(stage, random);
    done[name] = (done[name] ?? 0) + 1;
  }
  return Object.entries(done)
    .map(([name, times]) => `${name} ${times}`)
    .join(', ');
}

/** The books against what the players were told. */
async function judge({ stores }: Stage, tally: Tally): Promise<string[]> {
  const wrong: string[] = [];
  const sql = postgres(stores.postgres.url, { max: 1, onnotice: () => {} });
  try {
    const [row] = await sql<{ rounds: string; settled: string; actions: string }[]>`
      SELECT count(*) AS rounds, count(*) FILTER (WHERE status = 'SETTLED') AS settled,
        coalesce(sum(cardinality(moves)), 0) AS actions FROM rounds`;
    const is = `${row!.rounds} rounds, ${row!.settled} settled, ${row!.actions} actions`;
    const should = `${tally.rounds} rounds, ${tally.rounds} settled, ${tally.actions} actions`;
    if (is !== should) wrong.push(`Postgres has ${is}; players were told ${should}`);
    const balances = await sql<{ player_id: string; balance: string }[]>`
      SELECT DISTINCT ON (player_id) player_id, balance_micros AS balance FROM ledger ORDER BY player_id, entry_id DESC`;
    for (const { player_id, balance } of balances) {
      const expected = micros(OPENING_USD) + (tally.net.get(player_id) ?? 0);
      if (Number(balance) !== expected) wrong.push(`${player_id} has ${balance}, not ${expected}`);
    }
  } finally {
    await sql.end();
  }
  return wrong;
}

async function newTable({ api }: Arena, id: number, rules: object, name: string): Promise<number> {
  const body = { displayName: name, configName: name, wagerUsd: WAGER_USD, rules };
  const made = await bodyOf(
    api.operator.POST('/partners/{id}/blackjack-games', { params: { path: { id } }, body }),
  );
  const path = { id: made.gameConfigId };
  await until(async () => {
    const { queue } = await bodyOf(api.operator.GET('/games/{id}', { params: { path } }));
    return queue.outcomesReady > 0;
  }, 'the table has shoes');
  return made.gameConfigId;
}

async function run(cleanup: Cleanup): Promise<boolean> {
  const { seed } = values;
  const arena = await openArena(cleanup, { keep: values.keep, acknowledgement: 'redis' });
  const owner = await arena.api.newPartner('rounds', { openingBalanceUsd: OPENING_USD });
  const tables: number[] = [];
  for (const [i, rules] of RULES.entries())
    tables.push(await newTable(arena, owner.partnerId, rules, `T_${i}`));
  const stage: Stage = { ...arena, key: owner.key, tables };
  const tally: Tally = { rounds: 0, actions: 0, again: 0, wrong: [], net: new Map(), shoes: new Set() };
  const total = Number(values.rounds);
  const connections = Number(values.connections);
  const started = performance.now();
  let isOver = false;
  const faults = trouble(stage, seed, () => isOver);
  await Promise.all(
    Array.from({ length: connections }, async (_, i) => {
      const line = new Line(stage.fleet);
      const random = new Random(seed, 'plays', i);
      // A connection's players are its own: each has one open round at a table.
      for (let n = i; n < total; n += connections) await playRound(line, stage, n, random, tally);
      line.close();
    }),
  );
  isOver = true;
  const seconds = (performance.now() - started) / 1000;
  const troubles = await faults;
  await until(() => stage.fleet.isReady(), 'every process is ready', READY_WITHIN_MS);
  const wrong = [...tally.wrong, ...(await judge(stage, tally)), ...stage.crashes];
  const complaint = await audit(stage.stores, []);
  if (complaint !== undefined) wrong.push(complaint);
  console.log(
    `${tally.rounds} rounds with ${tally.actions} actions on ${connections} connections in ${seconds.toFixed(1)} s: ` +
      `${wrong.length === 0 ? 'exact, the audit is clean' : 'WRONG'}; ${tally.again} requests sent again; ${troubles || 'no trouble'}`,
  );
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
  await stage.fleet.stop();
  return wrong.length === 0;
}

console.log(`seed ${values.seed}`);
await runToEnd(run);
