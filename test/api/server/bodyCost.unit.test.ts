/** What a body may cost the event loop, which all partners share. */
import { describe, expect, test } from 'vitest';
import { BODY_LIMIT } from '../../../src/api/contract/apis.js';
import { allRoutes } from '../../../src/api/routes.js';
import { bodyText, check, type JsonObject, parseObject } from '../../../src/api/server/body.js';
import type { Caller } from '../../../src/api/server/operatorAccess.js';
import type { Route } from '../../../src/api/server/route.js';
import type { Services } from '../../../src/api/server/services.js';
import { ApiError } from '../../../src/domain/errors.js';
import type { Partner } from '../../../src/domain/game.js';
import { expectRatioBelow, expectWithin, leastCostMs } from '../../support/expectWithin.js';

/** What a body may cost on the machines that `npm run test:time` runs on. */
const COST_MS_MAX = 5;
const FAULTS_MAX = 100;
/**
 * A body of an eighth of the size costs an eighth, or less where it is so small that no garbage is collected while it is read: a
 * deep nest then costs a seventeenth. A square would be 64 times as much.
 */
const SMALLER = 8;
const GROWTH_MAX = 4 * SMALLER;
/** Bodies of a route that are looked at closely: those that cost most. */
const CLOSELY = 3;

/** A body of the route's limit, full of one thing. */
const filled = (limit: number, before: string, item: string, after: string): Buffer => {
  const times = Math.floor((limit - before.length - after.length + 1) / (item.length + 1));
  return Buffer.from(before + Array<string>(times).fill(item).join(',') + after);
};

function bodiesOf(route: Route, smaller = 1): Buffer[] {
  const limit = Math.floor((route.bodyLimit ?? BODY_LIMIT) / smaller);
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
    ...(route.operationId === 'uploadParSheet' ? sheets(smaller) : []),
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
  const request = { apiVersion: 'v1', ...caller, params, query: {}, body, text };
  try {
    await route.handle(request);
  } catch (error) {
    if (error instanceof ApiError) throw error;
  }
}

const routes = allRoutes({} as Services, 'Spindle').filter((route) => route.body !== undefined);

const list = (times: number, item: object | number | string): unknown[] =>
  Array<unknown>(Math.floor(times)).fill(item);

/** Sheets that multiply what the rules look at: each of some members by each of others. */
const sheets = (smaller: number): Buffer[] =>
  [
    { virtualStopsPerReel: list(2500 / smaller, 1), combinations: list(1600 / smaller, {}) },
    {
      virtualStopsPerReel: list(2500 / smaller, 1),
      combinations: list(200 / smaller, { reelSymbols: ['a'] }),
    },
    { combinations: list(150 / smaller, { reelSymbols: list(14, 'a') }) },
    {
      tiers: list(160 / smaller, { tierId: 1, probability: 1e-300 }),
      combinations: list(100 / smaller, { comboProbability: 1e-300, tierId: 1 }),
    },
  ].map((sheet) => Buffer.from(JSON.stringify(sheet)));

describe('a body of any content, as long as its route takes', () => {
  test.each(routes.map((route) => [route.operationId, route] as const))(
    '%s: is judged at a cost that grows no faster than the body, with 100 faults at the most',
    async (_name, route) => {
      const small = bodiesOf(route, SMALLER);
      const costs: { body: Buffer; place: number; costMs: number }[] = [];
      for (const [place, body] of bodiesOf(route).entries()) {
        let faults = 0;
        const costMs = await leastCostMs(async () => {
          faults = await read(route, body);
        }, 1);
        expect(faults).toBeLessThanOrEqual(FAULTS_MAX);
        costs.push({ body, place, costMs });
      }
      for (const { body, place } of costs.sort((a, b) => b.costMs - a.costMs).slice(0, CLOSELY)) {
        const start = body.toString('utf8', 0, 40);
        const cost = { of: () => read(route, body), against: () => read(route, small[place]!) };
        const costMs = await expectRatioBelow(cost, GROWTH_MAX, start);
        expectWithin(costMs, COST_MS_MAX, start);
      }
    },
  );
});
