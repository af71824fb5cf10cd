/**
 * Checks that dashboards and alert rules use metrics that a running service exposes, and that each alert has
 * a section in the runbook and test cases.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BOUNDED, problemsIn } from '../../src/app/metrics/gaugeProblems.js';
import { basicStrategyReturn } from '../../src/domain/games/basicStrategy.js';
import { DEFAULT_RULES, rulesHash } from '../../src/domain/games/blackjackRules.js';
import { outcomeStatistics } from '../../src/domain/presentation.js';
import { signerOf, vkeyOf } from '../../src/domain/publicLog/notes.js';
import { rtpSurprise } from '../../src/domain/rtp.js';
import { PROBLEM_NAMES, type ProblemName } from '../../src/engine/problems.js';
import { CASES, expressionsOf, RULES, readMonitoring } from '../monitoring/files.js';
import { findPrometheus, promtool } from '../monitoring/prometheus.js';
import { check, type Exposed, ExpressionError, readExposition } from '../monitoring/promql.js';
import { world } from '../setup/world.js';
import type { TestPartner } from '../support/client.js';
import { RULES as RULES_OF_BONUS, setUp as setUpBonus } from '../support/communal.js';
import { type Receiver, startReceiver } from '../support/receiver.js';
import { ROOT } from '../support/root.js';
import { newTable } from '../support/rounds.js';
import { constants, startService } from '../support/service.js';
import { fiveReelWild, parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;
const { dashboards, rules, cases, runbook } = readMonitoring(ROOT);
const alerts = rules.filter((rule) => rule.alert !== undefined);

const { stores } = world();
let folder: string | undefined;
let service: Service;
let receiver: Receiver;
let partner: TestPartner;
let gameId: number;
let raffleId: number;
let tableId: number;
let exposed: Exposed;

const scrape = async (of: Service): Promise<string> =>
  (await fetch(`http://127.0.0.1:${of.running.metricsPort}/metrics`)).text();
/** Returns the sum of all time series of a metric. */
const value = (text: string, name: string): number =>
  [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))].reduce(
    (sum, match) => sum + Number(match[1]),
    0,
  );

const SPINS = 40;
const WAGER = 0.25;

const BONUS = {
  ...RULES_OF_BONUS,
  tiers: RULES_OF_BONUS.tiers.map((tier, i) => (i === 0 ? { ...tier, triggerAtSpins: 20 } : tier)),
};

async function newGameWithBonus(): Promise<number> {
  const made = await service.newGame(partner.key, parSheet('classic-3-reel'));
  await setUpBonus(service, made, BONUS);
  return made;
}

/**
 * Settings without which some metrics are missing: a position file and an unreachable witness of the public
 * log.
 */
async function settings(): Promise<Record<string, string>> {
  folder = await mkdtemp(join(tmpdir(), 'spindle-monitoring-'));
  const LOG_POLICY = join(folder, 'policy.txt');
  const witness = vkeyOf(signerOf('witness.example/w1', 'witness', Buffer.alloc(32, 1)));
  await writeFile(LOG_POLICY, `witness w1 ${witness} http://127.0.0.1:9\nquorum none\n`);
  return { POSITION_FILE: join(folder, 'position.json'), LOG_POLICY };
}

