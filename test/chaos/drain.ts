import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import postgres from 'postgres';
import { bodyOf } from '../../src/api/client/apiClients.js';
import { poolFaults, type RevealedPool } from '../../src/domain/games/rafflePool.js';
import type { Prize } from '../support/api.js';
import type { Cleanup } from '../support/cleanup.js';
import { runToEnd } from '../support/cleanup.js';
import { ConnectionEnded, spinRequest, Wire, type WireAnswer } from '../support/load.js';
import { Random } from '../support/random.js';
import { pause, until } from '../support/wait.js';
import { type Arena, openArena } from './arena.js';
import { type FaultName, faultKind } from './faults.js';
import { audit } from './round.js';

const PRICE_USD = 0.5;
const PLAYERS = 500;
const PATIENCE_MS = 5000;
const ASK_AGAIN_MS = 100;
const KILLS: readonly FaultName[] = ['kill-service', 'kill-worker', 'kill-redis', 'kill-postgres'];
const KILL_EVERY_MS = [1500, 6000] as const;
const READY_WITHIN_MS = 60_000;
/** Maximum number of sold tickets whose requestId is repeated after the raffle is closed. */
const REPLAYS = 500;

interface Options {
  readonly sizes: readonly number[];
  readonly kills: readonly number[];
  readonly wipes: readonly number[];
  readonly races: number;
  readonly connections: number;
  readonly seed: string;
  readonly keep: boolean;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      sizes: { type: 'string', default: '1,2,10,1000' },
      kills: { type: 'string', default: '' },
      wipes: { type: 'string', default: '' },
      races: { type: 'string', default: '0' },
      connections: { type: 'string', default: '64' },
      seed: { type: 'string', default: randomBytes(4).toString('hex') },
      keep: { type: 'boolean', default: false },
    },
  });
  const numbers = (text: string): number[] => text.split(',').filter(Boolean).map(Number);
  return {
    sizes: numbers(values.sizes),
    kills: numbers(values.kills),
    wipes: numbers(values.wipes),
    races: Number(values.races),
    connections: Number(values.connections),
    seed: values.seed,
    keep: values.keep,
  };
}

/** Returns prizes for a tenth of the tickets. The only ticket of a raffle of size one is a prize. */
function prizesOf(poolSize: number): Prize[] {
  const prize = (prizeName: string, prizeTier: number, valueUsd: number, count: number): Prize => ({
    prizeName,
    prizeTier,
    valueUsd,
    count,
  });
  const prizes = [prize('Car', 6, 5000, 1)];
  if (poolSize >= 10) prizes.push(prize('Mug', 1, 1.25, Math.floor(poolSize / 10) - 1 || 1));
  if (poolSize >= 1000) prizes.push(prize('Cap', 1, 0.005, 7));
  return prizes;
}

interface Stage extends Arena {
  readonly owner: { partnerId: number; key: string };
  readonly options: Options;
}

/** Responses that the buyers of a raffle received. */
interface Sale {
  /** Text of the response, by requestId. */
  readonly won: Map<string, string>;
  readonly byPrize: Map<string, number>;
  readonly wrong: string[];
  /**
   * Numbers of repeated requests without a known result, of answers that the raffle is closed, and of
   * requested tickets.
   */
  unknown: number;
  closed: number;
  attempts: number;
}

const spinBody = (gameId: number, attempt: number): string =>
  JSON.stringify({
    gameId,
    playerId: `player-${attempt % PLAYERS}`,
    wagerUsd: PRICE_USD,
    requestId: `${gameId}-${attempt}`,
  });

/** Buys tickets on one connection until the raffle is reported as closed. */
async function buy({ fleet, owner }: Stage, gameId: number, sale: Sale): Promise<void> {
  let wire: Wire | undefined;
  const ask = async (bytes: Buffer): Promise<WireAnswer | undefined> => {
    let timer: NodeJS.Timeout | undefined;
    try {
      if (wire === undefined || wire.hasEnded) wire = await Wire.open(fleet.port);
      timer = setTimeout(() => wire?.close(), PATIENCE_MS);
      return await wire.ask(bytes);
    } catch (error) {
      if (error instanceof ConnectionEnded || (error as NodeJS.ErrnoException).code !== undefined) {
        wire?.close();
        wire = undefined;
        return undefined;
      }
      throw error;
    } finally {
      clearTimeout(timer);
    }
  };
  for (;;) {
    const attempt = sale.attempts++;
    const bytes = spinRequest(owner.key, spinBody(gameId, attempt));
    for (;;) {
      const answer = await ask(bytes);
      const body = answer === undefined ? {} : (JSON.parse(answer.text) as Record<string, unknown>);
      if (answer?.status === 200) {
        const { prizeName } = body.presentation as { prizeName: string };
        sale.won.set(`${gameId}-${attempt}`, answer.text);
        sale.byPrize.set(prizeName, (sale.byPrize.get(prizeName) ?? 0) + 1);
        break;
      }
      if (answer?.status === 410) {
        if (body.errorCode !== 'KS-4218') sale.wrong.push(`410 with ${answer.text}`);
        sale.closed++;
        wire?.close();
        return;
      }
      const code = String(body.errorCode ?? 'no answer');
      const isKnown = ['no answer', 'KS-4110', 'KS-5002', 'KS-5012', 'KS-5004'].includes(code);
      if (!isKnown) sale.wrong.push(`no outage explains ${answer!.text}`);
      sale.unknown++;
      await pause(ASK_AGAIN_MS);
    }
  }
}

