/**
 * Tests restores of both stores to the same older moment, and a replaced Postgres. The position file proves
 * such a restore or replacement, and nothing is dealt before an operator runs `spindle recover`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Position } from '../../../src/engine/recovery/positionFile.js';
import { readGame } from '../../../src/engine/redis/cellRecords.js';
import { gamesKey } from '../../../src/engine/redis/keys.js';
import type { TestPartner } from '../../support/client.js';
import { rawRedis } from '../../support/redis.js';
import { cliOf, ROOT } from '../../support/root.js';
import { ServerProcess } from '../../support/serverProcess.js';
import { environment, startLogged, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;

const COMMAND = 'spindle recover --restored';
const ends: (() => Promise<unknown>)[] = [];
let stores: OwnStores;
let sql: postgres.Sql<{ bigint: bigint }>;
let settings: Record<string, string>;
let path: string;
let service: Service;
let partner: TestPartner;
let gameId: number;
let played = 0;

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

beforeEach(async () => {
  stores = await ownStores();
  ends.push(() => stores.drop());
  sql = postgres(stores.databaseUrl, {
    max: 2,
    types: { bigint: postgres.BigInt },
    onnotice: () => {},
    max_lifetime: null,
  });
  ends.push(() => sql.end());
  path = join(stores.dataDir, 'position', 'position.json');
  settings = { CELLS: '1', POSITION_FILE: path };
  played = 0;
  service = await startService(stores, settings);
  ends.push(() => service.stop());
  partner = await service.newPartner({ openingBalanceUsd: 50 });
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});

const spin = (requestId: string) =>
  service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25, requestId });

async function play(name: string, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const answer = await spin(`${name}-${i}`);
    expect(answer.status, answer.text).toBe(200);
  }
  played += count;
  const booked = () => sql`SELECT 1 FROM ledger WHERE request_id LIKE ${`${name}-%`}`;
  await until(async () => (await booked()).length === count, 'the spins are booked');
}

/** Waits until a spin is dealt again, because the blocks of a rebuilt cell are made anew. */
const dealtAgain = () => until(async () => (await spin('first')).status === 200, 'spins are dealt again');

const file = async (): Promise<Position> => JSON.parse(await readFile(path, 'utf8')) as Position;
const statusz = async (): Promise<{ status: number; missing: string }> => {
  const { status, body } = await service.request<{ missing?: string[] }>('GET', '/statusz');
  return { status, missing: (body.missing ?? []).join('\n') };
};

async function expectHeld(reason: RegExp): Promise<void> {
  await until(async () => (await statusz()).missing.includes(COMMAND), '/statusz names the command');
  const { status, missing } = await statusz();
  expect(status).toBe(503);
  expect(missing).toMatch(reason);
  const answer = await spin(`refused-${played}`);
  expect([answer.status, answer.body.errorCode]).toEqual([503, 'KS-5002']);
}

async function runRecover(...words: string[]): Promise<{ status: unknown; said: string }> {
  const child = spawn(process.execPath, [cliOf(ROOT), 'recover', ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      REDIS_URL: stores.redisUrl,
      DATABASE_URL: stores.databaseUrl,
      POSITION_FILE: path,
    },
  });
  let said = '';
  child.stdout.on('data', (text) => (said += text));
  child.stderr.on('data', (text) => (said += text));
  const [status] = await once(child, 'close');
  return { status, said };
}

async function recover(...words: string[]): Promise<void> {
  const { status, said } = await runRecover(...words, '--yes', '--json');
  expect(status, said).toBe(0);
}

const recoverRestored = () => recover('--restored');

/** Stops the stores and runs a callback on their files. */
async function whileStopped(work: (postgresFolder: string) => Promise<void>): Promise<void> {
  await service.stop();
  await stores.redis.stop();
  await stores.postgres.stop();
  await work(join(stores.dataDir, 'postgres'));
  await stores.postgres.start();
  await stores.redis.start();
}