beforeAll(async () => {
  service = await startService(stores, await settings());
  receiver = await startReceiver();
  partner = await service.newPartner({ largeWinThresholdUsd: 0.01 });
  const raffle = await service.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partner.partnerId}/raffles`,
    {
      displayName: 'Raffle',
      configName: 'RAFFLE',
      ticketPriceUsd: 1,
      poolSize: 10,
      prizes: [{ prizeName: 'Cup', prizeTier: 1, valueUsd: 5, count: 1 }],
    },
  );
  raffleId = raffle.body.gameConfigId;
  const webhook = await service.partner('POST', '/webhooks', partner.key, {
    url: receiver.url(),
    events: ['spin.large_win'],
  });
  expect(webhook.status).toBe(201);
  [gameId, tableId] = [await newGameWithBonus(), await newTable(service, partner.partnerId)];
  const spin = { gameId, playerId: 'p', wagerUsd: WAGER };
  const answers = await Promise.all(Array.from({ length: SPINS }, () => service.spin(partner.key, spin)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  await until(
    async () =>
      (await service.spin(partner.key, { gameId: raffleId, playerId: 'p', wagerUsd: 1 })).status === 200,
    'the raffle is open',
  );
  await until(() => receiver.received.length > 0, 'a large win is delivered');
  // Produces answers of every kind for which an expression of a dashboard or alert has a label.
  const poor = await service.newPartner({ fundingUsd: 0 });
  const unfunded = {
    gameId: await service.newGame(poor.key, parSheet('classic-3-reel')),
    playerId: 'p',
    wagerUsd: WAGER,
  };
  expect((await service.spin(poor.key, unfunded)).body.errorCode).toBe('KS-5011');
  expect((await service.spin(partner.key, { ...spin, wagerUsd: 1 })).status).toBe(400);
  const day = new Date().toISOString().slice(0, 10);
  const report = await service.operator('POST', `/partners/${partner.partnerId}/settlements/${day}`);
  expect(report.status).toBe(201);
  // Causes an internal error in a request, and a failure of a store in the background.
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  await sql`ALTER TABLE settlement_reports RENAME TO away`;
  expect((await service.partner('GET', '/settlements', partner.key)).status).toBe(500);
  await sql`ALTER TABLE away RENAME TO settlement_reports`;
  await sql`ALTER TABLE cells RENAME TO away`;
  await until(
    async () => (await scrape(service)).includes('spindle_store_errors_total{'),
    'a store has failed',
  );
  await sql`ALTER TABLE away RENAME TO cells`;
  await sql.end();
  await until(
    async () => value(await scrape(service), 'spindle_booked_spins_total') === SPINS + 1,
    'all is booked',
  );
  const metrics: Map<string, ReadonlyMap<string, ReadonlySet<string> | undefined>> = readExposition(
    await scrape(service),
  );
  // Prometheus itself adds these time series.
  const scraped = [
    ['job', new Set(['spindle'])],
    ['instance', undefined],
  ] as const;
  metrics.set('up', new Map(scraped));
  // With FRONT_ENDS above 1, each time series has the label `process`, and there are two more metrics.
  for (const labels of metrics.values()) (labels as Map<string, undefined>).set('process', undefined);
  for (const name of ['restarts', 'missed_scrapes'])
    metrics.set(`spindle_front_end_${name}_total`, new Map([...scraped, ['process', undefined]]));
  metrics.set(
    'ALERTS',
    new Map([
      ['alertname', new Set(alerts.map((rule) => rule.alert!))],
      ['alertstate', new Set(['pending', 'firing'])],
      ['severity', undefined],
    ]),
  );
  // Recording rules are read in order, because a rule may use earlier rules.
  for (const { record, expr, labels = {} } of rules) {
    if (record === undefined) continue;
    const names = [...(check(expr, metrics) ?? []), ...Object.keys(labels)];
    metrics.set(record, new Map(names.map((name) => [name, undefined])));
  }
  exposed = metrics;
});

afterAll(async () => {
  await service?.stop();
  await receiver?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

test('the health check names the installation, as that of the API does', async () => {
  const tag = async (base: string) => (await fetch(`${base}/healthz`)).headers.get('X-Installation');
  const found = await tag(`http://127.0.0.1:${service.running.metricsPort}`);
  expect(found).not.toBeNull();
  expect(found).toBe(await tag(service.base));
});

test('every dashboard panel uses only metrics and labels that exist', () => {
  const askedOf = (game: number) =>
    dashboards.flatMap((dashboard) =>
      expressionsOf(dashboard, { game: String(game), __rate_interval: '5m' }),
    );
  const ofTable = askedOf(tableId);
  const isOfTables = /spindle_game_basic_strategy_return/;
  const asked = askedOf(gameId).map((each, i) => (isOfTables.test(each.expr) ? ofTable[i]! : each));
  expect(asked.length).toBeGreaterThan(80);
  for (const { where, expr, legend } of asked) {
    const labels = check(expr, exposed);
    for (const [, label = ''] of legend.matchAll(/\{\{(\w+)\}\}/g)) {
      expect(labels?.has(label), `${where}: the legend has ${label}`).toBe(true);
    }
  }
});

