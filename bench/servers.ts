/**
 * Starts the servers that are compared, each with stores of its own in a fresh temporary folder, and tells how to load
 * it and how to check it afterwards. Every start is from nothing: no server measures on what another left behind.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lockDataDir, startEmbeddedPostgres, startEmbeddedRedis } from '../src/embedded/index.js';
import { connectPostgres, raw } from '../src/postgres/client.js';
import { connectRedis, type RedisClient } from '../src/redis/client.js';
import { outboxKey } from '../src/redis/keys.js';
import type { Processes } from './measure.js';
import { type Cleanup, ROOT, startServerProcess } from './processes.js';

export const SERVERS = { a: 'echo', b: 'spindle', c: 'fastify', d: 'postgres' } as const;
export type ServerLetter = keyof typeof SERVERS;

export const SPIN_PATH = '/api/partner/v1/spin';
export const PAR_SHEET = join('test', 'par-sheets', 'classic-3-reel.json');

/** A ledger to compare with the spins that were answered. */
export interface Books {
  /** Entries of the outbox that are not in Postgres yet. */
  outboxEntries(): Promise<number>;
  /** Spins in Postgres. */
  ledgerRows(): Promise<number>;
  versions(): Promise<{ redis: string; postgres: string }>;
}

export interface RunningServer {
  readonly base: string;
  readonly apiKey: string;
  readonly gameId: number;
  readonly wagerUsd: number;
  /** `server`, and `redis` and `postgres` where there are any. */
  readonly processes: Processes;
  readonly books: Books | undefined;
}