type Trouble = (stage: Stage, isSoldOut: () => boolean, sale: Sale) => Promise<string>;

/** Kills a process every few seconds until all tickets are sold. */
const killing =
  (poolSize: number): Trouble =>
  async (stage, isSoldOut) => {
    const random = new Random(stage.options.seed, 'kills', poolSize);
    const done: Record<string, number> = {};
    while (!isSoldOut()) {
      await pause(random.whole(...KILL_EVERY_MS));
      if (isSoldOut()) break;
      const name = random.pick(KILLS);
      await faultKind(name).run({ ...stage, targets: [] }, random);
      done[name] = (done[name] ?? 0) + 1;
    }
    return Object.entries(done)
      .map(([name, times]) => `${name} ${times}`)
      .join(', ');
  };

/** Destroys all data of Redis twice: once by FLUSHALL and once by deleting its files. */
const wiping =
  (poolSize: number): Trouble =>
  async (stage, isSoldOut, sale) => {
    const random = new Random(stage.options.seed, 'wipes', poolSize);
    for (const [name, share] of [
      ['flushall', 0.3],
      ['wipe-redis', 0.6],
    ] as const) {
      while (sale.won.size < poolSize * share && !isSoldOut()) await pause(20);
      await faultKind(name).run({ ...stage, targets: [] }, random);
    }
    return 'flushall 1, wipe-redis 1';
  };

/**
 * Sells all tickets of a raffle.
 * @returns whether the buyers won exactly the prizes of the raffle
 */
async function drain(stage: Stage, poolSize: number, what: string, trouble?: Trouble): Promise<boolean> {
  const { api, owner, options } = stage;
  const prizes = prizesOf(poolSize);
  const name = `${what.toUpperCase()}_${poolSize}_${randomBytes(3).toString('hex').toUpperCase()}`;
  const sealing = performance.now();
  const gameId = await api.newRaffle(owner.partnerId, name, { ticketPriceUsd: PRICE_USD, poolSize, prizes });
  const sealedMs = performance.now() - sealing;
  const sale: Sale = { won: new Map(), byPrize: new Map(), wrong: [], unknown: 0, closed: 0, attempts: 0 };
  const started = performance.now();
  let isSoldOut = false;
  const faults = trouble?.(stage, () => isSoldOut, sale);
  await Promise.all(Array.from({ length: options.connections }, () => buy(stage, gameId, sale)));
  isSoldOut = true;
  const seconds = (performance.now() - started) / 1000;
  const troubles = (await faults) ?? 'no trouble';
  await until(() => stage.fleet.isReady(), 'every process is ready', READY_WITHIN_MS);
  const wrong = [...sale.wrong, ...(await judge(stage, gameId, poolSize, prizes, sale)), ...stage.crashes];
  console.log(
    `${what} ${poolSize.toLocaleString('en')} tickets: ${wrong.length === 0 ? 'exact' : 'WRONG'}; playable after ` +
      `${sealedMs.toFixed(0)} ms; sold in ${seconds.toFixed(1)} s (${Math.round(poolSize / seconds)}/s); ${sale.won.size} sold, ` +
      `${sale.closed} told that it is closed, ${sale.unknown} asked again; ${troubles}`,
  );
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
  return wrong.length === 0;
}

