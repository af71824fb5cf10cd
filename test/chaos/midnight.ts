/**
 * `npm run chaos -- midnight [--skew=-8] [--seed S] [--keep]`
 *
 * Crosses a midnight while the clock of Redis differs from those of Postgres and of the service by nearly the
 * allowed skew. Partners are created and adjusted all the time, some of them play, and workers are killed. A
 * day later every entry must be in a settlement report of its day, every adjustment must be in exactly one
 * report, and the audit must be clean. Needs Linux and a C compiler.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import postgres from 'postgres';
import { OPERATOR_BASE } from '../../src/api/contract/apis.js';
import { findRedisProgram } from '../../src/app/embedded/redisServer.js';
import { OPERATOR_KEY } from '../support/api.js';
import { type Cleanup, runToEnd } from '../support/cleanup.js';
import { askOnce, postRequest, spinRequest } from '../support/load.js';
import { clockEnvironment, compileClock, setClock } from '../support/movedClock.js';
import { Random } from '../support/random.js';
import { cliOf, ROOT } from '../support/root.js';
import { constants } from '../support/service.js';
import { DAY_MS, microsOf } from '../support/settlement.js';
import { until } from '../support/wait.js';
import { type Arena, openArena } from './arena.js';
import { atRest } from './atRest.js';
import { faultKind } from './faults.js';
import { audit } from './round.js';
import { startShifted } from './wrongClock.js';

const { values } = parseArgs({
  options: {
    skew: { type: 'string' },
    seed: { type: 'string', default: randomBytes(4).toString('hex') },
    keep: { type: 'boolean', default: false },
  },
});

/** Seconds before midnight at which the stores start. It is longer than the start of all processes takes. */
const LEAD_S = 60;
/** The crossing begins and ends this many seconds before and after midnight by either clock. */
const MARGIN_S = 4;
/** Largest difference of the clocks in seconds, a little below CLOCK_SKEW_MAX_S. */
const SKEW_MAX_S = 9;
const ANSWER_WITHIN_MS = 4000;
const DONE_WITHIN_MS = 60_000;
const ADJUSTED_USD = 1.25;
/** Each of so many new partners gets a game and plays it. */
const PLAYS_EVERY = 5;
/** A worker is killed after each of so many new partners. */
const KILL_EVERY = 12;

const sheet = JSON.parse(readFileSync(join(ROOT, 'test', 'par-sheets', 'classic-3-reel.json'), 'utf8')) as {
  denominationUsd: number;
};

/** Sends a request until it is answered with 200. The caller's requests are safe to repeat. */
async function done(port: number, bytes: Buffer, what: string): Promise<void> {
  await until(
    async () => (await askOnce(port, bytes, ANSWER_WITHIN_MS))?.status === 200,
    what,
    DONE_WITHIN_MS,
  );
}

/**
 * Creates a partner and adjusts one of its players. Some partners play, too.
 * @returns the partner's id. Undefined if a killed process leaves the creation in doubt
 */
async function newcomer({ api, fleet }: Arena, number: number): Promise<number | undefined> {
  const partner = await api.newPartner(`midnight-${number}`).catch(() => undefined);
  if (partner === undefined) return undefined;
  const { partnerId, key } = partner;
  const path = `${OPERATOR_BASE}/partners/${partnerId}/players/p/adjustments`;
  const body = { amountUsd: ADJUSTED_USD, reason: 'chaos', requestId: 'a' };
  await done(fleet.port, postRequest(path, OPERATOR_KEY, JSON.stringify(body)), 'the adjustment');
  if (number % PLAYS_EVERY === 0) {
    const gameId = await api.newGame(key, 'classic-3-reel', sheet).catch(() => undefined);
    const spin = { gameId, playerId: 'p', wagerUsd: sheet.denominationUsd, requestId: 's' };
    if (gameId !== undefined) await done(fleet.port, spinRequest(key, JSON.stringify(spin)), 'the spin');
  }
  return partnerId;
}

interface Clocks {
  /** Moves all clocks forward by a time in ms. */
  advance(ms: number): void;
}

async function run(cleanup: Cleanup): Promise<boolean> {
  const random = new Random(values.seed, 'midnight');
  const skew = values.skew === undefined ? random.pick([-8, 8]) : Number(values.skew);
  if (!(Math.abs(skew) <= SKEW_MAX_S)) throw new Error(`--skew must be from -${SKEW_MAX_S} to ${SKEW_MAX_S}`);
  const folder = mkdtempSync(join(tmpdir(), 'spindle-midnight-'));
  cleanup.add(() => rmSync(folder, { recursive: true, force: true }));
  // The stores may run as another user, who must be able to read the clock.
  chmodSync(folder, 0o755);
  const library = join(folder, 'clock.so');
  if (!compileClock(library)) throw new Error('A moved clock needs Linux and a C compiler (cc)');
  const own = join(folder, 'offset');
  const ofRedis = join(folder, 'offset-redis');
  const midnight = (Math.floor(Date.now() / DAY_MS) + 1) * DAY_MS;
  const toLead = (midnight - Date.now()) / 1000 - LEAD_S;
  const setClocks = (seconds: number): void => {
    setClock(own, seconds);
    setClock(ofRedis, seconds + skew);
  };
  const clocks: Clocks = { advance: (ms) => setClocks(toLead + ms / 1000) };
  setClocks(toLead);
  // Redis is installed first, because package lists are not valid under a moved clock.
  await findRedisProgram(join(ROOT, '.cache'), () => {});
  const environment = clockEnvironment(library, own);
  Object.assign(process.env, environment);
  const arena = await openArena(
    cleanup,
    { keep: values.keep, acknowledgement: 'redis' },
    { ...environment, ...constants({ settlementTurnMs: 500 }) },
  );
  await arena.stores.redis.stop();
  const shifted = await startShifted(arena, ofRedis);
  cleanup.add(() => shifted.end());
  await until(() => arena.fleet.isReady(), 'every process is ready', DONE_WITHIN_MS);
  return await crossed(arena, { clocks, midnight, skew, random, now: () => Date.now() + toLead * 1000 });
}

