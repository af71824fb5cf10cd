/** What a body may cost the event loop, which all partners share. */
import { describe, expect, test } from 'vitest';
import { ApiError } from '../../src/domain/errors.js';
import { bodyText, check, parseObject } from '../../src/http/body.js';
import { BODY_LIMIT, type Route } from '../../src/http/route.js';
import { allRoutes, type Services } from '../../src/http/routes.js';

const COST_MS_MAX = 5;
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
function read(route: Route, body: Buffer): number {
  try {
    check(route.body!, parseObject(bodyText(body)));
    return 0;
  } catch (error) {
    if (error instanceof ApiError) return error.details?.length ?? 0;
    throw error;
  }
}

const routes = allRoutes({} as Services, 'Spindle').filter(
  // Routes with checks of their own don't judge by the schema.
  (route) => route.scope === 'partner' && route.body !== undefined && route.ownCheck !== true,
);

describe('a body that a partner sends, of any content, as long as its route takes', () => {
  test.each(routes.map((route) => [route.operationId, route] as const))(
    '%s: is judged within 5 ms, with 100 faults at the most',
    (_name, route) => {
      let slowest = { costMs: 0, start: '' };
      for (const body of bodiesOf(route)) {
        let costMs = Number.POSITIVE_INFINITY;
        for (let run = 0; run < RUNS && costMs > COST_MS_MAX / 2; run++) {
          const start = process.cpuUsage();
          expect(read(route, body)).toBeLessThanOrEqual(FAULTS_MAX);
          // The processor's time, and the least of some runs: what others do on the machine is not the body's cost.
          const { user, system } = process.cpuUsage(start);
          costMs = Math.min(costMs, (user + system) / 1000);
        }
        if (costMs > slowest.costMs) slowest = { costMs, start: body.toString('utf8', 0, 40) };
      }
      expect(slowest.costMs, slowest.start).toBeLessThan(COST_MS_MAX);
    },
  );
});