const COPY = { recursive: true, preserveTimestamps: true } as const;

/** Waits until the worker has compared the file with Postgres again, and still deals. */
async function comparedAgain(): Promise<void> {
  const { writtenAt } = await file();
  await until(async () => (await file()).writtenAt > writtenAt, 'the worker has written the file again');
  expect((await statusz()).status).toBe(200);
}

test('deals nothing after both stores were restored to the same moment, and no revealed outcome after spindle recover', async () => {
  await play('before', 10);
  const copy = join(stores.dataDir, 'postgres-copy');
  await whileStopped(async (folder) => {
    await stores.copyRedis();
    await cp(folder, copy, COPY);
  });
  service = await startService(stores, settings);
  await play('shown', 30);
  // The restored state does not have this game, but the file has its lease.
  const later = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const shown = await file();
  expect(shown.leases[later]).toBeGreaterThan(0);
  const shownCodes = await sql`SELECT outcome_index FROM ledger WHERE kind = 1`;
  expect(shownCodes.length).toBe(40);
  await whileStopped(async (folder) => {
    await stores.restoreRedis();
    await rm(folder, { recursive: true });
    await cp(copy, folder, COPY);
  });
  const last = await file();
  expect(BigInt(last.cells[0]!.bookedId)).toBeGreaterThanOrEqual(BigInt(shown.cells[0]!.bookedId));

  service = await startService(stores, settings);
  await expectHeld(/restored from an older copy/);
  expect(await file()).toEqual(last);
  // Without a confirmation the command says what it would do, and does nothing.
  const asked = await runRecover('--restored');
  expect(asked.status).toBe(2);
  expect(asked.said).toMatch(
    /void \d+ sealed outcomes of 1 games .* the last leased index in the position file/,
  );
  expect(asked.said).toMatch(/suspend 0 raffles/);
  await expectHeld(/restored from an older copy/);
  await recoverRestored();
  await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
  await dealtAgain();
  await play('after', 5);
  const [{ first }] = (await sql`
    SELECT min(outcome_index) AS first FROM ledger WHERE request_id LIKE 'after-%' OR request_id = 'first'`) as unknown as [
    { first: bigint },
  ];
  expect(first).toBeGreaterThanOrEqual(BigInt(last.leases[gameId]!));
  expect((await file()).id).not.toBe(last.id);
  await comparedAgain();
  expect((await file()).leases).not.toHaveProperty(String(later));
  await service.stop();
  service = await startService(stores, settings);
  await play('later', 5);
});

test('deals nothing from a Postgres with another identity, timeline or database until an operator accepts it', async () => {
  await play('before', 5);
  for (const field of ['systemIdentifier', 'timeline', 'databaseOid'] as const) {
    await service.stop();
    const position = await file();
    expect(position.postgres[field]).toMatch(/^[0-9A-F]+$/);
    await writeFile(path, JSON.stringify({ ...position, postgres: { ...position.postgres, [field]: '1' } }));
    service = await startService(stores, settings);
    await expectHeld(/ of Postgres is .* has /);
    if (field !== 'databaseOid') {
      await service.stop();
      // The test restores the state before the other Postgres was found.
      await sql`DELETE FROM restored_positions`;
      await writeFile(path, JSON.stringify(position));
      service = await startService(stores, settings);
      await until(async () => (await statusz()).status === 200, 'the service is ready');
    }
  }
  await recoverRestored();
  await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
  await dealtAgain();
  await play('after', 5);
});

