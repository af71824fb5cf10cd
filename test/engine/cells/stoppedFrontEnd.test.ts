/**
 * Tests a front end that was paused while a partner moved to another cell and back. The front end's catalog
 * has the right cell of the partner, but lacks the newest move.
 */
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { booksHold } from '../../support/books.js';
import type { Answer, Client } from '../../support/client.js';
import { auditFindings } from '../../support/communal.js';
import { movePartner } from '../../support/moves.js';
import { deal, newTable } from '../../support/rounds.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { constants, environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const { stores, sql } = world();
let service: ServerProcess;
let stopped: ServerProcess;

beforeAll(async () => {
  service = await spawnService(environment(stores, { CELLS: '2' }));
  const settings = { CELLS: '2', ROLES: 'http', ...constants({ restrictionReadMs: 600 }) };
  stopped = await spawnService(environment(stores, settings));
});

afterAll(async () => {
  for (const process of [service, stopped]) await process?.end('SIGKILL').catch(() => {});
});

const REQUESTS = 8;
/**
 * Error codes that a front end may return for an earlier request instead of the response: the result is
 * unknown for now, or the service is unavailable.
 */
const NOT_DONE_AGAIN = ['KS-4110', 'KS-5002'];

/** Empties Redis and waits until the worker has rebuilt it from the ledger. */
async function rebuild(client: Client, { gameId, key }: { gameId: number; key: string }): Promise<void> {
  const booked = async () =>
    (await sql`SELECT 1 FROM ledger WHERE request_id LIKE '%-%' AND kind IN (1, 6)`).length;
  await until(async () => (await booked()) > 2 * REQUESTS, 'all is booked');
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  await redis.flushdb();
  redis.disconnect();
  const body = { gameId, playerId: 'other', wagerUsd: 0.25, requestId: 'rebuilt' };
  await until(async () => (await client.spin(key, body)).status === 200, 'the cell deals again');
}

const isReplay = (answer: Answer<unknown>, first: Answer<unknown>): boolean =>
  answer.headers.get('idempotent-replayed') === 'true' && answer.text === first.text;

test.each([
  ['', false],
  [', nor after the cell was rebuilt', true],
])(
  'a front end that was paused does not deal a request again that was dealt in the other cell meanwhile%s',
  async (_when, isRebuilt) => {
    const { client } = service;
    const partner = await client.newPartner({ openingBalanceUsd: 1000, cell: 0 });
    const { partnerId, key } = partner;
    const slot = await client.newGame(key, parSheet('classic-3-reel'));
    const table = await newTable(client, partnerId);
    const spins = Array.from({ length: REQUESTS }, (_, i) => ({
      gameId: slot,
      playerId: `p${i}`,
      wagerUsd: 0.25,
      requestId: `spin-${i}`,
    }));
    const spinAt = (at: ServerProcess) => Promise.all(spins.map((body) => at.client.spin(key, body)));
    const dealAt = (at: ServerProcess) =>
      Promise.all(spins.map((_, i) => deal(at.client, key, table, `r${i}`, `deal-${i}`)));
    // The paused front end already has the partner, its games and its cell in memory.
    const warm = await stopped.client.spin(key, { ...spins[0], requestId: 'warm' });
    expect(warm.status, warm.text).toBe(200);
    await until(
      async () => (await deal(stopped.client, key, table, 'warm', 'warm-deal')).status === 201,
      'it deals',
    );

    stopped.freeze();
    const again = (async () => {
      await movePartner(client, partnerId, 1);
      const first = { spins: await spinAt(service), rounds: await dealAt(service) };
      await movePartner(client, partnerId, 0);
      if (isRebuilt) await rebuild(client, { gameId: slot, key });
      // The requests are sent during the pause, so the front end reads them before it can learn of the moves.
      const repeated = Promise.all([spinAt(stopped), dealAt(stopped)]);
      stopped.thaw();
      const [repeatedSpins, repeatedRounds] = await repeated;
      return { first, repeated: { spins: repeatedSpins, rounds: repeatedRounds } };
    })().finally(() => stopped.thaw());
    const { first, repeated } = await again;
    expect(first.spins.map(({ status }) => status)).toEqual(first.spins.map(() => 200));
    expect(first.rounds.map(({ status }) => status)).toEqual(first.rounds.map(() => 201));
    for (const kind of ['spins', 'rounds'] as const)
      repeated[kind].forEach((answer, i) => {
        const { errorCode } = answer.body as { errorCode?: string };
        const isDoneAgain = !isReplay(answer, first[kind][i]!) && !NOT_DONE_AGAIN.includes(errorCode!);
        expect([kind, i, isDoneAgain && answer.text]).toEqual([kind, i, false]);
      });

    // The front end recovers by itself once it has learned of the moves.
    for (const [i, answer] of (await spinAt(stopped)).entries())
      expect(isReplay(answer, first.spins[i]!), answer.text).toBe(true);
    for (const [i, answer] of (await dealAt(stopped)).entries())
      expect(isReplay(answer, first.rounds[i]!), answer.text).toBe(true);
    const fresh = await stopped.client.spin(key, { ...spins[0], requestId: 'fresh' });
    expect(fresh.status, fresh.text).toBe(200);

    const dealt = async () => {
      const rows = await sql<{ request_id: string; times: number }[]>`
      SELECT request_id, count(*)::int AS times FROM ledger
      WHERE partner_id = ${partnerId} AND kind IN (1, 6) GROUP BY request_id`;
      return new Map(rows.map((row) => [row.request_id, row.times]));
    };
    await until(async () => (await dealt()).has('fresh'), 'all is booked');
    expect([...(await dealt())].filter(([, times]) => times > 1)).toEqual([]);
    await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
    await booksHold(sql);
  },
);
