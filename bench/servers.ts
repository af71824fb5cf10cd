/**
 * Starts the servers to compare, each with its own stores in a fresh temporary folder. Returns a way to send
 * load to each server, and a way to compare its ledger. Every start begins with empty stores, so that no
 * server is measured on data of an earlier run.
 */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import type { Target } from './load.js';
import type { Processes } from './measure.js';
import { PAR_SHEET, sheet, startServerProcess, startService } from './service.js';
import type { Shape } from './shape.js';
import { type Books, booksOf, type Stores, startStores } from './stores.js';

/** `redis` is `echo` with one `SET` per request. `floor` does the least of any design (floor.ts). */
export const SERVERS = ['spindle', 'floor', 'echo', 'redis', 'fastify'] as const;
export type ServerName = (typeof SERVERS)[number];
export const isServerName = (name: string): name is ServerName => SERVERS.includes(name as ServerName);

export interface RunningServer {
  readonly base: string;
  readonly targets: readonly Target[];
  /** Process ids by name: `server`, and `worker`, `redis` and `postgres` if they exist. */
  readonly processes: Processes;
  readonly stores: Stores | undefined;
  readonly books: Books | undefined;
}

/** @param shape of the service; the baselines have one partner, one game and one process */
export async function startServer(
  server: ServerName,
  shape: Shape,
  settings: Readonly<Record<string, string>>,
  cleanup: Cleanup,
): Promise<RunningServer> {
  if (server === 'spindle') return startService(shape, cleanup, [], settings);
  if (server === 'echo') return startBaseline(server, undefined, cleanup);
  const stores = await startStores(cleanup);
  if (server === 'redis') return startBaseline('echo', stores, cleanup);
  const baseline = await startBaseline(server, stores, cleanup);
  const outboxes = [{ redis: stores.redis, key: 'outbox' }];
  return { ...baseline, books: booksOf(stores, outboxes, 'SELECT count(*) AS rows FROM spins') };
}

const API_KEY = `ks_${randomBytes(32).toString('base64url')}`;

async function startBaseline(
  name: string,
  stores: Stores | undefined,
  cleanup: Cleanup,
): Promise<RunningServer> {
  const { pid, base } = await startServerProcess(
    {
      program: join(ROOT, 'dist', 'bench', 'baselines', `${name}.js`),
      lastLine: 'API',
      env: {
        API_KEY,
        PAR_SHEET: join(ROOT, PAR_SHEET),
        BASELINES_DIR: join(ROOT, 'bench', 'baselines'),
        ...(stores === undefined ? {} : { REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl }),
      },
    },
    cleanup,
  );
  const { redis, postgres } = stores?.processes ?? {};
  return {
    base: base!,
    targets: [{ apiKey: API_KEY, gameId: 1, wagerUsd: sheet.denominationUsd }],
    processes: {
      server: [pid],
      ...(redis === undefined ? {} : { redis }),
      ...(postgres === undefined ? {} : { postgres }),
    },
    stores,
    books: undefined,
  };
}
