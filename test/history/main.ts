/**
 * `npm run demo:history -- [--data .demo-history] [--days 14] [--seed demo] [--share 1]`
 *
 * Creates an installation with several days of history, to view the console and to take its pictures: slots,
 * raffles, blackjack, a communal progressive, large wins, failing webhooks, a blocked player, a suspended
 * game, and settlement reports.
 *
 * The service itself produces all of it on its own stores, under a clock that is set back and advances in
 * steps of hours until it is correct. At the end the books are audited. The seed decides what is played and
 * done, but outcomes are drawn as always. `--share` scales the usual number of plays. Needs Linux and a C
 * compiler (`cc`).
 */
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { findRedisProgram } from '../../src/app/embedded/redisServer.js';
import { type Cleanup, runToEnd } from '../support/cleanup.js';
import { clockEnvironment, compileClock, setClock } from '../support/movedClock.js';
import { Random } from '../support/random.js';
import { cliOf, ROOT } from '../support/root.js';
import { constants, spawnService } from '../support/service.js';
import { pause, until } from '../support/wait.js';
import { type Happening, happeningsOf } from './happenings.js';
import { makePortfolio, type Portfolio, setUsualLimits } from './portfolio.js';
import { Traffic } from './traffic.js';

const { values } = parseArgs({
  options: {
    data: { type: 'string', default: '.demo-history' },
    days: { type: 'string', default: '14' },
    seed: { type: 'string', default: 'demo' },
    share: { type: 'string', default: '1' },
  },
});
const DATA_DIR = resolve(ROOT, values.data);
const DAYS = Number(values.days);
const SHARE = Number(values.share);
const HOUR_MS = 3_600_000;
const STEP_HOURS = 1;
/** The hour of a day from which on the reports of the previous day exist. */
const REPORTS_HOUR = 3;
/** Time in ms after which every program sees a changed clock. A program sees it within 10 ms. */
const CLOCK_SEEN_MS = 50;

const run = promisify(execFile);

/** The clock of the service and its stores. */
class Clock {
  constructor(private readonly offsetFile: string) {}

  async moveTo(ms: number): Promise<void> {
    setClock(this.offsetFile, (Math.min(ms, Date.now()) - Date.now()) / 1000);
    await pause(CLOCK_SEEN_MS);
  }
}

async function history(
  portfolio: Portfolio,
  clock: Clock,
  cleanup: Cleanup,
  firstDay: number,
): Promise<Traffic> {
  const happenings = await happeningsOf(portfolio, DAYS, cleanup);
  const random = new Random(values.seed);
  const traffic = new Traffic(portfolio.client, random);
  const { acme, northwind, lucky } = portfolio;
  const isDue = (day: number, hour: number) => (each: Happening) =>
    each.day === day && each.hour >= hour && each.hour < hour + STEP_HOURS;
  for (let day = 0; day <= DAYS; day++) {
    // Weekends have more plays, and the traffic of each partner grows.
    const weekday = new Date(firstDay + day * 24 * HOUR_MS).getUTCDay();
    const weight = SHARE * (weekday === 0 || weekday === 6 ? 1.5 : 1) * (0.8 + (0.4 * day) / DAYS);
    for (let hour = 0; hour < 24; hour += STEP_HOURS) {
      const now = firstDay + (day * 24 + hour) * HOUR_MS + random.whole(1, 50) * 60_000;
      if (now > Date.now()) return traffic;
      await clock.moveTo(now);
      if (hour === REPORTS_HOUR && day > 0) await settled(portfolio, now);
      for (const { run: happens } of happenings.filter(isDue(day, hour))) await happens(now);
      await Promise.all(
        [acme, northwind, lucky].map((each) => traffic.play(each, hour, hour + STEP_HOURS, weight)),
      );
    }
    console.log(
      `${new Date(firstDay + day * 24 * HOUR_MS).toISOString().slice(0, 10)}: ${traffic.plays} plays so far`,
    );
  }
  return traffic;
}

/** Waits until the reports of the previous day exist. The service makes them at 02:00. */
async function settled({ client, acme, northwind, lucky }: Portfolio, now: number): Promise<void> {
  const date = new Date(now - 24 * HOUR_MS).toISOString().slice(0, 10);
  for (const { key } of [acme, northwind, lucky])
    await until(
      async () => (await client.partner('GET', `/settlements/${date}`, key)).status === 200,
      `the report of ${date}`,
    );
}

async function main(cleanup: Cleanup): Promise<boolean> {
  if (existsSync(DATA_DIR))
    throw new Error(`${DATA_DIR} is there: remove it, or name another folder with --data`);
  const folder = mkdtempSync(join(tmpdir(), 'spindle-history-'));
  cleanup.add(() => rmSync(folder, { recursive: true, force: true }));
  // The stores may run as another user, who must be able to enter the folder.
  chmodSync(folder, 0o755);
  const library = join(folder, 'clock.so');
  if (!compileClock(library)) throw new Error('A past clock needs Linux and a C compiler (cc)');
  const offsetFile = join(folder, 'offset');
  const clock = new Clock(offsetFile);
  const startedMs = Date.now();
  const firstDay = Math.floor(startedMs / (24 * HOUR_MS)) * 24 * HOUR_MS - DAYS * 24 * HOUR_MS;
  await clock.moveTo(firstDay);
  // Redis is installed first, because the package lists would not be valid yet under the moved clock.
  await findRedisProgram(join(ROOT, '.cache'), () => {});
  const service = await spawnService({
    ...clockEnvironment(library, offsetFile),
    DATA_DIR,
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'error',
    ...constants({ flushIntervalMs: 20, settlementTurnMs: 500, trafficTurnMs: 250 }),
  });
  cleanup.add(() => service.stop());
  const ownerKey = (await readFile(join(DATA_DIR, 'operator-api-key'), 'utf8')).trim();
  const portfolio = await makePortfolio(service.base!, ownerKey);
  const { acme, northwind, lucky, keys } = portfolio;
  const kept = {
    operators: Object.fromEntries(keys),
    partners: Object.fromEntries([acme, northwind, lucky].map(({ slug, key }) => [slug, key])),
  };
  writeFileSync(join(DATA_DIR, 'demo-keys.json'), `${JSON.stringify(kept, null, 1)}\n`, { mode: 0o600 });
  const { plays, refusals } = await history(portfolio, clock, cleanup, firstDay);
  await setUsualLimits(portfolio);
  await clock.moveTo(Date.now());
  const { stdout } = await run(process.execPath, [cliOf(ROOT), 'audit'], {
    env: { ...process.env, DATA_DIR },
  });
  console.log(stdout.trim().split('\n').at(-1));
  console.log(
    `${plays} plays in ${DAYS} days and today, ${Math.round((Date.now() - startedMs) / 1000)} s; refused: ${JSON.stringify(Object.fromEntries(refusals))}`,
  );
  console.log(
    `Serve it with: DATA_DIR=${values.data} npm start\nKeys are in ${join(values.data, 'demo-keys.json')}`,
  );
  return true;
}

await runToEnd(main);