test("writes a block to the position file before the block is loaded, and loads no block while the file can't be written", async () => {
  const leased = async (): Promise<number> =>
    Number((await sql<{ end: bigint }[]>`SELECT max(to_index) AS end FROM blocks`)[0]!.end);
  await until(async () => (await file()).leases[gameId] === (await leased()), 'the lease is in the file');
  await service.stop();
  const [folder, away] = [join(stores.dataDir, 'position'), join(stores.dataDir, 'position-away')];
  await rename(folder, away);
  // A file at the path of the position file's folder makes it impossible to create that folder.
  await writeFile(folder, '');
  service = await startService(stores, settings);
  expect((await spin('refused')).body.errorCode).toBe('KS-5002');
  await rm(folder);
  await rename(away, folder);
  await until(async () => (await statusz()).status === 200, 'the service is ready');
  await dealtAgain();
  await play('after', 5);
});

test('the position file has the lease of a block that a killed worker had loaded', async () => {
  await service.stop();
  const killed = ServerProcess.launch({
    env: environment(stores, { ...settings, FAILPOINT: 'block.loaded' }),
  });
  ends.push(() => killed.end('SIGKILL'));
  // The next block of any game kills the process, possibly before the spin is answered.
  const game = async () => killed.client.newGame(partner.key, parSheet('classic-3-reel'));
  await killed
    .ready()
    .then(game, () => {})
    .catch(() => {});
  expect(await killed.ended).toBe('SIGKILL');
  // Blocks that were leased later and not loaded yet may be missing in the file.
  const leased = await sql<
    { lease: string }[]
  >`SELECT concat(game_id, ' to ', to_index) AS lease FROM blocks`;
  const { leases } = await file();
  for (const [id, end] of Object.entries(leases)) expect(leased).toContainEqual({ lease: `${id} to ${end}` });
  const redis = rawRedis(stores.redisUrl);
  ends.push(async () => redis.disconnect());
  const loaded = Object.entries(await redis.hgetallBuffer(gamesKey(0)));
  expect(loaded.length).toBeGreaterThan(0);
  for (const [id, record] of loaded) {
    expect(leases[Number(id)] ?? 0, `game ${id}`).toBeGreaterThanOrEqual(readGame(record).queueEnd);
  }
});

test('rebuilds a cell in Redis that lacks entries which the position file has', async () => {
  await play('before', 5);
  await service.stop();
  const position = await file();
  const { newestId } = position.cells[0]!;
  const cells = { 0: { ...position.cells[0]!, newestId: `${BigInt(newestId) + 1n}` } };
  await writeFile(path, JSON.stringify({ ...position, cells }));
  service = await startService(stores, settings);
  await until(async () => (await statusz()).status === 200, 'the service is ready');
  expect((await sql`SELECT reason FROM recoveries`)[0]!.reason).toMatch(/lacks answered entries/);
  await dealtAgain();
  await play('after', 5);
});

const onRecord = async () => [
  ...(await sql`SELECT path, copy_id FROM outside_copies WHERE setting = 'POSITION_FILE'`),
];

test('deals nothing after a start without the position file that Postgres knows of, and continues once it is back', async () => {
  await play('before', 5);
  expect(await onRecord()).toEqual([{ path, copy_id: (await file()).id }]);
  await service.stop();
  const away = `${path}.away`;
  await rename(path, away);
  for (const without of [settings, { CELLS: '1' }]) {
    service = await startService(stores, without);
    await expectHeld(
      /POSITION_FILE .*Postgres has on record a position file .*spindle recover --without POSITION_FILE/,
    );
    await expect(file()).rejects.toThrow('ENOENT');
    await service.stop();
  }
  service = await startService(stores, settings);
  await expectHeld(/is missing/);
  await rename(away, path);
  await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
  await dealtAgain();
  await play('after', 5);
});

