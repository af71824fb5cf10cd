/**
 * `npm run test:alerts [-- --only fault,fault | --games 1000] [--rate 150] [--spins 40000]`
 *
 * Lets a real Prometheus with the project's configuration, rules and dashboards scrape a running service of
 * two front ends, two workers, a Redis and a Postgres. Under load every expression of every dashboard must
 * return data. Then faults are staged one after the other, and each alert must fire for its fault and clear
 * once it is mended.
 *
 * All durations of the rules (windows, `for`) are divided by FACTOR, and scrapes and checks happen every 0.6
 * s. Thresholds stay unchanged. With --games it instead measures the scrape of one process with that many
 * games. The exit status is 0 only if every check passed. Linux only.
 */

import { parseArgs } from 'node:util';
import { bodyOf } from '../../src/api/client/apiClients.js';
import { freePort } from '../../src/app/embedded/index.js';
import type { Cleanup } from '../support/cleanup.js';
import { runToEnd } from '../support/cleanup.js';
import { load, spinRequest } from '../support/load.js';
import { ROOT } from '../support/root.js';
import { constants } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { pause, until } from '../support/wait.js';
import { type Arena, openArena, openReceiver, paced } from './arena.js';
import { type Fault, faultsOf, newBonusGame } from './faults.js';
import { CASES, expressionsOf, RULES, readMonitoring } from './files.js';
import { prometheus as findPrograms, promtool } from './prometheus.js';
import { scrapeSize } from './scrapeSize.js';
import { Prometheus } from './server.js';

const FACTOR = 120;
const LOAD_CONNECTIONS = 32;
/** Time in ms within which every expression must return data before any fault. */
const HEALTHY_MS = 20_000;
const FIRES_WITHIN_MS = 120_000;
const CLEARS_WITHIN_MS = 300_000;
/**
 * Settings with an outbox that is full within half a minute, and with webhooks whose five attempts take two
 * seconds.
 */
const SETTINGS = {
  OUTBOX_MAX_ENTRIES: '8000',
  ...constants({ webhookRetryDelaysMs: [400], apiNoticeDays: 0 }),
};

const say = (line: string): void => console.log(line);
const seconds = (ms: number): string => (ms / 1000).toFixed(1);

