/** What a body may cost the event loop, which all partners share. */
import { describe, expect, test } from 'vitest';
import { ApiError } from '../../src/domain/errors.js';
import type { Partner } from '../../src/domain/game.js';
import { bodyText, check, type JsonObject, parseObject } from '../../src/http/body.js';
import type { Caller } from '../../src/http/operatorAccess.js';
import { BODY_LIMIT, type Route } from '../../src/http/route.js';
import { allRoutes, type Services } from '../../src/http/routes.js';

/** The bound, and what JSON.parse took for 64 KB where it was set: a slower machine has more time. */
const COST_MS_MAX = 5;
const PARSE_MS = 0.6;
const RUNS = 15;
const FAULTS_MAX = 100;

/** A body of the route's limit, full of one thing. */
const filled = (limit: number, before: string, item: string, after: string): Buffer => {
  const times = Math.floor((limit - before.length - after.length + 1) / (item.length + 1));
  return Buffer.from(before + Array<string>(times).fill(item).join(',') + after);
};

function bodiesOf(route: Route): Buffer[] {
  const limit = route.bodyLimit ?? BODY_LIMIT;
  const members = Object.keys((route.body as { properties?: object } | undefined)?.properties ?? {});
  const items = ['1', '{}', '""', '[]', '{"a":1}', '1e999', 'null', '[{}]'];
  return [
    ...members.flatMap((name) => items.map((item) => filled(limit, `{"${name}":[`, item, ']}'))),
    ...members.flatMap((name) => items.map((item) => filled(limit, `{"${name}":{"a":[`, item, ']}}'))),
    Buffer.from(
      `{${members.map((name) => `"${name}":"${'€'.repeat(limit / 3 / (members.length + 1))}"`).join()}}`,
    ),
    Buffer.from(`{"a":${'['.repeat(limit / 2 - 10)}${']'.repeat(limit / 2 - 10)}}`),
    filled(limit, '{', '"a":1', '}'),
  ];
}

/** Reads a body as its route does. @returns the faults */
async function read(route: Route, body: Buffer): Promise<number> {
  try {
    const text = bodyText(body);
    const object = parseObject(text);
    if (route.ownCheck !== true) check(route.body!, object);
    else await judge(route, object, text);
    return 0;
  } catch (error) {
    if (error instanceof ApiError) return error.details?.length ?? 0;
    throw error;
  }
}

const PARTNER = { partnerId: 1, environment: 'sandbox' } as Partner;

/** Lets a route with checks of its own judge. There are no services: one that asks them has found the body right. */
async function judge(route: Route, body: JsonObject, text: string): Promise<void> {
  const params = { id: '1', playerId: 'alice' };
  const caller = { partner: PARTNER, actor: '', operator: {} as Caller, isSecure: false };
  const request = { apiVersion: 'v1', ...caller, params, query: {}, words: {}, body, text };
  try {
    await route.handle!(request);
  } catch (error) {
    if (error instanceof ApiError) throw error;
  }
}

const routes = allRoutes({} as Services, 'Spindle').filter(
  (route) => route.body !== undefined && !isSpin(route),
);

// It has a path of its own, with a limit of 4 KB.
function isSpin(route: Route): boolean {
  return route.handle === undefined;
}

/** Sheets that multiply what the rules look at: each of some members by each of others. */
const list = (times: number, item: object | number): unknown[] => Array<unknown>(times).fill(item);
const SHEETS = [
  { virtualStopsPerReel: list(2500, 1), combinations: list(1600, {}) },
  { virtualStopsPerReel: list(2500, 1), combinations: list(200, { reelSymbols: ['a'] }) },
  {
    tiers: list(160, { tierId: 1, probability: 1e-300 }),
    combinations: list(100, { comboProbability: 1e-300, tierId: 1 }),
  },
];

/** Milliseconds of the processor that one run takes: the least of some, since what others do on the machine is not its cost. */
async function leastCostMs(run: () => unknown, runs: number, enoughMs = 0): Promise<number> {
  let costMs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs && costMs > enoughMs; i++) {
    const start = process.cpuUsage();
    await run();
    const { user, system } = process.cpuUsage(start);
    costMs = Math.min(costMs, (user + system) / 1000);
  }
  return costMs;
}

describe('a body of any content, as long as its route takes', () => {
  test.each(routes.map((route) => [route.operationId, route] as const))(
    '%s: is judged within 5 ms, with 100 faults at the most',
    async (_name, route) => {
      const sheets = route.operationId === 'uploadParSheet' ? SHEETS : [];
      const bodies = [...bodiesOf(route), ...sheets.map((sheet) => Buffer.from(JSON.stringify(sheet)))];
      let slowest = { costMs: 0, start: '' };
      for (const body of bodies) {
        expect(await read(route, body)).toBeLessThanOrEqual(FAULTS_MAX);
        const costMs = await leastCostMs(() => read(route, body), RUNS, COST_MS_MAX / 2);
        if (costMs > slowest.costMs) slowest = { costMs, start: body.toString('utf8', 0, 40) };
      }
      const full = filled(BODY_LIMIT, '[', '1', ']').toString();
      const slowness = Math.max(1, (await leastCostMs(() => JSON.parse(full), RUNS)) / PARSE_MS);
      expect(slowest.costMs, slowest.start).toBeLessThan(COST_MS_MAX * slowness);
    },
  );
});
