/** Counts the statements that a front end sends to Postgres for a request of each operation. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { everyOperation } from '../../support/everyOperation.js';
import { proxy } from '../../support/proxy.js';
import { ROOT } from '../../support/root.js';
import { constants, startLogged } from '../../support/service.js';

const QUIETLY = constants({ catalogPollMs: 3_600_000, authFailureLimit: 1_000_000 });
const { stores, service, sql, partner } = world({ CELLS: '1', DAILY_REPORTS: 'off' });

const PAGE = readFileSync(join(ROOT, 'docs/performance.md'), 'utf8');
/**
 * Number of requests of which one must be within the bound. Background work of the front end, such as reading
 * the changes that the test makes, adds statements to some of them.
 */
const TIMES = 20;

/**
 * Counts the statements in messages of a client of Postgres. A message begins with its type and the length of
 * the rest.
 */
function statementsIn(chunk: Buffer): number {
  let statements = 0;
  for (let at = 0; at < chunk.length; at += 1 + chunk.readUInt32BE(at + 1)) {
    const type = String.fromCharCode(chunk[at]!);
    if (type === 'E' || type === 'Q') statements++;
  }
  return statements;
}

test('docs/performance.md says the largest number of statements of each operation', async () => {
  const cable = await proxy(stores.databaseUrl);
  const front = await startLogged(
    { ...stores, databaseUrl: cable.url },
    { ...QUIETLY, CELLS: '1', ROLES: 'http' },
  );
  const documented = new Map<string, number>();
  for (const [, most, names] of PAGE.matchAll(/^\| (?:\d+ to )?(\d+) \| (`.*`) \|$/gm))
    for (const [, name] of names!.matchAll(/`(\w+)`/g)) documented.set(name!, Number(most));
  const above: string[] = [];
  for (const { name, prepare } of await everyOperation(service, sql, partner)) {
    let least = Number.POSITIVE_INFINITY;
    const most = documented.get(name) ?? -1;
    for (let times = 0; times < TIMES && least > most; times++) {
      const { method, path, ...request } = await prepare();
      let statements = 0;
      cable.beforeRequest = (chunk) => {
        statements += statementsIn(chunk);
      };
      const { status, text } = await front.request(method, path, request);
      expect(status, `${name} ${text}`).toBeLessThan(300);
      least = Math.min(least, statements);
    }
    if (least > most) above.push(`${name} takes ${least}`);
  }
  await front.running.stop();
  await cable.close();
  expect(above).toEqual([]);
});