async function main(cleanup: Cleanup): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      games: { type: 'string' },
      only: { type: 'string' },
      rate: { type: 'string', default: '150' },
      spins: { type: 'string', default: '40000' },
    },
  });
  if (values.games !== undefined) return scrapeSize(Number(values.games), cleanup, say);
  const programs = await findPrograms(ROOT, say);
  say(`Prometheus ${programs.version}`);
  await promtool(programs, ROOT, 'check', 'config', '--syntax-only', 'grafana/prometheus.yml');
  await promtool(programs, ROOT, 'check', 'rules', RULES);
  for (const file of CASES) await promtool(programs, ROOT, 'test', 'rules', file);
  say(`promtool: configuration and rules are right, ${readMonitoring(ROOT).cases.length} cases hold`);
  say(`Staged run: every duration of the rules is divided by ${FACTOR}; scraped and looked at each 0.6 s`);

  const arena = await openArena(cleanup, SETTINGS);
  const { api, folder, environment } = arena;
  const receiver = await openReceiver(cleanup);
  const partner = await api.newPartner('acme');
  await bodyOf(
    api.operator.PATCH('/partners/{id}', {
      params: { path: { id: partner.partnerId } },
      body: { largeWinThresholdUsd: 1 },
    }),
  );
  await bodyOf(
    api.partner(partner.key).POST('/webhooks', { body: { url: receiver.url, events: ['spin.large_win'] } }),
  );
  const gameId = await newBonusGame(api, partner.key);
  const raffleId = await api.newRaffle(partner.partnerId, 'raffle', {
    ticketPriceUsd: 1,
    poolSize: 100_000,
    prizes: [{ prizeName: 'Cup', prizeTier: 1, valueUsd: 5, count: 1000 }],
  });
  const late = await api.newPartner('late');
  const unsettled = {
    partnerId: late.partnerId,
    gameId: await api.newGame(late.key, 'late', parSheet('classic-3-reel')),
  };
  await bodyOf(
    api.operator.PATCH('/partners/{id}', {
      params: { path: { id: late.partnerId } },
      body: { fundingUsd: 0 },
    }),
  );
  const targets = [...arena.fronts, ...arena.workers].map(({ metricsPort }) => `127.0.0.1:${metricsPort}`);
  const server = await Prometheus.start(
    programs,
    { folder, port: await freePort(), targets, factor: FACTOR, environment },
    cleanup,
  );
  const monitoring = readMonitoring(ROOT);
  const panels = new Panels(
    server,
    monitoring.dashboards.flatMap((dashboard) =>
      expressionsOf(dashboard, { game: String(gameId), __rate_interval: '5s' }),
    ),
  );

  // These players play from now until the end of the test.
  const spin = (of: { key: string }, body: { gameId: number; wagerUsd: number }): Promise<unknown> =>
    api.partner(of.key).POST('/spin', { body: { playerId: `p${Math.floor(Math.random() * 500)}`, ...body } });
  const slot = { gameId, wagerUsd: 0.25 };
  for (const stop of [
    paced(Number(values.rate), () => spin(partner, slot)),
    paced(2, () => api.partner(partner.key).GET('/games')),
    // The service refuses the following requests: one because of the caller's mistake, the other because of a
    // limit that the operator set.
    paced(1, () => spin(partner, { ...slot, wagerUsd: 2 })),
    paced(1, () => spin(late, { gameId: unsettled.gameId, wagerUsd: 0.25 })),
  ]) {
    cleanup.add(stop);
  }
  // Tickets are answered only while a worker and Postgres run, so they are sold only until the first fault
  // stops these.
  const stopRaffle = paced(2, () => spin(partner, { gameId: raffleId, wagerUsd: 1 }));
  cleanup.add(stopRaffle);
  const today = new Date().toISOString().slice(0, 10);
  await until(
    () =>
      api.operator
        .POST('/partners/{id}/settlements/{date}', {
          params: { path: { id: partner.partnerId, date: today } },
        })
        .then(
          ({ response }) => response.ok,
          () => false,
        ),
    'a report of today can be made',
    10_000,
  );
  await arena.redis.config('SET', 'maxmemory', String(2 ** 31));
  let took: number | undefined;
  const loading = full(arena, partner.key, gameId, Number(values.spins)).then((rate) => {
    took = rate;
  });
  loading.catch(() => {});
  // The panels are checked during the load and for a short time after it.
  const healthyBy = performance.now() + HEALTHY_MS;
  while (took === undefined || (panels.withoutData.length > 0 && performance.now() < healthyBy)) {
    await Promise.race([loading, pause(400)]);
    await panels.look();
    if (took !== undefined) await pause(300);
  }
  const silent = panels.withoutData;
  say(
    `Under ${took} spins/s ${panels.count - silent.length} of ${panels.count} expressions of ${monitoring.dashboards.length} dashboards returned data without a fault; not:`,
  );
  for (const { where, expr } of silent) say(`  ${where}: ${expr}`);
  await sizes(server, arena, say);

  const faults = faultsOf({ arena, partner, gameId, receiver, unsettled });
  const staged: Staged[] = [];
  const watcher = setInterval(() => {
    server.look().then(
      () => noteCleared(server, staged),
      () => {},
    );
    panels.look().catch(() => {});
  }, 400);
  cleanup.add(() => clearInterval(watcher));
  const only = values.only?.split(',') ?? Object.keys(faults);
  const play = async (...names: (keyof typeof faults)[]): Promise<void> => {
    const wanted = names.filter((name) => only.includes(name));
    await Promise.all(wanted.map(async (name) => staged.push(await stage(server, faults[name]))));
  };
  // Faults that make spins fail or slow come first, because the long windows of their error budgets take
  // longest to clear.
  stopRaffle();
  await play('volatile');
  await play('redisEmptied');
  await play('slow');
  await play('eventLoop');
  await play('memory', 'webhooks', 'queue');
  await play('late', 'bonusBudget', 'versionEnding');
  await play('settlement');
  for (const name of ['postgresAway', 'positionFile', 'positionFileGone'] as const) await play(name);
  await play('workersAway');
  await play('books');
  if (staged.length !== only.length) throw new Error(`Of ${only} only ${staged.length} are faults`);
  const clearedBy = performance.now() + CLEARS_WITHIN_MS;
  while (server.firing.size > 0 && performance.now() < clearedBy) await pause(250);
  return report(
    staged,
    panels,
    monitoring.rules.flatMap(({ alert }) => (alert === undefined ? [] : [alert])),
    values.only === undefined,
  );
}

/**
 * Sends spins as fast as the service answers them.
 * @returns spins a second
 */
async function full(arena: Arena, key: string, gameId: number, spins: number): Promise<number> {
  let left = spins;
  const began = performance.now();
  await load({
    port: arena.port,
    connections: LOAD_CONNECTIONS,
    next: () =>
      left-- > 0
        ? spinRequest(
            key,
            `{"gameId":${gameId},"playerId":"p${left % 1000}","wagerUsd":0.25,"requestId":"r${left}"}`,
          )
        : undefined,
    onAnswer: ({ status }) => {
      if (status !== 200) throw new Error(`A spin under load was answered with ${status}`);
    },
  });
  return Math.round(spins / ((performance.now() - began) / 1000));
}

