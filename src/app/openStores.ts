/**
 * Opens the stores. Stores with a configured address are used; the others are started as embedded servers.
 * The pools of Postgres are in postgresPools.store.ts.
 */
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'pino';
import { REDIS_MAJOR_MIN, type RedisNode } from '../engine/redis/node.js';
import type { RedisNodes } from '../engine/redis/nodes.js';
import { openNodes } from '../engine/redis/openNodes.js';
import { closing } from '../platform/runtime/service.js';
import type { ServiceGroup } from '../platform/runtime/serviceGroup.js';
import { addressOf, lineOf } from '../platform/secretsInLogs.js';
import { STORES_FILE } from '../platform/storesFile.js';
import type { Config } from './config.js';
import {
  closeTree,
  type EmbeddedStore,
  lockDataDir,
  SetupError,
  startEmbeddedCluster,
  startEmbeddedPostgres,
  startEmbeddedRedis,
} from './embedded/index.js';

/** Timeout for stopping an embedded server, in ms. It has 15 s to end, and 5 s more after it is killed. */
const STORE_STOP_TIMEOUT_MS = 25_000;

/**
 * Stores without a configured address are started; a front end that another process has started uses the
 * stores of that process.
 */
export async function storeAddresses(
  config: Config,
  log: Logger,
  progress: (line: string) => void,
  services: ServiceGroup,
): Promise<{ redisUrl: string; databaseUrl: string }> {
  const { REDIS_URL, DATABASE_URL } = config;
  if (REDIS_URL !== undefined && DATABASE_URL !== undefined)
    return { redisUrl: REDIS_URL, databaseUrl: DATABASE_URL };
  if (config.processes.isChild) return JSON.parse(await readFile(join(config.dataDir, STORES_FILE), 'utf8'));
  const lock = await lockDataDir(config.dataDir);
  await services.add(closing('data folder lock', () => lock.release()));
  await closeTree(lock.dataDir);
  const options = {
    dataDir: lock.dataDir,
    cacheDir: config.cacheDir,
    progress,
    onEvent: (line: string) => log.warn(line),
  };
  const embed = async (
    name: string,
    start: (o: typeof options) => Promise<EmbeddedStore>,
  ): Promise<string> => {
    const embedded = await start(options);
    await services.add(closing(name, () => embedded.stop(), STORE_STOP_TIMEOUT_MS));
    return embedded.url;
  };
  const [redis, postgres] = await Promise.allSettled([
    REDIS_URL ??
      (process.argv.includes('--cluster')
        ? embed('embedded Redis Cluster', startEmbeddedCluster)
        : embed('embedded Redis', startEmbeddedRedis)),
    DATABASE_URL ?? embed('embedded Postgres', startEmbeddedPostgres),
  ]);
  if (redis.status === 'rejected') throw redis.reason;
  if (postgres.status === 'rejected') throw postgres.reason;
  const urls = { redisUrl: redis.value, databaseUrl: postgres.value };
  const file = join(lock.dataDir, STORES_FILE);
  await writeFile(file, JSON.stringify(urls), { mode: 0o600 });
  await services.add(closing('file of the stores', () => rm(file, { force: true })));
  return urls;
}

/** @throws SetupError if a server can't be reached, is too old, or may lose acknowledged data */
export async function openRedis(
  url: string,
  config: Config,
  log: Logger,
  services: ServiceGroup,
): Promise<RedisNodes> {
  let isOpen = false;
  let lastError: unknown;
  let nodes: RedisNodes;
  try {
    nodes = await openNodes(url, (error) => {
      lastError = error;
      // Errors before the connection is open are not logged, because the failed start reports them in one
      // line.
      if (isOpen) log.warn({ err: lineOf(error) }, 'lost the connection to Redis');
    });
    isOpen = true;
  } catch (error) {
    throw new SetupError(`Cannot connect to Redis at ${addressOf(url)}: ${lineOf(error)}`);
  }
  await services.add(closing('Redis connections', () => nodes.close()));
  if (config.ACK === 'replica' && !nodes.isCluster)
    throw new SetupError('ACK=replica needs a Redis Cluster, but REDIS_URL contains only one address');
  for (const node of nodes.all) {
    // An unavailable primary of a cluster affects only its own cells, also at a start.
    if (node.isReady) await checkServer(node, url, config, log);
    else log.warn({ err: lineOf(lastError) }, 'lost the connection to Redis');
  }
  return nodes;
}

async function checkServer(node: RedisNode, url: string, config: Config, log: Logger): Promise<void> {
  const { version, major } = await node.version();
  if (major < REDIS_MAJOR_MIN) {
    throw new SetupError(
      `Redis at ${addressOf(url)} has version ${version}, but Spindle needs ${REDIS_MAJOR_MIN}.0 or later`,
    );
  }
  const volatile = await node.durability.find();
  if (volatile.length === 0) return;
  const what = `Redis may lose or evict acknowledged writes (${volatile.join('; ')})`;
  if (!config.allowVolatileRedis) {
    throw new SetupError(
      `${what}. Set appendonly yes, appendfsync always, no-appendfsync-on-rewrite no and maxmemory-policy noeviction`,
    );
  }
  log.error(`${what}; serving anyway because ALLOW_VOLATILE_REDIS=1`);
}
