/**
 * Tests restores of both stores to the same older moment, and a replaced Postgres. The position file proves
 * such a restore or replacement, and nothing is dealt before an operator runs `spindle recover`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
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

const problems = async (): Promise<{ name: string; message: string }[]> => {
  const { body } = await service.request<{ problems?: { name: string; message: string }[] }>(
    'GET',
    '/statusz',
  );
  return body.problems ?? [];
};
const problemOf = async (name: string): Promise<string | undefined> =>
  (await problems()).find((problem) => problem.name === name)?.message;

/**
 * Answers spins that Postgres does not get, and then restores Postgres to its newest state under a new
 * timeline, as after a base backup with the whole archive.
 */
async function restoredWithWaitingSpins(count: number): Promise<ReadonlyMap<string, string>> {
  await play('booked', 5);
  const loaded = async () => (await file()).leases[gameId] !== undefined;
  await until(loaded, 'outcomes are loaded');
  await sql`ALTER SYSTEM SET restore_command = 'false'`;
  await stores.postgres.stop();
  const answered = new Map<string, string>();
  for (let i = 0; i < count; i++) {
    const { status, text } = await spin(`waits-${i}`);
    expect(status, text).toBe(200);
    answered.set(`waits-${i}`, text);
  }
  await service.stop();
  await writeFile(join(stores.dataDir, 'postgres', 'data', 'recovery.signal'), '');
  await stores.postgres.start();
  return answered;
}

/** Waits until a worker has found the new timeline and closed the cells. */
async function findsNewTimeline(): Promise<void> {
  await until(async () => (await statusz()).missing.includes('timeline of Postgres is'), 'it is found');
  await until(async () => (await spin('refused')).status === 503, 'spins are refused');
}

test('keeps all answered spins if the position file is given up after a worker has found the new timeline', async () => {
  const answered = await restoredWithWaitingSpins(20);
  service = await startService(stores, settings);
  await findsNewTimeline();
  await service.stop();
  await rename(path, `${path}.away`);
  await recover('--without', 'POSITION_FILE');
  service = await startService(stores, settings);
  await until(async () => (await statusz()).status === 200, 'the service is ready');
  await dealtAgain();
  for (const [requestId, text] of answered) expect((await spin(requestId)).text).toBe(text);
});

test('a running worker continues once the position file of another timeline is given up', async () => {
  const answered = await restoredWithWaitingSpins(5);
  service = await startService(stores, settings);
  await findsNewTimeline();
  const { id } = await file();
  await recover('--without', 'POSITION_FILE');
  await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
  expect((await file()).id).not.toBe(id);
  for (const [requestId, text] of answered) expect((await spin(requestId)).text).toBe(text);
});

test('no worker finds a new timeline if the position file was given up before', async () => {
  const answered = await restoredWithWaitingSpins(5);
  await recover('--without', 'POSITION_FILE');
  service = await startService(stores, settings);
  await until(async () => (await statusz()).status === 200, 'the service is ready');
  for (const [requestId, text] of answered) expect((await spin(requestId)).text).toBe(text);
});