async function sizes(server: Prometheus, arena: Arena, say: (line: string) => void): Promise<void> {
  const targets = await server.targets();
  for (const [role, services] of Object.entries({ http: arena.fronts, worker: arena.workers })) {
    for (const service of services) {
      const text = await service.scrape();
      const target = targets.find(({ scrapeUrl }) => scrapeUrl.includes(`:${service.metricsPort}/`));
      const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
      say(
        `  scrape of ${role}: ${series} series, ${text.length} bytes, ${((target?.lastScrapeDuration ?? 0) * 1000).toFixed(1)} ms, ${target?.health}`,
      );
      if (target?.health !== 'up') throw new Error('A target is not up');
    }
  }
}

/** The expressions of the panels that have not returned data yet. */
class Panels {
  readonly count: number;
  withoutData: { where: string; expr: string }[];

  constructor(
    private readonly server: Prometheus,
    asked: { where: string; expr: string }[],
  ) {
    this.count = asked.length;
    this.withoutData = asked;
  }

  /**
   * Queries the expressions without data so far.
   * @returns how many expressions have returned data by now
   */
  async look(): Promise<number> {
    const looked = await Promise.all(
      this.withoutData.map(async (asked) => ({ asked, series: await this.server.series(asked.expr) })),
    );
    const found = new Set(looked.flatMap(({ asked, series }) => (series > 0 ? [asked] : [])));
    this.withoutData = this.withoutData.filter((asked) => !found.has(asked));
    return this.count - this.withoutData.length;
  }
}

interface Staged {
  readonly fault: Fault;
  readonly mendedMs: number;
  /**
   * Time in ms from the beginning of the fault until each alert fired, by alert. Undefined if the alert did
   * not fire.
   */
  readonly fired: ReadonlyMap<string, number | undefined>;
  /** Time in ms from the end of the fault until each alert stopped firing, by alert. */
  readonly cleared: Map<string, number>;
}

function noteCleared(server: Prometheus, staged: readonly Staged[]): void {
  for (const { fired, cleared, mendedMs } of staged) {
    for (const alert of fired.keys()) {
      if (!cleared.has(alert) && !server.firing.has(alert)) cleared.set(alert, performance.now() - mendedMs);
    }
  }
}

/** Begins a fault, waits until its alerts fire, and mends it. */
async function stage(server: Prometheus, fault: Fault): Promise<Staged> {
  const begunMs = performance.now();
  const fired = new Map<string, number | undefined>(fault.alerts.map((alert) => [alert, undefined]));
  const begin = fault.begin();
  let hasBegun = false;
  begin.then(
    () => {
      hasBegun = true;
    },
    () => {},
  );
  const isDone = (): boolean => {
    for (const [alert, after] of fired) {
      if (after === undefined && server.firing.has(alert)) fired.set(alert, performance.now() - begunMs);
    }
    return hasBegun && [...fired.values()].every((after) => after !== undefined);
  };
  await until(isDone, `${fault.alerts} fire`, FIRES_WITHIN_MS, 100).catch((error: Error) =>
    say(error.message),
  );
  await begin;
  const mending = fault.mend();
  await mending;
  const mendedMs = performance.now();
  say(
    `${fault.what}\n${[...fired].map(([alert, after]) => `  ${alert} ${after === undefined ? 'DID NOT FIRE' : `fired after ${seconds(after)} s`}`).join('\n')}`,
  );
  return { fault, mendedMs, fired, cleared: new Map() };
}

function report(
  staged: readonly Staged[],
  panels: Panels,
  alerts: readonly string[],
  isWhole: boolean,
): boolean {
  const rows: string[] = [];
  let isHeld = true;
  for (const { fired, cleared: all } of staged) {
    for (const [alert, after] of fired) {
      const cleared = all.get(alert);
      if (after === undefined || cleared === undefined) isHeld = false;
      rows.push(
        `| ${alert} | ${after === undefined ? 'not' : seconds(after)} | ${cleared === undefined ? 'not' : seconds(cleared)} |`,
      );
    }
  }
  say(`\n| Alert | fired after, s | cleared after it was mended, s |\n|---|---|---|\n${rows.join('\n')}`);
  const seen = new Set(staged.flatMap(({ fault }) => fault.alerts));
  for (const alert of alerts) {
    if (seen.has(alert)) continue;
    if (isWhole) isHeld = false;
    say(`${alert} IS NOT STAGED`);
  }
  for (const { where, expr } of panels.withoutData) say(`NO DATA, with no fault either: ${where}: ${expr}`);
  if (panels.withoutData.length > 0 && isWhole) isHeld = false;
  say(
    `${panels.count - panels.withoutData.length} of ${panels.count} expressions returned data; ${rows.length} alerts staged; ${isHeld ? 'all held' : 'NOT all held'}`,
  );
  return isHeld;
}

await runToEnd(main);