test('every dashboard variable is filled from a label that exists', () => {
  const variables = dashboards.flatMap((dashboard) => dashboard.templating.list);
  expect(variables.map(({ name }) => name)).toEqual(['game']);
  for (const { definition } of variables) {
    const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(definition) ?? [];
    expect(exposed.get(metric)?.has(label), definition).toBe(true);
  }
});

test('every alert rule and its text use only metrics and labels that exist', () => {
  expect(alerts.length).toBeGreaterThan(15);
  for (const { alert, expr, annotations = {} } of rules) {
    const labels = check(expr, exposed);
    for (const [, label = ''] of (annotations.summary ?? '').matchAll(/\$labels\.(\w+)/g)) {
      expect(labels?.has(label), `${alert}: the summary has ${label}`).toBe(true);
    }
  }
});

test.each([
  ['a metric that is not there', 'sum(rate(spindle_spinz_total[5m]))', /no metric spindle_spinz_total/],
  ['a label in a matcher', 'spindle_errors_total{kode="KS-5002"}', /no label kode/],
  ['a value of a label', 'spindle_webhook_attempts_total{result="lost"}', /no result lost/],
  ['a pattern that no value has', 'spindle_errors_total{code=~"SK-.*"}', /no code like/],
  ['a label in a grouping', 'sum by (cells) (spindle_outbox_entries)', /groups by cells/],
  ['a label that an aggregation has dropped', 'sum by (code) (sum(spindle_errors_total))', /groups by code/],
  ['a bucket that is not there', 'spindle_http_request_seconds_bucket{le="0.3"}', /no le 0.3/],
  [
    'a quantile of no histogram',
    'histogram_quantile(0.9, sum(rate(spindle_flush_seconds_count[5m])))',
    /no label le/,
  ],
  ['series that never match', 'spindle_spins_total / sum(spindle_spins_total)', /no series has both/],
  ['what does not parse', 'sum(rate(spindle_spins_total[5m])', /does not parse/],
])('the expression check finds %s', (_what, expression, message) => {
  expect(() => check(expression, exposed)).toThrow(ExpressionError);
  expect(() => check(expression, exposed)).toThrow(message);
});

test('every dashboard panel has a description, a unit and a source, and no panels overlap', () => {
  expect(new Set(dashboards.map(({ uid }) => uid)).size).toBe(dashboards.length);
  for (const { title, panels } of dashboards) {
    const taken = new Set<string>();
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    for (const panel of panels) {
      const { x, y, w, h } = panel.gridPos;
      expect(x + w, panel.title).toBeLessThanOrEqual(24);
      for (let i = 0; i < w * h; i++) {
        const place = `${x + (i % w)}:${y + Math.floor(i / w)}`;
        expect(taken.has(place), `${title}: «${panel.title}» overlaps`).toBe(false);
        taken.add(place);
      }
      if (panel.type === 'row') continue;
      expect(panel.description, panel.title).toMatch(/\.$/);
      expect(panel.fieldConfig?.defaults.unit, panel.title).toBeDefined();
      expect(panel.datasource?.uid).toBe('prometheus');
      expect(panel.targets?.length, panel.title).toBeGreaterThan(0);
    }
  }
});

test('every alert has a severity, a summary and a runbook section, and the runbook has no other sections', () => {
  const names = alerts.map((rule) => rule.alert!);
  expect([...runbook].sort()).toEqual([...names].sort());
  for (const { alert = '', labels, annotations } of alerts) {
    expect(['page', 'ticket'], alert).toContain(labels?.severity);
    expect(annotations?.summary, alert).toBeTruthy();
    const base = '{{ or $externalLabels.runbook "docs/runbook.md" }}';
    expect(annotations?.runbook_url).toBe(`${base}#${alert.toLowerCase()}`);
  }
});

