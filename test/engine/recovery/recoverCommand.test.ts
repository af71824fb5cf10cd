/** Tests the command `spindle recover`, run as an engineer would run it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { recover as recoverStores } from '../../../src/cli/recover.js';
import { cellKey } from '../../../src/engine/redis/keys.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import { openNodes } from '../../support/redis.js';
import { cliOf, ROOT } from '../../support/root.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

let stores: TestStores;
let sql: postgres.Sql;
let redis: Redis;
let service: Awaited<ReturnType<typeof startService>>;
let spin: (requestId: string) => ReturnType<typeof service.spin>;

interface State {
  cell: number;
  state: string;
  note: string;
}

/** Runs the command and returns its exit status and its report of each cell. */
async function recover(...words: string[]): Promise<{ status: number; cells: State[]; error: string }> {
  const child = spawn(process.execPath, [cliOf(ROOT), 'recover', '--json', ...words], {
    env: { PATH: process.env.PATH, REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl },
  });
  let output = '';
  let error = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    error += chunk;
  });
  const [status] = (await once(child, 'close')) as [number];
  return { status, cells: output === '' ? [] : (JSON.parse(output) as State[]), error };
}

const statesOf = (cells: readonly State[]): string[] => [...new Set(cells.map(({ state }) => state))].sort();

beforeEach(async () => {
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  service = await startService(stores);
  const partner = await service.newPartner({ openingBalanceUsd: 5 });
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  spin = (requestId) => service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25, requestId });
  expect((await spin('first')).status).toBe(200);
  await until(
    async () => (await sql`SELECT 1 FROM ledger WHERE request_id = 'first'`).length === 1,
    'the spin is booked',
  );
});

afterEach(async () => {
  await service.stop();
  redis.disconnect();
  await sql.end();
  await stores.drop();
});