/** @param profileDir where the server leaves a CPU profile when it ends; undefined: none is made. */
export function startServer(
  letter: ServerLetter,
  cleanup: Cleanup,
  profileDir: string | undefined,
): Promise<RunningServer> {
  const profile = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDir}`];
  return { a: startEcho, b: startSpindle, c: startFastify, d: startPostgresPeer }[letter](cleanup, profile);
}

const sheet = JSON.parse(readFileSync(join(ROOT, PAR_SHEET), 'utf8')) as { denominationUsd: number };
const API_KEY_OF_PEERS = `ks_${randomBytes(32).toString('base64url')}`;
const CELLS = 16;
const LIMIT_MAX = 1_000_000_000;
const FIRST_BLOCK_DEADLINE_MS = 30_000;

async function startEcho(cleanup: Cleanup, profile: string[]): Promise<RunningServer> {
  const { pid, base } = await startServerProcess([...profile, peer('echo')], peerEnvironment(), cleanup);
  return {
    base,
    apiKey: API_KEY_OF_PEERS,
    gameId: 1,
    wagerUsd: sheet.denominationUsd,
    processes: { server: pid },
    books: undefined,
  };
}

async function startFastify(cleanup: Cleanup, profile: string[]): Promise<RunningServer> {
  const stores = await startStores(cleanup);
  const { pid, base } = await startServerProcess(
    [...profile, peer('fastify')],
    { ...peerEnvironment(), REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl },
    cleanup,
  );
  return {
    base,
    apiKey: API_KEY_OF_PEERS,
    gameId: 1,
    wagerUsd: sheet.denominationUsd,
    processes: { server: pid, ...stores.processes },
    books: booksOf(stores, ['outbox'], 'SELECT count(*) AS rows FROM spins'),
  };
}

async function startPostgresPeer(cleanup: Cleanup, profile: string[]): Promise<RunningServer> {
  const stores = await startStores(cleanup);
  const { pid, base } = await startServerProcess(
    [...profile, peer('postgres')],
    { ...peerEnvironment(), DATABASE_URL: stores.databaseUrl },
    cleanup,
  );
  return {
    base,
    apiKey: API_KEY_OF_PEERS,
    gameId: 1,
    wagerUsd: sheet.denominationUsd,
    processes: { server: pid, ...stores.processes },
    books: booksOf(stores, [], 'SELECT count(*) AS rows FROM spins'),
  };
}

const peer = (name: string): string => join(ROOT, 'dist', 'bench', 'peers', `${name}.js`);
const peerEnvironment = (): Record<string, string> => ({
  API_KEY: API_KEY_OF_PEERS,
  PAR_SHEET: join(ROOT, PAR_SHEET),
  PEERS_DIR: join(ROOT, 'bench', 'peers'),
});

/** The service as it is deployed on its own: both roles in one process, default settings. */
async function startSpindle(cleanup: Cleanup, profile: string[]): Promise<RunningServer> {
  const stores = await startStores(cleanup);
  const operatorKey = randomBytes(24).toString('hex');
  const { pid, base } = await startServerProcess(
    [...profile, join(ROOT, 'dist', 'src', 'main.js')],
    {
      REDIS_URL: stores.redisUrl,
      DATABASE_URL: stores.databaseUrl,
      DATA_DIR: stores.folder,
      OPERATOR_API_KEY: operatorKey,
      PORT: '0',
      METRICS_PORT: '0',
      CELLS: String(CELLS),
      LOG_LEVEL: 'warn',
    },
    cleanup,
  );
  const outboxes = Array.from({ length: CELLS }, (_, cell) => outboxKey(cell));
  return {
    base,
    ...(await makePartnerAndGame(base, operatorKey)),
    wagerUsd: sheet.denominationUsd,
    processes: { server: pid, ...stores.processes },
    books: booksOf(stores, outboxes, 'SELECT count(*) AS rows FROM ledger WHERE kind = 1'),
  };
}

async function makePartnerAndGame(
  base: string,
  operatorKey: string,
): Promise<{ apiKey: string; gameId: number }> {
  const operator = `${base}/api/operator/v1`;
  const partnerApi = `${base}/api/partner/v1`;
  const { partnerId } = await call<{ partnerId: number }>('POST', `${operator}/partners`, operatorKey, {
    slug: 'bench',
    name: 'Bench',
    environment: 'sandbox',
    spinRateLimit: LIMIT_MAX,
    apiRateLimit: LIMIT_MAX,
  });
  const { apiKey } = await call<{ apiKey: string }>(
    'POST',
    `${operator}/partners/${partnerId}/keys`,
    operatorKey,
    {},
  );
  const { parSheetId } = await call<{ parSheetId: number }>(
    'POST',
    `${partnerApi}/par-sheets`,
    apiKey,
    sheet,
  );
  const { gameConfigId } = await call<{ gameConfigId: number }>('POST', `${partnerApi}/games`, apiKey, {
    parSheetId,
    displayName: 'Bench',
    configName: 'BENCH',
  });
  const deadline = performance.now() + FIRST_BLOCK_DEADLINE_MS;
  for (;;) {
    const { queue } = await call<{ queue: { readyBlocks: number } }>(
      'GET',
      `${operator}/games/${gameConfigId}`,
      operatorKey,
    );
    if (queue.readyBlocks > 0) return { apiKey, gameId: gameConfigId };
    if (performance.now() > deadline) throw new Error('The game got no outcomes');
    await pause(50);
  }
}

async function call<T>(method: string, url: string, apiKey: string, body?: unknown): Promise<T> {
  const response = await fetch(url, {
    method,
    headers: { 'X-API-Key': apiKey, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${new URL(url).pathname}: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

interface Stores {
  readonly folder: string;
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly processes: { redis: number; postgres: number };
  readonly redis: RedisClient;
}

/** A Redis that syncs its log before each answer, and a Postgres, both new. */
async function startStores(cleanup: Cleanup): Promise<Stores> {
  const folder = await mkdtemp(join(tmpdir(), 'spindle-bench-'));
  cleanup.add(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  // As root, Postgres runs as another user, who must be able to enter.
  await chmod(folder, 0o755);
  const lock = await lockDataDir(folder);
  cleanup.add(() => lock.release());
  const options = {
    dataDir: lock.dataDir,
    cacheDir: join(ROOT, '.cache'),
    progress: () => {},
    onEvent: (line: string) => console.error(line),
  };
  const redis = await startEmbeddedRedis(options);
  cleanup.add(() => redis.stop());
  const postgres = await startEmbeddedPostgres(options);
  cleanup.add(() => postgres.stop());
  const client = connectRedis(redis.url, (error) => console.error(error.message));
  cleanup.add(() => client.disconnect());
  await client.connect();
  return {
    folder: lock.dataDir,
    redisUrl: redis.url,
    databaseUrl: postgres.url,
    processes: { redis: redis.pid()!, postgres: postgres.pid()! },
    redis: client,
  };
}

function booksOf(stores: Stores, outboxes: readonly string[], countRows: string): Books {
  const { redis, databaseUrl } = stores;
  // Connected for each question only: a connection of ours is no part of what is measured.
  const ask = async <T>(query: string): Promise<T> => {
    const sql = connectPostgres(databaseUrl, { max: 1, name: 'bench', onError: () => {} });
    try {
      const [row] = await sql<object[]>`${raw(query)}`;
      return row as T;
    } finally {
      await sql.end();
    }
  };
  return {
    outboxEntries: async () =>
      (await Promise.all(outboxes.map((key) => redis.xlen(key)))).reduce((sum, length) => sum + length, 0),
    ledgerRows: async () => Number((await ask<{ rows: bigint }>(countRows)).rows),
    versions: async () => {
      const info = await redis.info('server');
      const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
      const { version } = await ask<{ version: string }>(
        "SELECT current_setting('server_version') AS version",
      );
      return {
        redis: valkey === undefined ? (/^redis_version:(\S+)/m.exec(info)?.[1] ?? '?') : `Valkey ${valkey}`,
        postgres: version,
      };
    },
  };
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