test('/statusz names both ways out of a new timeline with their costs, the one that keeps everything first', async () => {
  await restoredWithWaitingSpins(7);
  service = await startService(stores, settings);
  await until(async () => (await problemOf('stores-restored')) !== undefined, 'the restore is found');
  expect(await problemOf('stores-restored')).toMatch(
    /recover --without POSITION_FILE`: it keeps everything, also 7 spins.* Otherwise run `spindle recover --restored`: it discards 7 spins that wait in Redis, voids \d+ undealt outcomes/,
  );
});

test('spindle recover recommends the way that keeps everything while Redis shows that Postgres is complete', async () => {
  await restoredWithWaitingSpins(7);
  const { status, said } = await runRecover();
  expect(status).toBe(1);
  expect(said).toContain('The timeline of Postgres is');
  expect(said).toMatch(/keeps: everything, also 7 spins/);
  expect(said).toMatch(/costs: 7 spins that wait in Redis are discarded; \d+ undealt outcomes in \d+ blocks/);
  expect(said).toContain('Recommended: npx spindle recover --without POSITION_FILE');
});

test('spindle recover says that nothing needs to be done while the service is well', async () => {
  await play('before', 2);
  const { status, said } = await runRecover();
  expect([status, said]).toEqual([0, expect.stringContaining('Nothing needs to be done')]);
});

test('spindle recover --without refuses to give up a position file that proves an older state', async () => {
  await play('before', 5);
  await service.stop();
  const position = await file();
  await writeFile(path, JSON.stringify({ ...position, leases: { [gameId]: 1_000_000 } }));
  service = await startService(stores, settings);
  await expectHeld(/restored from an older copy/);
  for (const isThere of [true, false]) {
    if (!isThere) await rename(path, `${path}.away`);
    const { status, said } = await runRecover('--without', 'POSITION_FILE', '--yes');
    expect(status).toBe(1);
    expect(said).toMatch(/proves that Postgres lacks something.*spindle recover --restored/);
  }
  expect((await runRecover()).said).toContain('Recommended: npx spindle recover --restored');
});

const halfOf = (text: string): string => text.slice(0, text.length / 2);
const DAMAGES: Readonly<Record<string, (whole: string) => string>> = {
  'an empty position file': () => '',
  'a position file that is cut off': halfOf,
  'a position file of another version': () => '{"version":9,"id":"x","cells":{}}',
};

for (const [name, damaged] of Object.entries(DAMAGES)) {
  test(`names ${name} and the commands, and replaces it once it is given up`, async () => {
    await play('before', 5);
    await service.stop();
    await writeFile(path, damaged(await readFile(path, 'utf8')));
    service = await startService(stores, settings);
    await until(async () => (await problemOf('copy-unreadable')) !== undefined, 'the file is named');
    const message = await problemOf('copy-unreadable');
    expect(message).toContain(`POSITION_FILE ${path} can't be read: it `);
    expect(message).toContain('spindle recover --without POSITION_FILE');
    const checked = await runRecover('--check');
    expect([checked.status, checked.said]).toEqual([1, expect.stringContaining("can't be read: it ")]);
    const asked = await runRecover('--restored');
    expect(asked.said).toMatch(/2\^32 indices, because the position file .* can't be read: it /);
    expect((await runRecover()).said).toContain('Recommended: npx spindle recover --without POSITION_FILE');
    await recover('--without', 'POSITION_FILE');
    await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
    expect((await file()).cells[0]).toBeDefined();
    await play('after', 5);
  });
}

test('recover --restored replaces a damaged position file', async () => {
  await play('before', 5);
  await service.stop();
  await writeFile(path, '');
  service = await startService(stores, settings);
  await until(async () => (await problemOf('copy-unreadable')) !== undefined, 'the file is named');
  await recoverRestored();
  await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
  expect((await file()).cells[0]).toBeDefined();
});

test('a worker continues once a damaged position file is repaired', async () => {
  await play('before', 5);
  await service.stop();
  const whole = await readFile(path, 'utf8');
  await writeFile(path, halfOf(whole));
  service = await startService(stores, settings);
  await until(async () => (await problemOf('copy-unreadable')) !== undefined, 'the file is named');
  await writeFile(path, whole);
  await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
});

test('a worker writes a position file again that is damaged while it runs, and makes blocks for new games', async () => {
  await play('before', 5);
  const before = await file();
  for (const damaged of Object.values(DAMAGES)) {
    await writeFile(path, damaged(await readFile(path, 'utf8')));
    const game = await service.newGame(partner.key, parSheet('classic-3-reel'));
    const dealt = async () =>
      (await service.spin(partner.key, { gameId: game, playerId: 'p', wagerUsd: 0.25 })).status === 200;
    await until(dealt, 'the new game is dealt');
    expect((await file()).leases[game]).toBeGreaterThan(0);
    expect((await file()).id).toBe(before.id);
  }
});

test('a worker replaces a folder in the place of its position file', async () => {
  await play('before', 5);
  await rm(path);
  await mkdir(path);
  const game = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const dealt = async () =>
    (await service.spin(partner.key, { gameId: game, playerId: 'p', wagerUsd: 0.25 })).status === 200;
  await until(dealt, 'the new game is dealt');
  expect((await file()).leases[game]).toBeGreaterThan(0);
});

test("names the position file that a worker can't write at its start", async () => {
  await service.stop();
  const folder = join(stores.dataDir, 'position');
  await rename(folder, `${folder}-away`);
  // A file at the path of the position file's folder makes it impossible to create that folder.
  await writeFile(folder, '');
  service = await startService(stores, settings);
  await until(async () => (await problemOf('copy-unwritable')) !== undefined, 'the file is named');
  expect(await problemOf('copy-unwritable')).toContain('position');
});

test('names a copy of the log whose checkpoint is empty or cut off, and replaces it once it is given up', async () => {
  const folder = join(stores.dataDir, 'log-copy');
  const checkpoint = join(folder, 'checkpoint');
  await service.stop();
  const withBoth = { ...settings, LOG_COPY_DIR: folder };
  service = await startService(stores, withBoth);
  for (const damaged of [() => '', halfOf]) {
    await until(async () => (await sql`SELECT 1 FROM outside_copies`).length === 2, 'both are on record');
    await service.stop();
    await writeFile(checkpoint, damaged(await readFile(checkpoint, 'utf8')));
    service = await startService(stores, withBoth);
    await until(async () => (await problemOf('copy-unreadable')) !== undefined, 'the copy is named');
    expect(await problemOf('copy-unreadable')).toMatch(
      /LOG_COPY_DIR .*log-copy can't be read: its file checkpoint .*recover --without LOG_COPY_DIR/,
    );
    await recover('--without', 'LOG_COPY_DIR');
    await until(async () => (await statusz()).status === 200, 'the service is ready without a restart');
    await until(async () => (await readFile(checkpoint, 'utf8')).length > 100, 'the copy is written again');
  }
});

test.each([
  ['Redis', 'REDIS_URL', 'recover'],
  ['Postgres', 'DATABASE_URL', 'recover'],
  ['Redis', 'REDIS_URL', 'recover --check'],
  ['Postgres', 'DATABASE_URL', 'recover --check'],
])('names the %s of %s that does not respond to spindle %s', async (store, setting, words) => {
  await service.stop();
  const url = new URL(setting === 'REDIS_URL' ? stores.redisUrl : stores.databaseUrl);
  await (store === 'Redis' ? stores.redis : stores.postgres).stop();
  const { status, said } = await runRecover(...words.split(' ').slice(1));
  expect([status, said]).toEqual([1, expect.stringContaining(`${store} at ${url.host} does not respond`)]);
});
