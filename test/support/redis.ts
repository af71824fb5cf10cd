/**
 * Access to Redis for tests: directly, to inspect or damage its data, and through the nodes of
 * src/engine/redis.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { type EmbeddedStore, startEmbeddedRedis } from '../../src/app/embedded/index.js';
import type { RedisNode } from '../../src/engine/redis/node.js';
import type { RedisNodes } from '../../src/engine/redis/nodes.js';
import { openNodes as open } from '../../src/engine/redis/openNodes.js';
import type { Cleanup } from './cleanup.js';
import { storesParent } from './disk.js';
import { ROOT } from './root.js';

/** A raw connection. It uses RESP 2, in which streams have the same form on every server. */
export const rawRedis = (url: string): Redis => new Redis(url, { protocol: 2 }).on('error', () => {});

export interface OpenNodes {
  readonly nodes: RedisNodes;
  /** The only Redis server, or the first server of a cluster. */
  readonly node: RedisNode;
  close(): void;
}

/**
 * Connects to the servers.
 * @param luaDir a folder with other operations than lua/
 * @throws Error if no server can be reached
 */
export async function openNodes(url: string, luaDir?: string): Promise<OpenNodes> {
  const nodes = await open(url, () => {}, luaDir);
  return { nodes, node: nodes.all[0]!, close: () => nodes.close() };
}

/** Starts a Redis for one test, without a Postgres. The clean-up of the test ends it. */
export async function ownRedis(cleanup: Cleanup): Promise<EmbeddedStore> {
  const dataDir = await mkdtemp(join(await storesParent(), 'spindle-redis-'));
  cleanup.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  await chmod(dataDir, 0o755);
  const options = { dataDir, cacheDir: join(ROOT, '.cache'), progress: () => {}, onEvent: () => {} };
  const server = await startEmbeddedRedis(options);
  cleanup.add(() => server.stop());
  return server;
}

/** True for the call of a batch of spins. Health checks call a script, too. */
export const isSpinCall = (chunk: Buffer): boolean =>
  (chunk.includes('evalsha') || chunk.includes('EVALSHA')) && chunk.includes('.deal');