/** Alerts whose problem has another name than the alert. */
const OTHER_NAMES: Record<string, ProblemName> = { SpindleRecoveryTakesLong: 'cell-rebuilding' };
/** Alerts that only Prometheus can know, because they compare counters over time or miss a whole process. */
const OF_HISTORY = [
  'SpindleErrorBudgetBurnsFast',
  'SpindleErrorBudgetBurnsSlowly',
  'SpindleLatencyBudgetBurnsFast',
  'SpindleLatencyBudgetBurnsSlowly',
  'SpindleTargetDown',
  'SpindleEventLoopSaturated',
  'SpindleRedisLostData',
  'SpindleSpinsLost',
  'SpindleDiskFull',
  'SpindleOutsideCopyVanished',
  'SpindleCommunalEventsSkipped',
  'SpindleApiVersionStillUsed',
  'SpindleWebhooksFailing',
  'SpindleWebhooksGivenUp',
];
const problemOf = (alert: string): string =>
  OTHER_NAMES[alert] ??
  alert
    .slice('Spindle'.length)
    .replace(/(?!^)[A-Z]/g, (letter) => `-${letter}`)
    .toLowerCase();

test('/statusz knows a problem for every alert that does not need history', () => {
  for (const { alert = '', expr } of alerts) {
    if (OF_HISTORY.includes(alert)) {
      expect(PROBLEM_NAMES, alert).not.toContain(problemOf(alert));
      expect(expr, alert).toMatch(/rate|increase|predict_linear|absent/);
    } else expect(PROBLEM_NAMES, alert).toContain(problemOf(alert));
  }
});

test('/statusz compares each gauge with the bound of its alert', () => {
  for (const { name, metric, per, above, below } of BOUNDED) {
    const { expr } = alerts.find(({ alert = '' }) => problemOf(alert) === name)!;
    // Recorded ratios stand for the gauges that they divide.
    const recorded = rules.filter(({ record }) => record !== undefined && expr.includes(record));
    const text = [expr, ...recorded.map((rule) => rule.expr)].join(' ');
    for (const each of [metric, per]) expect(text, name).toContain(each ?? '');
    const bound = Math.abs(above ?? below!);
    // A ratio below 1 is written as a comparison of both gauges.
    if (per === undefined || bound !== 1) expect(expr, name).toMatch(new RegExp(`\\b${bound}\\b`));
  }
});

test.each(BOUNDED)('$name is a problem beyond its bound, and none at it', (bounded) => {
  const { name, metric, per, above, below, by = 'of' } = bounded;
  const found = (value: number): string[] => {
    const samples = [
      { name: metric, values: [{ labels: { [by]: '7' }, value: 10 * value }] },
      { name: per ?? 'other', values: [{ labels: { [by]: '7' }, value: 10 }] },
    ].map((each) => ({ ...each, help: '', type: 'gauge' as const, aggregator: 'sum' as const }));
    if (per === undefined) samples[0]!.values[0]!.value = value;
    return problemsIn(samples).map((each) => each.name);
  };
  const bound = above ?? below!;
  expect(found(bound)).not.toContain(name);
  expect(found(bound + (above === undefined ? -0.25 : 0.25))).toContain(name);
});

test('/statusz of the worker names an alert that fires, and stays 200 if spins are not affected', async () => {
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  await sql`
    INSERT INTO rtp_reviews (game_id, span, opened_at, opened_day)
    VALUES (${gameId}, 'LIFETIME', now() - interval '8 days', current_date - 8)`;
  await sql.end();
  await until(
    async () => value(await scrape(service), 'spindle_rtp_review_oldest_seconds') > 604_800,
    'it fires',
  );
  await until(
    async () => (await service.request('GET', '/statusz')).text.includes('rtp-review-overdue'),
    'it is named',
  );
  const { status, body } = await service.request<{ problems: object[] }>('GET', '/statusz');
  expect(status).toBe(200);
  expect(body.problems).toContainEqual(
    expect.objectContaining({ name: 'rtp-review-overdue', effect: 'ATTENTION' }),
  );
  expect(await scrape(service)).toContain('spindle_problem{problem="rtp-review-overdue"} 1\n');
});

