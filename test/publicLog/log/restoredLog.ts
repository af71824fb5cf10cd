/**
 * Stores, service and copies outside Postgres, for tests of a public log whose Postgres is restored to an
 * older state.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterEach, beforeEach } from 'vitest';
import { parseCheckpoint } from '../../../src/domain/publicLog/checkpoints.js';
import { parseNote, signerKeyOf, signerOf } from '../../../src/domain/publicLog/notes.js';
import { hashOfOrigin } from '../../../src/publicLog/log/forkEvidence.js';
import { freshStores } from '../../setup/freshStores.js';
import { cliOf, ROOT } from '../../support/root.js';
import { constants, type LoggedService, startLogged } from '../../support/service.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

export const ORIGIN = 'spindle.example/restored';
export const key = signerOf(ORIGIN, 'log', Buffer.alloc(32, 21));

export let stores: TestStores;
export let sql: postgres.Sql;
export let folder: string;
export let ends: (() => unknown)[];
export let service: LoggedService;
export let partner: { key: string; partnerId: number };

/** Gives each test of a file new stores and a new folder. */
export function useFreshStores(): void {
  beforeEach(async () => {
    stores = await freshStores();
    folder = await mkdtemp(join(tmpdir(), 'spindle-restored-'));
    ends = [() => rm(folder, { recursive: true, force: true }), () => stores.drop()];
    connect();
  });
  afterEach(async () => {
    for (const end of ends.reverse()) await end();
  });
}

function connect(): void {
  const connection = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
  sql = connection;
  ends.push(() => connection.end());
}

export async function start(more: NodeJS.ProcessEnv = {}): Promise<LoggedService> {
  const settings = {
    CELLS: '2',
    LOG_ORIGIN: ORIGIN,
    LOG_KEY: signerKeyOf(key),
    ...constants({ logBatchMs: 1 }),
    ...more,
  };
  const started = await startLogged(stores, settings);
  ends.push(() => started.running.stop());
  return started;
}

/** Starts the service of the test. */
export async function run(more: NodeJS.ProcessEnv = {}): Promise<void> {
  service = await start(more);
}

export async function openPartner(openingBalanceUsd: number): Promise<void> {
  partner = await service.newPartner({ openingBalanceUsd });
}

export const logged = async () =>
  (
    await sql<
      { size: string; halt: string | null; is_held: boolean }[]
    >`SELECT size, halt, is_held FROM logs ORDER BY log_id DESC`
  )[0]!;
export const checkpoint = async (from = service): Promise<string> =>
  (await from.request('GET', '/log/checkpoint')).text;
export const sizeOf = (note: string): number => parseCheckpoint(parseNote(note).text).size;
export const spin = (gameId: number, from = service) =>
  from.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 });
export const statusz = async (from = service) => {
  const { status, body } = await from.request<{ missing: string[] }>('GET', '/statusz');
  return { status, missing: (body.missing ?? []).join('\n') };
};

/**
 * Waits until `/statusz` reports the problem that prevents dealing. On a busy machine it may first report
 * that a store does not respond.
 */
export const untilMissing = (problem: RegExp): Promise<void> =>
  until(async () => {
    const { status, missing } = await statusz();
    return status === 503 && problem.test(missing);
  }, `/statusz says ${problem}`);

/** Runs a statement while no client is connected to the database of the test. */
async function onServer(work: (server: postgres.Sql, name: string) => Promise<unknown>): Promise<void> {
  const name = new URL(stores.databaseUrl).pathname.slice(1);
  const url = new URL(stores.databaseUrl);
  url.pathname = '/postgres';
  await sql.end();
  const server = postgres(url.href, { max: 1, onnotice: () => {} });
  await work(server, name);
  await server.end();
  connect();
}

/** Saves a copy of the database of a stopped service. */
export async function keepDatabase(): Promise<void> {
  await onServer(async (server, name) => {
    await server.unsafe(`CREATE DATABASE ${name}_kept TEMPLATE ${name}`);
    ends.push(async () => {
      const again = postgres(stores.databaseUrl.replace(name, 'postgres'), { max: 1, onnotice: () => {} });
      await again.unsafe(`DROP DATABASE IF EXISTS ${name}_kept WITH (FORCE)`);
      await again.end();
    });
  });
}

/** Replaces the database of a stopped service with the saved copy. */
export async function restoreDatabase(): Promise<void> {
  await onServer(async (server, name) => {
    await server.unsafe(`DROP DATABASE ${name} WITH (FORCE)`);
    await server.unsafe(`CREATE DATABASE ${name} TEMPLATE ${name}_kept`);
  });
}

export async function flushRedis(): Promise<void> {
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  await redis.flushdb();
  redis.disconnect();
}

/** Runs `spindle log …` next to the service. */
export async function spindleLog(
  more: NodeJS.ProcessEnv,
  ...words: string[]
): Promise<{ status: number; out: string }> {
  const child = spawn(process.execPath, [cliOf(ROOT), 'log', ...words, '--json'], {
    env: {
      PATH: process.env.PATH,
      REDIS_URL: stores.redisUrl,
      DATABASE_URL: stores.databaseUrl,
      LOG_KEY: signerKeyOf(key),
      ...more,
    },
  });
  let out = '';
  child.stdout.on('data', (text) => (out += text));
  child.stderr.on('data', (text) => (out += text));
  const [status] = (await once(child, 'close')) as [number];
  return { status, out };
}

/** Reads the newest note in Redis. */
export async function noteInRedis(): Promise<string> {
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  const kept = await redis.hgetall(`spindle:log:${hashOfOrigin(ORIGIN)}`);
  redis.disconnect();
  const newest = Object.keys(kept).sort((one, other) => Number(other) - Number(one))[0];
  return newest === undefined ? '' : kept[newest]!;
}
export const noteInCopy = (): Promise<string> =>
  readFile(join(folder, 'copy', 'checkpoint'), 'utf8').catch(() => '');