test('names the position file and the log copy if both are missing at a start', async () => {
  const folder = join(stores.dataDir, 'log-copy');
  await service.stop();
  const withBoth = { ...settings, LOG_COPY_DIR: folder };
  service = await startService(stores, withBoth);
  await until(async () => (await sql`SELECT 1 FROM outside_copies`).length === 2, 'both are on record');
  await service.stop();
  await rm(path);
  await rm(folder, { recursive: true });
  service = await startService(stores, withBoth);
  const copies = async (): Promise<string[]> => {
    const { body } = await service.request<{ problems: { name: string; message: string }[] }>(
      'GET',
      '/statusz',
    );
    return body.problems.filter(({ name }) => name === 'copy-missing').map(({ message }) => message);
  };
  await until(async () => (await copies()).length > 0, 'a missing copy is named');
  expect(await copies()).toEqual([
    expect.stringContaining(`LOG_COPY_DIR ${folder} is missing`),
    expect.stringContaining(`POSITION_FILE ${path} is missing`),
  ]);
});

test('deals no revealed outcome from a Postgres dump with an empty Redis and without the position file', async () => {
  await play('before', 10);
  const copy = join(stores.dataDir, 'postgres-copy');
  await whileStopped((folder) => cp(folder, copy, COPY));
  service = await startService(stores, settings);
  await play('shown', 30);
  const [shown] = (await sql`SELECT max(outcome_index) AS last FROM ledger`) as unknown as [{ last: bigint }];
  await whileStopped(async (folder) => {
    await rm(folder, { recursive: true });
    await cp(copy, folder, COPY);
  });
  const redis = rawRedis(stores.redisUrl);
  await redis.flushall();
  redis.disconnect();
  await rm(join(stores.dataDir, 'position'), { recursive: true });
  service = await startService(stores, settings);
  await expectHeld(/If Postgres may have been restored, run `spindle recover --restored`/);
  await recoverRestored();
  await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
  await dealtAgain();
  await play('after', 5);
  const [{ first }] = (await sql`
    SELECT min(outcome_index) AS first FROM ledger WHERE request_id LIKE 'after-%' OR request_id = 'first'`) as unknown as [
    { first: bigint },
  ];
  expect(first).toBeGreaterThan(shown.last);
  expect(await onRecord()).toEqual([{ path, copy_id: (await file()).id }]);
});

test('continues without the position file once an operator gives the file up on record', async () => {
  await play('before', 5);
  await service.stop();
  service = await startService(stores, { CELLS: '1' });
  await expectHeld(/POSITION_FILE is not set/);
  await recover('--without', 'POSITION_FILE');
  await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
  await dealtAgain();
  await play('after', 5);
  const entries = await sql`SELECT actor, subject FROM audit_log WHERE action = 'copy.give-up'`;
  expect([...entries]).toEqual([{ actor: 'command', subject: 'copy:POSITION_FILE' }]);
  await service.stop();
  service = await startService(stores, { CELLS: '1' });
  await play('later', 5);
});

test('reports a position file that vanishes while a worker runs, and writes it again', async () => {
  await play('before', 5);
  await service.stop();
  const logged = await startLogged(stores, settings);
  ends.push(() => logged.running.stop());
  const before = await file();
  const gone = 'spindle_outside_copies_vanished_total{setting="POSITION_FILE"}';
  expect(await logged.metric(gone)).toBe(0);
  await rm(join(stores.dataDir, 'position'), { recursive: true });
  await until(async () => (await logged.metric(gone)) === 1, 'the metric counts it');
  const said = { level: 50, msg: 'position file or log copy disappeared and is written again', path };
  expect(logged.lines).toContainEqual(expect.objectContaining(said));
  await until(
    () =>
      file().then(
        () => true,
        () => false,
      ),
    'the file is there again',
  );
  expect((await file()).id).toBe(before.id);
  expect((await file()).leases[gameId]).toBeGreaterThanOrEqual(before.leases[gameId]!);
});

test('a start on external stores without the setting POSITION_FILE logs exactly one warning', async () => {
  await service.stop();
  await recover('--without', 'POSITION_FILE');
  const logged = await startLogged(stores, { CELLS: '1' });
  ends.push(() => logged.running.stop());
  const warnings = logged.lines.filter(({ msg }) => String(msg).includes('POSITION_FILE'));
  expect(warnings.length).toBe(1);
});
