/**
 * Tests that several workers share the cells, and that the remaining workers together take over the cells of
 * a worker that leaves.
 */
import { afterAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { booksHold } from '../../support/books.js';
import { expectWithin } from '../../support/expectWithin.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { pause, until } from '../../support/wait.js';

const CELLS = '16';

const { stores, service: front, sql } = world({ CELLS, ROLES: 'http' });
const workers: ServerProcess[] = [];

afterAll(async () => {
  for (const worker of workers) await worker.end('SIGKILL').catch(() => {});
});

/** Returns the number of cells of each worker, largest first. */
const shares = async (): Promise<number[]> => {
  const rows = await sql<{ cells: number }[]>`
    SELECT count(*)::int AS cells FROM cells WHERE lease_until >= now() GROUP BY owner ORDER BY cells DESC`;
  return rows.map(({ cells }) => cells);
};
const areShared = (wanted: readonly number[]) =>
  until(async () => (await shares()).join() === wanted.join(), `the cells are shared ${wanted.join()}`);
const join = async (): Promise<ServerProcess> => {
  const worker = await spawnService(environment(stores, { CELLS, ROLES: 'worker', LOG_LEVEL: 'warn' }));
  workers.push(worker);
  return worker;
};

test('cells are shared evenly as workers join, are killed and stop, while spins are committed', async () => {
  const first = await join();
  await areShared([16]);
  const partners = await Promise.all(Array.from({ length: 8 }, () => front.newPartner()));
  const games = await Promise.all(
    partners.map(async ({ key }) => ({ key, gameId: await front.newGame(key, parSheet('classic-3-reel')) })),
  );
  let isOver = false;
  let spins = 0;
  const spinning = games.map(async ({ key, gameId }) => {
    for (let i = 0; !isOver; i++) {
      const answer = await front.spin(key, { gameId, playerId: `p${i % 3}`, wagerUsd: 0.25 });
      if (answer.status === 200) spins++;
      // Without a pause, the spins would only take processor time from the workers.
      await pause(10);
    }
  });
  await join();
  await areShared([8, 8]);
  await join();
  await areShared([6, 5, 5]);
  const since = performance.now();
  await first.end('SIGKILL');
  await areShared([8, 8]);
  expectWithin(performance.now() - since, 5000);
  await workers[1]!.end('SIGTERM');
  await areShared([16]);
  isOver = true;
  await Promise.all(spinning);
  expect(spins).toBeGreaterThan(0);
  const booked = async () => {
    const [row] = await sql<{ count: number }[]>`SELECT count(*)::int AS count FROM ledger WHERE kind = 1`;
    return row!.count;
  };
  await until(async () => (await booked()) === spins, 'all spins are booked');
  await booksHold(sql);
});

test('cells released for a worker that never takes them are claimed again after a while', async () => {
  const fences = async () => {
    const rows = await sql<{ fence: bigint }[]>`SELECT fence FROM cells ORDER BY cell`;
    return rows.map(({ fence }) => fence);
  };
  const before = await fences();
  await sql`INSERT INTO workers (owner, alive_until) VALUES ('idle', now() + interval '1 hour')`;
  const taken = async () => (await fences()).filter((fence, cell) => fence > before[cell]!).length;
  await until(async () => (await taken()) === 8, 'half of the cells went through other hands');
  await areShared([16]);
});