async function judge(
  stage: Stage,
  gameId: number,
  poolSize: number,
  prizes: readonly Prize[],
  sale: Sale,
): Promise<string[]> {
  const { api, owner, stores, options } = stage;
  const wrong: string[] = [];
  const differ = (what: string, expected: unknown, found: unknown): void => {
    if (expected !== found) wrong.push(`${what}: expected ${expected}, found ${found}`);
  };
  differ('tickets sold', poolSize, sale.won.size);
  differ('connections told that it is closed', options.connections, sale.closed);
  const winning = prizes.reduce((sum, { count }) => sum + count, 0);
  for (const { prizeName, count } of [...prizes, { prizeName: 'No Win', count: poolSize - winning }]) {
    differ(prizeName, count, sale.byPrize.get(prizeName) ?? 0);
  }
  const sql = postgres(stores.postgres.url, { max: 1, onnotice: () => {} });
  try {
    const [row] = await sql<{ rows: string; indices: string; newest: string; requests: string }[]>`
      SELECT count(*) AS rows, count(DISTINCT outcome_index) AS indices, max(outcome_index) AS newest,
        count(DISTINCT request_id) AS requests FROM ledger WHERE game_id = ${gameId}`;
    differ('ledger rows', String(poolSize), row!.rows);
    differ('indices', String(poolSize), row!.indices);
    differ('newest index', String(poolSize - 1), row!.newest);
    differ('requestIds', String(poolSize), row!.requests);
    const codes = await sql<{ outcome_code: number; tickets: string }[]>`
      SELECT outcome_code, count(*) AS tickets FROM ledger WHERE game_id = ${gameId} GROUP BY 1`;
    for (const { outcome_code, tickets } of codes) {
      const count = outcome_code === 0 ? poolSize - winning : prizes[outcome_code - 1]?.count;
      differ(`ledger rows of code ${outcome_code}`, String(count), tickets);
    }
    const voids = await sql`SELECT 1 FROM voids WHERE game_id = ${gameId}`;
    differ('voids', 0, voids.length);
  } finally {
    await sql.end();
  }
  const pool = (await bodyOf(
    api.partner(owner.key).GET('/games/{id}/pool', { params: { path: { id: gameId } } }),
  )) as RevealedPool;
  wrong.push(...poolFaults(pool));
  const sold = [...sale.won];
  const step = Math.max(1, Math.floor(sold.length / REPLAYS));
  const wire = await Wire.open(stage.fleet.port);
  for (let i = 0; i < sold.length; i += step) {
    const [requestId, text] = sold[i]!;
    const answer = await wire.ask(spinRequest(owner.key, spinBody(gameId, Number(requestId.split('-')[1]))));
    if (answer.text !== text) wrong.push(`the replay of ${requestId} is ${answer.text}, it was ${text}`);
  }
  const late = await wire.ask(spinRequest(owner.key, spinBody(gameId, sale.attempts + 1)));
  differ('a later spin', 410, late.status);
  wire.close();
  return wrong;
}

/** Lets two spins race for the last ticket, repeatedly. */
async function race({ api, owner, fleet, options }: Stage): Promise<boolean> {
  const wires = await Promise.all([Wire.open(fleet.port), Wire.open(fleet.port)]);
  const results: Record<string, number> = {};
  for (let n = 1; n <= options.races; n++) {
    const gameId = await api.newRaffle(owner.partnerId, `RACE_${n}`, {
      ticketPriceUsd: PRICE_USD,
      poolSize: 1,
      prizes: prizesOf(1),
    });
    const answers = await Promise.all(
      wires.map((wire, i) => wire.ask(spinRequest(owner.key, spinBody(gameId, i)))),
    );
    const statuses = answers.map(({ status }) => status).sort();
    results[statuses.join(' and ')] = (results[statuses.join(' and ')] ?? 0) + 1;
  }
  for (const wire of wires) wire.close();
  console.log(`${options.races} races for the last ticket: ${JSON.stringify(results)}`);
  return results['200 and 410'] === options.races;
}

async function play(options: Options, cleanup: Cleanup): Promise<boolean> {
  const arena = await openArena(cleanup, { keep: options.keep, acknowledgement: 'redis' });
  const { api, fleet, crashes } = arena;
  const owner = await api.newPartner('drain');
  const stage: Stage = { ...arena, owner, options };
  let isExact = true;
  for (const size of options.sizes) isExact = (await drain(stage, size, 'plain')) && isExact;
  if (options.races > 0) isExact = (await race(stage)) && isExact;
  for (const size of options.kills) isExact = (await drain(stage, size, 'killed', killing(size))) && isExact;
  for (const size of options.wipes) isExact = (await drain(stage, size, 'wiped', wiping(size))) && isExact;
  const complaint = await audit(stage.stores, ['--redraw']);
  console.log(complaint ?? 'the audit is clean, every pool shuffled again');
  isExact = complaint === undefined && isExact;
  await fleet.stop();
  return isExact && crashes.length === 0;
}

const options = readOptions();
console.log(`seed ${options.seed}`);
await runToEnd((cleanup) => play(options, cleanup));