test('every alert has a test case in which it fires and then clears', () => {
  for (const { alert } of alerts) {
    const turns = cases.some(({ alert_rule_test = [] }) => {
      const looks = alert_rule_test
        .filter(({ alertname }) => alertname === alert)
        .map(({ exp_alerts }) => exp_alerts.length);
      return looks.includes(0, looks.findIndex((count) => count > 0) + 1) && looks.some((count) => count > 0);
    });
    expect(turns, alert).toBe(true);
  }
});

test('metrics report committed totals exactly, and the same after a restart and by another worker', async () => {
  const NAMES = [
    'spindle_booked_spins_total',
    'spindle_booked_wagered_usd_total',
    'spindle_booked_paid_usd_total',
  ];
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const [books] = await sql<{ spins: number; wagered: number; paid: number }[]>`
    SELECT count(*)::int AS spins, sum(wager_micros)::float8 / 1e6 AS wagered, sum(credit_micros)::float8 / 1e6 AS paid
    FROM ledger WHERE kind = 1`;
  await sql.end();
  const told = async (of: Service): Promise<number[]> => {
    const text = await scrape(of);
    return NAMES.map((name) => Math.round(value(text, name) * 1e6) / 1e6);
  };
  // If the machine paused, the lease of a cell may have expired. The worker then acquires it again and reads
  // the totals again.
  await until(async () => (await told(service))[0] === books!.spins, 'the totals are told');
  expect(await told(service)).toEqual([books!.spins, books!.wagered, books!.paid]);
  expect(books).toMatchObject({ spins: SPINS + 1, wagered: SPINS * WAGER + 1 });
  const before = await scrape(service);
  expect(before).toContain(`spindle_communal_progress_spins{game="${gameId}"} ${SPINS}\n`);
  expect(before).toContain(`spindle_communal_paid_usd_total{game="${gameId}"} 10\n`);
  expect(before).toContain(`spindle_communal_budget_usd{game="${gameId}"} 99990\n`);
  expect(before).toContain(`spindle_communal_smallest_tier_usd{game="${gameId}"} 5\n`);
  expect(before).toContain(`spindle_communal_largest_tier_usd{game="${gameId}"} 100\n`);
  expect(before).toContain('spindle_communal_events_total{tier="1",status="PAID"} 2\n');
  expect(before).toContain(`spindle_game_spins_total{game="${gameId}"} ${SPINS}\n`);
  expect(value(before, 'spindle_partner_requests_total')).toBeGreaterThan(SPINS);
  expect(value(before, 'spindle_partner_errors_total')).toBeGreaterThan(1);
  expect(before).toContain(`spindle_raffle_tickets_remaining{game="${raffleId}"} 9\n`);
  const { rtp, variancePerSpin } = outcomeStatistics(parSheet('classic-3-reel') as never);
  expect(before).toContain(`spindle_game_certified_rtp{game="${gameId}"} ${rtp}\n`);
  expect(before).toContain(`spindle_game_variance_per_spin{game="${gameId}"} ${variancePerSpin}\n`);
  const expected = basicStrategyReturn(rulesHash(DEFAULT_RULES));
  expect(before).toContain(`spindle_game_basic_strategy_return{game="${tableId}"} ${expected}\n`);

  // The second worker takes over after the first worker has ended, or is given cells before that. It reports
  // nothing about cells that it does not own.
  const other = await startService(stores, {
    POSITION_FILE: join(folder!, 'position.json'),
    ...constants({ metricsGamesMax: 1 }),
  });
  const early = await scrape(other);
  if (value(early, 'spindle_cells_owned') === 0)
    expect(NAMES.map((name) => value(early, name))).toEqual([0, 0, 0]);
  await service.stop();
  service = other;
  await until(
    async () => value(await scrape(other), 'spindle_cells_owned') === 4,
    'the other has taken over',
  );
  await until(async () => (await told(other))[0] === books!.spins, 'the other has read the totals');
  expect(await told(other)).toEqual([books!.spins, books!.wagered, books!.paid]);
  const spun = await other.spin<{ outcome: { payoutUsd: number } }>(partner.key, {
    gameId,
    playerId: 'p',
    wagerUsd: WAGER,
  });
  await until(async () => (await told(other))[0] === books!.spins + 1, 'one more is booked');
  expect((await told(other))[2]).toBeCloseTo(books!.paid + spun.body.outcome.payoutUsd, 9);
  // Only one of the four games has its own time series: the game with the most spins.
  const after = await scrape(other);
  expect(after).toMatch(/^spindle_games 4$/m);
  expect(
    [...after.matchAll(/^spindle_queue_blocks\{game="(\d+)"\}/gm)].map((match) => Number(match[1])),
  ).toEqual([gameId]);
});

