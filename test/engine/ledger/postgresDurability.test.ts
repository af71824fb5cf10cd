/**
 * Tests that Postgres keeps acknowledged entries whatever its settings are: sessions set synchronous_commit
 * themselves, and unsafe settings are refused.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { booksHold } from '../../support/books.js';
import { Cleanup } from '../../support/cleanup.js';
import { auditFindings } from '../../support/communal.js';
import { type LoggedService, startLogged, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores, postgresAnswers, startPostgresWithout } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const SETTINGS = { ACK: 'ledger', CELLS: '1' };
const CLIENTS = 8;

const cleanup = new Cleanup();
let stores: OwnStores;

beforeAll(async () => {
  stores = await ownStores();
  cleanup.add(() => stores.drop());
});
afterAll(() => cleanup.run());

async function run(...statements: string[]): Promise<void> {
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  for (const statement of statements) await sql.unsafe(statement);
  await sql.end();
}

test('every answered spin is in the ledger after a kill of Postgres with synchronous_commit off for the database', async () => {
  // If the delay of the WAL writer were short, it would save even commits that no session waits for.
  await run(
    'ALTER DATABASE spindle SET synchronous_commit = off',
    `ALTER SYSTEM SET wal_writer_delay = '10s'`,
    'SELECT pg_reload_conf()',
  );
  const service = await startLogged(stores, SETTINGS);
  cleanup.add(() => service.running.stop());
  const partner = await service.newPartner({ openingBalanceUsd: 1000 });
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const answered: string[] = [];
  let isOver = false;
  const play = async (client: number): Promise<void> => {
    for (let i = 0; !isOver; i++) {
      const requestId = `${client}-${i}`;
      const spin = { gameId, playerId: `p${client}`, wagerUsd: 0.25, requestId };
      // Only the service's connection to Postgres breaks. The client's connection to the service stays open.
      if ((await service.spin(partner.key, spin)).status === 200) answered.push(requestId);
    }
  };
  const playing = Array.from({ length: CLIENTS }, (_, client) => play(client));
  await until(() => answered.length >= 200, 'spins are answered');
  await stores.postgres.kill();
  const before = answered.length;
  isOver = true;
  await Promise.all(playing);
  await postgresAnswers(stores.databaseUrl);
  expect(before).toBeGreaterThanOrEqual(200);

  const sql = postgres(stores.databaseUrl, {
    max: 1,
    onnotice: () => {},
    types: { bigint: postgres.BigInt },
  });
  const rows = await sql<
    { request_id: string }[]
  >`SELECT request_id FROM ledger WHERE request_id IS NOT NULL`;
  const booked = new Set(rows.map((row) => row.request_id));
  expect(answered.filter((requestId) => !booked.has(requestId))).toEqual([]);
  await until(async () => (await auditFindings(stores)).length === 0, 'the audit is clean');
  await booksHold(sql);
  await sql.end();
  await service.running.stop();
});

test.each(['off', 'local'])(
  'if synchronous_commit is %s, each session sets it to on; behind a pooler, each writing transaction does',
  async (weak) => {
    await run(`ALTER DATABASE spindle SET synchronous_commit = ${weak}`);
    const settingOf = async (options: { isPooled?: boolean; isPipelined?: boolean }) => {
      const sql = connectPostgres(stores.databaseUrl, {
        ...options,
        max: 1,
        name: 'test',
        onError: () => {},
      });
      type Row = { synchronousCommit: string };
      const [alone] = await sql<Row[]>`SHOW synchronous_commit`;
      const [inside] = await sql.begin((tx) => tx<Row[]>`SHOW synchronous_commit`);
      await sql.end();
      return [alone!.synchronousCommit, inside!.synchronousCommit];
    };
    expect(await settingOf({})).toEqual(['on', 'on']);
    expect(await settingOf({ isPipelined: true })).toEqual(['on', 'on']);
    expect(await settingOf({ isPooled: true })).toEqual([weak, 'on']);
    expect(await settingOf({ isPooled: true, isPipelined: true })).toEqual([weak, 'on']);
    const pooled = startService(stores, { ...SETTINGS, DATABASE_DIRECT_URL: stores.databaseUrl });
    await expect(pooled).rejects.toThrow(`synchronous_commit ${weak}`);
  },
);

test.each(['remote_write', 'remote_apply'])(
  'sessions leave a synchronous_commit of %s unchanged',
  async (strong) => {
    await run(`ALTER DATABASE spindle SET synchronous_commit = ${strong}`);
    const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
    expect(await sql`SHOW synchronous_commit`).toEqual([{ synchronousCommit: strong }]);
    await sql.end();
    await run('ALTER DATABASE spindle RESET synchronous_commit');
  },
);

test.each(['fsync', 'full_page_writes'])(
  'with %s off the service does not start, and if it is turned off later, spins are refused until it is on again',
  async (name) => {
    await stores.postgres.stop();
    const end = await startPostgresWithout(stores, [name]);
    let service: LoggedService | undefined;
    const set = (value: string) => run(`ALTER SYSTEM SET ${name} = ${value}`, 'SELECT pg_reload_conf()');
    try {
      await set('off');
      await expect(startService(stores, SETTINGS)).rejects.toThrow(
        `Postgres may lose committed writes (${name} off)`,
      );
      const careless = await startLogged(stores, { ...SETTINGS, ALLOW_VOLATILE_POSTGRES: '1' });
      expect((await careless.request('GET', '/statusz')).status).toBe(200);
      expect(await careless.metric('spindle_postgres_volatile')).toBe(1);
      await careless.running.stop();

      await set('on');
      service = await startLogged(stores, SETTINGS);
      const { key } = await service.newPartner({ slug: name.replaceAll('_', '-'), openingBalanceUsd: 10 });
      const gameId = await service.newGame(key, parSheet('classic-3-reel'));
      const spin = async () => (await service!.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 })).status;
      expect(await spin()).toBe(200);
      await set('off');
      await until(async () => (await spin()) === 503, 'spins are refused');
      const ready = await service.request('GET', '/statusz');
      expect(ready.status).toBe(503);
      expect(ready.text).toContain(`Postgres may lose committed writes: ${name} off`);
      expect(await service.metric('spindle_postgres_volatile')).toBe(1);
      expect(service.lines.map(({ msg }) => msg)).toContain('Postgres may lose committed writes');
      await set('on');
      await until(async () => (await spin()) === 200, 'spins go on');
      expect(await service.metric('spindle_postgres_volatile')).toBe(0);
      await until(
        async () => (await service!.request('GET', '/statusz')).status === 200,
        'the service is ready',
      );
    } finally {
      await service?.running.stop();
      await end();
      await stores.postgres.start();
    }
  },
);