describe('the command spindle recover', () => {
  test('spindle recover reports no loss while a service is running, and changes nothing', async () => {
    const fences = () => sql`SELECT cell, fence, owner FROM cells ORDER BY cell`;
    const before = await fences();
    const looked = await recover('--check');
    expect([looked.status, statesOf(looked.cells)]).toEqual([0, ['ready']]);
    const done = await recover('--rebuild');
    expect([done.status, statesOf(done.cells)]).toEqual([0, ['held']]);
    expect(await fences()).toEqual(before);
    expect((await spin('second')).status).toBe(200);
  });

  test('spindle recover rebuilds lost cells while no service runs, and the next start deals at once', async () => {
    await service.stop();
    await redis.flushdb();
    const looked = await recover('--check');
    expect(looked.status).toBe(1);
    expect(looked.cells[0]).toMatchObject({ cell: 0, state: 'lost' });
    expect(await redis.dbsize()).toBe(0);
    const done = await recover('--rebuild');
    expect(done.status).toBe(0);
    expect(done.cells[0]).toMatchObject({
      cell: 0,
      state: 'rebuilt',
      note: expect.stringMatching(/^1 players, 1 requests/),
    });
    expect(done.error).toMatch(/cell 0: .*rebuilding it from the ledger/);
    expect((await recover('--rebuild')).cells[0]).toMatchObject({ state: 'ready' });
    service = await startService(stores);
    await until(async () => (await spin('second')).status === 200, 'spins are dealt');
    const again = await spin('first');
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([200, 'true']);
    expect((await sql`SELECT count(*)::int AS count FROM recoveries WHERE cell = 0`)[0]!.count).toBe(1);
  });

  test('spindle recover leaves the Redis data of another database alone unless --replace is given', async () => {
    await service.stop();
    const foreign = '00000000-0000-0000-0000-000000000000:4:x';
    // The workers of the other database have higher fences than the workers of this service.
    await redis.hset(cellKey(0), 'epoch', foreign, 'fence', '1000');
    const refused = await recover('--rebuild');
    expect(refused.status).toBe(1);
    expect(refused.cells[0]).toMatchObject({
      state: 'failed',
      note: expect.stringMatching(/another database/),
    });
    expect(await redis.hget(cellKey(0), 'epoch')).toBe(foreign);
    const done = await recover('--replace', '--yes');
    expect([done.status, done.cells[0]!.state]).toEqual([0, 'rebuilt']);
    service = await startService(stores);
    await until(async () => (await spin('second')).status === 200, 'spins are dealt');
    expect((await spin('first')).headers.get('idempotent-replayed')).toBe('true');
  });

  test('spindle recover --replace also replaces data newer than Postgres, under an epoch above both', async () => {
    await service.stop();
    const [dataset] = (await redis.hget(cellKey(0), 'epoch'))!.split(':');
    await redis.hset(cellKey(0), 'epoch', `${dataset}:9:x`);
    expect((await recover('--rebuild')).cells[0]).toMatchObject({
      state: 'failed',
      note: expect.stringMatching(/Postgres was restored from an older copy/),
    });
    expect((await recover('--replace', '--yes')).status).toBe(0);
    expect((await sql`SELECT epoch FROM cells WHERE cell = 0`)[0]!.epoch).toBe('10');
    service = await startService(stores);
    await until(async () => (await spin('second')).status === 200, 'spins are dealt');
  });

  test('spindle recover --restored ends with 0 after a copy was put back that a worker had missed', async () => {
    await service.stop();
    await sql`INSERT INTO outside_copies (setting, path, copy_id, newest, missing)
      VALUES ('LOG_COPY_DIR', '/copy', 'log', 1, 'LOG_COPY_DIR is missing')`;
    expect((await recover('--check')).status).toBe(1);
    const done = await recover('--restored', '--yes');
    expect([done.status, statesOf(done.cells)]).toEqual([0, ['rebuilt']]);
    expect(done.error).toContain('When a worker last looked for it: LOG_COPY_DIR is missing');
  });

  test('spindle recover --resume lets a halted cell continue', async () => {
    await service.stop();
    await sql`UPDATE cells SET halted = 'a test' WHERE cell = 0`;
    const halted = await recover('--rebuild');
    expect([halted.status, halted.cells[0]]).toEqual([
      1,
      { cell: 0, state: 'halted', note: expect.stringContaining('a test') },
    ]);
    expect((await recover('--resume', '0')).status).toBe(0);
    const [entry] =
      await sql`SELECT actor, action, subject, before FROM audit_log ORDER BY audit_id DESC LIMIT 1`;
    expect(entry).toEqual({
      actor: 'cli',
      action: 'cell.resume',
      subject: 'cell:0',
      before: { halted: 'a test' },
    });
    service = await startService(stores);
    await until(async () => (await spin('second')).status === 200, 'spins are dealt');
  });

  test('spindle recover leaves a halted cell alone, even if Redis is empty or has the data of another database', async () => {
    await service.stop();
    await sql`UPDATE cells SET halted = 'a test' WHERE cell = 0`;
    const foreign = '00000000-0000-0000-0000-000000000000:4:x';
    await redis.hset(cellKey(0), 'epoch', foreign);
    expect((await recover('--rebuild')).cells[0]).toMatchObject({ state: 'halted' });
    expect(await redis.hget(cellKey(0), 'epoch')).toBe(foreign);
    await redis.flushdb();
    expect((await recover('--rebuild')).cells[0]).toMatchObject({ state: 'halted' });
    expect(await redis.hget(cellKey(0), 'epoch')).toBeNull();
  });

  test('spindle recover stops examining a cell whose ledger keeps changing', async () => {
    await service.stop();
    const epoch = (await redis.hget(cellKey(0), 'epoch'))!;
    await redis.hset(cellKey(0), 'epoch', epoch.replace(/:1:/, ':9:'));
    const own = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
    const { nodes, close } = await openNodes(stores.redisUrl);
    try {
      const store = nodes.cell(0);
      const read = store.head.bind(store);
      let looks = 0;
      store.head = async () => {
        looks++;
        await sql`UPDATE cells SET cursor_id = cursor_id + 1 WHERE cell = 0`;
        return read();
      };
      const clocks = { now: Date.now, skewMaxMs: 10_000 };
      const options = { clocks, isCheck: true, isToReplace: false, isVolatileAllowed: false, resume: [] };
      await expect(recoverStores(own, nodes, { ...options, progress: () => {} })).rejects.toThrow(
        /^Cell 0 .* Run the command again/,
      );
      expect(looks).toBe(20);
    } finally {
      close();
      await own.end();
    }
  });

  test('spindle recover exits with status 2 on wrong usage', async () => {
    for (const words of [['extra'], ['--check', '--replace'], ['--resume', 'x'], ['--bogus']]) {
      expect([words, (await recover(...words)).status]).toEqual([words, 2]);
    }
  });
});
