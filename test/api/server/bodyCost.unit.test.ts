/** Bounds the time that one request body may take on the event loop, which all partners share. */
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

/** Maximum time in ms for checking one body, on the machines that run `npm run test:time`. */
const COST_MS_MAX = 5;
const FAULTS_MAX = 100;
/**
 * Factor between the sizes of the large and the small body. With linear cost a body of an eighth of the size
 * takes an eighth of the time, or less where reading it triggers no garbage collection (a deep nest takes a
 * seventeenth). Quadratic cost would be 64 times as much.
 */
const SMALLER = 8;
const GROWTH_MAX = 4 * SMALLER;
/**
 * Number of bodies of each route that are measured a second time, more precisely: the bodies that took
 * longest.
 */
const CLOSELY = 3;

/** Builds a body as long as the route's limit by repeating one item. */
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

/** @returns the number of faults */
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

/**
 * Runs a route that checks its body itself. The route gets no services, so a call to a service means that the
 * body was accepted.
 */
async function judge(route: Route, body: JsonObject, text: string): Promise<void> {
  const params = { id: '1', playerId: 'alice' };
  const caller = { partner: PARTNER, refusal: () => undefined, deadline: 0, actor: '' };
  const from = { operator: {} as Caller, isSecure: false };
  const request = { apiVersion: 'v1', ...caller, ...from, params, query: {}, body, text };
  try {
    await route.handle(request);
  } catch (error) {
    if (error instanceof ApiError) throw error;
  }
}

const routes = allRoutes({} as Services, 'Spindle').filter((route) => route.body !== undefined);

const list = (times: number, item: object | number | string): unknown[] =>
  Array<unknown>(Math.floor(times)).fill(item);

/**
 * Builds PAR sheets for which a check might compare every member of one list with every member of another.
 */
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

describe('the time to check the longest body that a route accepts, whatever its content', () => {
  test.each(routes.map((route) => [route.operationId, route] as const))(
    '%s: checks a body in a time that grows no faster than its size, and reports at most 100 faults',
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