interface Crossing {
  readonly clocks: Clocks;
  readonly midnight: number;
  readonly skew: number;
  readonly random: Random;
  /** Time by the clock of Postgres and of the service, in ms. */
  now(): number;
}

async function crossed(arena: Arena, { clocks, midnight, skew, random, now }: Crossing): Promise<boolean> {
  const edge = (MARGIN_S + Math.abs(skew)) * 1000;
  if (now() > midnight - edge) throw new Error(`The start took longer than ${LEAD_S} s`);
  await until(() => Promise.resolve(now() > midnight - edge), 'midnight is near', LEAD_S * 1000);
  const partners: number[] = [];
  const lost: number[] = [];
  for (let number = 1; now() < midnight + edge; number++) {
    const partnerId = await newcomer(arena, number);
    if (partnerId === undefined) lost.push(number);
    else partners.push(partnerId);
    if (number % KILL_EVERY === 0) await faultKind('kill-worker').run({ ...arena, targets: [] }, random);
  }
  await until(() => arena.fleet.isReady(), 'every process is ready', DONE_WITHIN_MS);
  await atRest(arena.stores);
  // Two hours into the day after the next, the reports of both days are due.
  clocks.advance(DAY_MS + 3 * 3_600_000);
  const sql = postgres(arena.stores.postgres.url, { max: 1, onnotice: () => {} });
  try {
    const day = new Date(midnight).toISOString().slice(0, 10);
    await until(
      async () => {
        const [row] = await sql<{ made: number }[]>`
          SELECT count(DISTINCT partner_id)::int AS made FROM settlement_reports WHERE report_date = ${day}`;
        return row!.made >= partners.length;
      },
      `the reports of ${day}`,
      DONE_WITHIN_MS,
    );
    return await judged(arena, sql, { partners, lost, day, skew });
  } finally {
    await sql.end();
  }
}

async function judged(
  { stores, crashes, fleet }: Arena,
  sql: postgres.Sql,
  { partners, lost, day, skew }: { partners: number[]; lost: number[]; day: string; skew: number },
): Promise<boolean> {
  const wrong: string[] = [...crashes];
  const reports = await sql<{ partnerId: number; date: string; report: Record<string, unknown> }[]>`
    SELECT partner_id AS "partnerId", report_date::text AS date, report FROM settlement_reports r
    WHERE revision = (SELECT max(revision) FROM settlement_reports o
      WHERE o.partner_id = r.partner_id AND o.report_date = r.report_date)`;
  let before = 0;
  for (const partnerId of partners) {
    const own = reports.filter((each) => each.partnerId === partnerId);
    const sum = own.reduce((total, { report }) => total + microsOf(report.adjustmentsUsd), 0n);
    if (sum !== microsOf(ADJUSTED_USD))
      wrong.push(`the reports of partner ${partnerId} have adjustments of ${sum} micro-USD`);
    if (own.some(({ date, report }) => date < day && microsOf(report.adjustmentsUsd) > 0n)) before++;
  }
  const [row] = await sql<{ count: number }[]>`
    SELECT count(*)::int FROM partners WHERE created_at >= ${day}::date AND partner_id IN
      (SELECT partner_id FROM settlement_reports WHERE report_date < ${day})`;
  if (skew < 0 && row!.count === 0)
    wrong.push('no partner was adjusted on the day before its creation, so the run proves nothing');
  const verified = await promisify(execFile)(process.execPath, [cliOf(ROOT), 'settlement', 'verify'], {
    env: { ...process.env, REDIS_URL: stores.redis.url, DATABASE_URL: stores.postgres.url },
  }).catch((error: Error & { stdout?: string }) => ({ stdout: `${error.message} ${error.stdout}` }));
  if (!verified.stdout.includes('CLEAN')) wrong.push(`settlement verify: ${verified.stdout}`);
  const complaint = await audit(stores);
  if (complaint !== undefined) wrong.push(complaint);
  console.log(
    `${partners.length} partners across midnight, Redis ${skew} s from Postgres: ${before} adjusted on the day before, ` +
      `${row!.count} of them created after it; ${lost.length} creations in doubt; ${wrong.length === 0 ? 'held' : 'WRONG'}`,
  );
  for (const line of wrong.slice(0, 20)) console.log(`  ${line}`);
  await fleet.stop();
  return wrong.length === 0;
}

console.log(`seed ${values.seed}`);
await runToEnd(run);