test('metrics contain the tiers of a communal progressive only while it is enabled, so that no alert fires for a disabled one', async () => {
  const tierSeries = async () => [
    ...(await scrape(service)).matchAll(/^spindle_communal_\w+_tier_usd\{.*$/gm),
  ];
  const set = async (enabled: boolean) => {
    const answer = await service.operator('PUT', `/games/${gameId}/communal`, { ...BONUS, enabled });
    expect(answer.status, answer.text).toBe(200);
  };
  await until(async () => (await tierSeries()).length === 2, 'an enabled bonus has tiers');
  await set(false);
  await until(async () => (await tierSeries()).length === 0, 'one that is not has none');
  await until(
    async () => (await scrape(service)).includes(`spindle_communal_budget_usd{game="${gameId}"} 99990\n`),
    'its budget is there still',
  );
  await set(true);
  await until(async () => (await tierSeries()).length === 2, 'it has tiers again');
});

test('a plausible return has a low surprise value, and a wrong return a higher one with every spin', () => {
  const sheet = fiveReelWild() as never;
  const statistics = outcomeStatistics(sheet);
  const { combinations } = sheet as { combinations: { payMultiplier: number; comboProbability: number }[] };
  const maxMultiplier = Math.max(...combinations.map(({ payMultiplier }) => payMultiplier));
  const surprise = (spins: number, rtp: number): number =>
    rtpSurprise({ spins, rtp }, statistics, maxMultiplier);
  expect(surprise(0, Number.NaN)).toBe(0);
  expect(surprise(1000, statistics.rtp)).toBe(0);
  // A jackpot in the first spin must not be considered as surprising as its probability suggests.
  const rarest = Math.min(
    ...combinations
      .filter(({ payMultiplier }) => payMultiplier === maxMultiplier)
      .map(({ comboProbability }) => comboProbability),
  );
  expect(2 * Math.exp(-surprise(1, maxMultiplier))).toBeGreaterThan(rarest);
  // For many spins the surprise value is half the square of the deviation in standard deviations.
  const spins = 1e9;
  const sigma = Math.sqrt(statistics.variancePerSpin / spins);
  for (const sigmas of [-8, -3, 3, 8]) {
    expect(surprise(spins, statistics.rtp + sigmas * sigma)).toBeCloseTo(sigmas ** 2 / 2, 0);
  }
  expect(surprise(2e6, statistics.rtp + 0.1)).toBeGreaterThan(surprise(1e6, statistics.rtp + 0.1));
});

// This test must be last, because it takes so long that the partners of the service become idle, and the
// metrics have no time series for an idle partner.
const programs = await findPrometheus(ROOT);
test.skipIf(programs === undefined)(
  `promtool accepts the alert rules, and their test cases pass${programs === undefined ? ' (skipped: no promtool here; npm run test:alerts fetches one)' : ''}`,
  async () => {
    expect(await promtool(programs!, ROOT, 'check', 'rules', RULES)).toContain('SUCCESS');
    for (const file of CASES)
      expect(await promtool(programs!, ROOT, 'test', 'rules', file)).toContain('SUCCESS');
  },
);
