import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cellKey, outboxKey } from '../../../src/engine/redis/keys.js';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { expectWithin } from '../../support/expectWithin.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService, startService } from '../../support/service.js';
import { ENTRIES_AHEAD } from '../../support/settlement.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

let stores: TestStores;
let sql: postgres.Sql;
let redis: Redis;
const ends: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  redis.disconnect();
  await sql.end();
  await stores.drop();
});

const booked = async (): Promise<number> =>
  Number((await sql`SELECT count(*) FROM ledger WHERE kind = 1`)[0]!.count);

async function spinMany(
  service: { spin: ServerProcess['client']['spin'] },
  partner: TestPartner,
  gameId: number,
  count: number,
) {
  const answers = await Promise.all(
    Array.from({ length: count }, (_, i) =>
      service.spin(partner.key, { gameId, playerId: `p${i % 5}`, wagerUsd: 0.25 }),
    ),
  );
  for (const answer of answers) expect(answer.status).toBe(200);
}

async function service() {
  const running = await startService(stores, ENTRIES_AHEAD);
  ends.push(() => running.stop());
  const partner = await running.newPartner();
  const gameId = await running.newGame(partner.key, parSheet('classic-3-reel'));
  return { running, partner, gameId };
}

describe('the flush of outboxes to the ledger', () => {
  test('a paused worker is replaced within 5 s and writes nothing after it resumes', async () => {
    const front = await startService(stores, { ROLES: 'http' });
    ends.push(() => front.stop());
    const workers = await Promise.all(
      [1, 2].map(() => spawnService(environment(stores, { ROLES: 'worker', LOG_LEVEL: 'warn' }))),
    );
    for (const worker of workers) ends.push(() => worker.end('SIGKILL').catch(() => {}));
    const partner = await front.newPartner();
    const gameId = await front.newGame(partner.key, parSheet('classic-3-reel'));
    await spinMany(front, partner, gameId, 50);
    await until(async () => (await booked()) === 50, 'the first spins are booked');

    const { owner } = (await sql<{ owner: string }[]>`SELECT owner FROM cells WHERE cell = 0`)[0]!;
    // The test can't find out which worker owns the cells. Whichever worker is stopped, the other worker must
    // own all cells in the end.
    const [stopped, other] = workers as [ServerProcess, ServerProcess];
    stopped.child.kill('SIGSTOP');
    await spinMany(front, partner, gameId, 50);
    const since = performance.now();
    await until(async () => (await booked()) === 100, 'the other worker has taken over');
    expectWithin(performance.now() - since, 5000);
    stopped.child.kill('SIGCONT');
    other.child.kill('SIGSTOP');
    await spinMany(front, partner, gameId, 50);
    await until(async () => (await booked()) === 150, 'the first worker has taken over again');
    other.child.kill('SIGCONT');
    await spinMany(front, partner, gameId, 50);
    await until(async () => (await booked()) === 200, 'all is booked');
    const rows = await sql<{ cell: number; owner: string; fence: string; halted: string | null }[]>`
      SELECT cell, owner, fence, halted FROM cells ORDER BY cell`;
    expect(rows.map((row) => row.halted)).toEqual(rows.map(() => null));
    expect(Number(rows[0]!.fence)).toBeGreaterThan(1);
    expect(owner).not.toBeNull();
    const [{ gaps }] = (await sql`
      SELECT count(*) AS gaps FROM (SELECT outcome_index - lag(outcome_index) OVER (ORDER BY outcome_index) AS step
      FROM ledger WHERE kind = 1) s WHERE step <> 1`) as unknown as [{ gaps: string }];
    expect(Number(gaps)).toBe(0);
  });

  test('a ledger row that already exists halts the cell with an alarm, and the flush writes nothing', async () => {
    const { running, partner, gameId } = await service();
    await spinMany(running, partner, gameId, 10);
    await until(async () => (await booked()) === 10, 'the first spins are booked');
    // The newest entry is dated ahead of the clock, so that the id of the next entry is predictable.
    const DAY_MS = 86_400_000;
    await until(() => DAY_MS - (Date.now() % DAY_MS) > 60_000, 'the day is not about to end');
    const aheadMs = Date.now() + 30_000;
    const last = (await redis.hgetBuffer(cellKey(0), 'last'))!;
    last.writeUIntLE(aheadMs, 0, 6);
    last.writeUInt16LE(0, 6);
    await redis.hset(cellKey(0), 'last', last);
    const taken = ((BigInt(aheadMs) << 22n) + 1n).toString();
    await sql`
      INSERT INTO ledger SELECT ${taken}::bigint, previous_id, wager_micros, credit_micros, balance_micros, outcome_index,
        partner_id, game_id, entry_number, outcome_code, kind, player_id, request_id
      FROM ledger ORDER BY entry_id DESC LIMIT 1`;
    const before =
      await sql`SELECT (SELECT cursor_id FROM cells WHERE cell = 0), spins, wagered_micros FROM game_days`;
    const spun = await running.spin(partner.key, { gameId, playerId: 'p0', wagerUsd: 0.25 });
    expect(spun.status).toBe(200);
    const metrics = async () =>
      (await fetch(`http://127.0.0.1:${running.running.metricsPort}/metrics`)).text();
    const isHalted = async (): Promise<boolean> =>
      (await sql`SELECT 1 FROM cells WHERE cell = 0 AND halted IS NOT NULL`).length === 1;
    await until(isHalted, 'the cell is halted');
    await until(
      async () => (await metrics()).includes('spindle_cell_halted{cell="0"} 1'),
      'the metrics say that it is halted',
    );
    expect(await booked()).toBe(11);
    expect(
      await sql`SELECT (SELECT cursor_id FROM cells WHERE cell = 0), spins, wagered_micros FROM game_days`,
    ).toEqual(before);
    // The uncommitted entry is not lost, because it stays in the outbox.
    expect(await redis.xlen(outboxKey(0))).toBe(1);
    // Nothing more is dealt from the cell until an engineer has examined it.
    await until(async () => {
      const next = await running.spin(partner.key, { gameId, playerId: 'p0', wagerUsd: 0.25 });
      return next.status === 503 && next.body.errorCode === 'KS-5002';
    }, 'the cell is closed');
  });

  test('a skipped outcome index halts the cell', async () => {
    const { running, partner, gameId } = await service();
    await spinMany(running, partner, gameId, 10);
    await until(async () => (await booked()) === 10, 'the first spins are booked');
    await sql`UPDATE game_progress SET next_index = next_index - 1 WHERE game_id = ${gameId}`;
    await spinMany(running, partner, gameId, 1);
    await until(
      async () =>
        (await sql`SELECT 1 FROM cells WHERE cell = 0 AND halted LIKE '%is not the next index%'`).length ===
        1,
      'the cell is halted',
    );
    expect(await booked()).toBe(10);
  });

  test('commits an outbox only under its own epoch, even if the epoch changes during a flush', async () => {
    const { running, partner, gameId } = await service();
    await spinMany(running, partner, gameId, 1);
    await until(async () => (await booked()) === 1, 'the first spin is booked');
    const epoch = (await redis.hget(cellKey(0), 'epoch'))!;
    await sql.begin(async (tx) => {
      await tx`LOCK TABLE game_progress IN EXCLUSIVE MODE`;
      await spinMany(running, partner, gameId, 1);
      await until(async () => {
        const [row] = await sql`
          SELECT count(*) AS waiting FROM pg_locks
          WHERE relation = 'game_progress'::regclass AND NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
        return Number(row!.waiting) > 0;
      }, 'a flush waits that has read the second spin');
      await spinMany(running, partner, gameId, 5);
      const foreign = `00000000-0000-0000-0000-000000000000:1:${epoch.split(':')[2]}`;
      await redis.hset(cellKey(0), 'epoch', foreign);
    });
    const isReady = async () => (await running.request('GET', '/statusz')).status === 200;
    await until(async () => !(await isReady()), 'the cell is not dealt from');
    expect(await booked()).toBe(2);
    await redis.hset(cellKey(0), 'epoch', epoch);
    await until(async () => (await booked()) === 7, 'the other spins are booked');
    await until(isReady, 'the cell is dealt from again');
    await spinMany(running, partner, gameId, 1);
  });

  test('cells keep their leases during a flush that takes longer than a lease', async () => {
    const { running, partner, gameId } = await service();
    await spinMany(running, partner, gameId, 1);
    await until(async () => (await booked()) === 1, 'the first spin is booked');
    const fences = () => sql`SELECT cell, fence FROM cells ORDER BY cell`;
    const leased = async () => (await sql`SELECT 1 FROM cells WHERE lease_until >= now()`).length;
    const before = await fences();
    await sql.begin(async (tx) => {
      await tx`LOCK TABLE game_progress IN EXCLUSIVE MODE`;
      await spinMany(running, partner, gameId, 1);
      await until(async () => (await leased()) === 0, 'all leases would have ended');
    });
    await until(async () => (await booked()) === 2, 'the second spin is booked');
    await until(async () => (await leased()) === 4, 'all leases are prolonged');
    expect(await fences()).toEqual(before);
  });

  test('commits all entries after its Postgres connections were terminated, and spins continue meanwhile', async () => {
    const { running, partner, gameId } = await service();
    await spinMany(running, partner, gameId, 10);
    await until(async () => (await booked()) === 10, 'the first spins are booked');
    for (let round = 0; round < 10; round++) {
      await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'spindle' AND datname = current_database()`;
      await spinMany(running, partner, gameId, 20);
    }
    await until(async () => (await booked()) === 210, 'all is booked');
    const [{ wrong }] = (await sql`
      SELECT count(*) AS wrong FROM (SELECT entry_number - lag(entry_number) OVER (PARTITION BY player_id ORDER BY entry_id) AS step
      FROM ledger) s WHERE step <> 1`) as unknown as [{ wrong: string }];
    expect(Number(wrong)).toBe(0);
  });
});
