/**
 * Tests consecutive versions on the same stores: which processes run, which data format is written, and which
 * versions are refused.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FORMATS } from '../../../src/domain/formats.js';
import { readDealtMessage } from '../../../src/engine/redis/announcements.js';
import { readGame } from '../../../src/engine/redis/cellRecords.js';
import { cellKey, gamesKey } from '../../../src/engine/redis/keys.js';
import {
  finishUpgrade,
  forgetProcess,
  registerProcess,
} from '../../../src/engine/upgrade/processes.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { world } from '../../setup/world.js';
import { cliOf, ROOT } from '../../support/root.js';
import { type LoggedService, startLogged, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const NEXT = FORMATS.newest + 1;
const NEWER = {
  processId: '00000000-0000-4000-8000-000000000001',
  version: '99.0.0',
  roles: 'worker',
  host: 'elsewhere',
  formats: { oldest: FORMATS.newest, newest: NEXT },
};

const { stores, redis, sql: books } = world();
let sql: Sql;
let service: LoggedService;
beforeAll(async () => {
  sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'upgrade test', onError: () => {} });
  // The written format is recorded only in the row of the table `installation`.
  await books`ALTER TABLE installation ALTER COLUMN format SET DEFAULT 0`;
  service = await startLogged(stores, { CELLS: '1', SPIN_DEADLINE_MS: '2000' });
});
afterAll(async () => {
  await service?.running.stop();
  await sql.end();
});

const spindle = (...args: string[]) =>
  promisify(execFile)(process.execPath, [cliOf(ROOT), ...args], {
    env: { PATH: process.env.PATH, REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl },
  }).then(
    ({ stdout }) => ({ status: 0, out: stdout }),
    ({ code, stdout, stderr }) => ({ status: code as number, out: `${stdout}${stderr}` }),
  );
const format = async (): Promise<number> => (await books`SELECT format FROM installation`)[0]!.format;
/** Returns the newest format that a cell may contain. */
const cellFormat = async (): Promise<number> => Number((await redis.hget(cellKey(0), 'format')) ?? 1);

test('a fresh database and its cells have the newest format', async () => {
  expect(await format()).toBe(FORMATS.newest);
  expect(await cellFormat()).toBe(FORMATS.newest);
});

test('a fresh database has no pending upgrade: upgrade status lists the processes, and there is nothing to finish', async () => {
  const { status, out } = await spindle('upgrade', 'status', '--json');
  expect(status).toBe(0);
  const { version } = JSON.parse((await spindle('version', '--json')).out);
  expect(JSON.parse(out)).toMatchObject({
    format: FORMATS.newest,
    isOpen: false,
    blockedBy: [],
    processes: [{ version, roles: 'http,worker', formats: FORMATS }],
  });
  expect((await spindle('upgrade', 'finish', '--yes')).status).toBe(0);
  expect((await spindle('upgrade', 'status')).out).toContain('there is nothing to finish');
});

test('while two versions run, upgrade status names both, and upgrade finish does not claim to be done', async () => {
  const other = { ...NEWER, version: '1.4.0', formats: FORMATS };
  await registerProcess(sql, other, () => {});
  try {
    const { status, out } = await spindle('upgrade', 'status');
    expect({ status, out }).toEqual({ status: 1, out: expect.stringContaining('1.4.0 (1)') });
    expect(JSON.parse((await spindle('upgrade', 'status', '--json')).out)).toMatchObject({ isOpen: true });
    expect((await spindle('upgrade', 'finish', '--yes')).status).toBe(1);
  } finally {
    await forgetProcess(sql, other.processId);
  }
});

test('accepts a message with an additional property and rejects a message that lacks a property', () => {
  expect(readDealtMessage('3 token 7 4096 more')).toEqual({
    cell: 3,
    token: 'token',
    gameId: 7,
    nextIndex: 4096,
  });
  for (const message of ['3 token 7', '3 token  4096', '3 token 7 x', ''])
    expect(() => readDealtMessage(message)).toThrow(RangeError);
});

test("refuses to finish an upgrade while a process runs that can't read the new format", async () => {
  await registerProcess(sql, NEWER, () => {});
  const against = await finishUpgrade(sql, 'operator', NEXT);
  expect(against.map(({ formats }) => formats)).toEqual([FORMATS]);
  expect(await format()).toBe(FORMATS.newest);
});

test("a process deals nothing once a format that it can't read is recorded, even before a cell has that format", async () => {
  const { key, partnerId } = await service.newPartner();
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const spin = () => service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
  await until(async () => (await spin()).status === 200, 'the game deals');
  await books`UPDATE installation SET format = ${NEXT}`;
  const refused = { errorCode: 'KS-5002' };
  await until(async () => (await spin()).body.errorCode === 'KS-5002', 'nothing is dealt');
  // The test checks the queue in Redis, because earlier spins may still be on their way to the ledger.
  const dealt = async () => readGame((await redis.hgetBuffer(gamesKey(0), String(gameId)))!).nextIndex;
  const before = await dealt();
  for (let i = 0; i < 3; i++) expect((await spin()).body).toMatchObject(refused);
  const adjusted = await service.operator('POST', `/partners/${partnerId}/players/p/adjustments`, {
    amountUsd: 1,
    reason: 'goodwill',
    requestId: 'held',
  });
  expect(adjusted.body).toMatchObject(refused);
  expect(await dealt()).toEqual(before);
  await books`UPDATE installation SET format = ${FORMATS.newest}`;
  await until(async () => (await spin()).status === 200, 'it deals again');
});

test('after a finished upgrade, a process of the older version deals nothing, and older processes and commands do not start', async () => {
  const { key } = await service.newPartner();
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const spin = () => service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
  await until(async () => (await spin()).status === 200, 'the game deals');
  // The record of the other process is changed, so that it did not report for an hour.
  await books`UPDATE processes SET seen_at = now() - interval '1 hour' WHERE process_id <> ${NEWER.processId}::uuid`;
  expect(await finishUpgrade(sql, 'operator', NEXT)).toEqual([]);
  // A worker of the newer version would record this format in the cell.
  await redis.hset(cellKey(0), 'format', NEXT);
  expect((await spin()).body).toMatchObject({ errorCode: 'KS-5002' });
  const reason = `This version reads data up to format ${FORMATS.newest}, but an upgrade was finished and the data has format ${NEXT}`;
  const ready = async () => (await service.request('GET', '/statusz')).text;
  await until(async () => (await ready()).includes(reason), 'it is not ready');
  expect(service.lines.map(({ msg }) => msg)).toContain(
    'stored data format is newer than this version supports, dealing stopped',
  );
  await expect(startService(stores)).rejects.toThrow(reason);
  expect((await spindle('audit')).out).toContain(reason);
  expect((await spindle('upgrade', 'status')).out).toContain("This program can't read the written format");
  const { body } = await service.operator<{ entries: { action: string }[] }>('GET', '/audit-log?limit=5');
  expect(body.entries.map(({ action }) => action)).toContain('upgrade.finish');
  // The format is restored for the tests that follow.
  await books`UPDATE installation SET format = ${FORMATS.newest}`;
  await redis.hset(cellKey(0), 'format', FORMATS.newest);
  await until(async () => (await ready()).includes('"well"'), 'it is ready again');
  await until(async () => (await spin()).status === 200, 'it deals again');
});
