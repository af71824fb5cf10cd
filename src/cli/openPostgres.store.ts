/** Opens the stores for a command. The command must close them when it ends. */
import { seedsOf } from '../domain/storeUrl.js';
import type { RedisNodes } from '../engine/redis/nodes.js';
import { openNodes } from '../engine/redis/openNodes.js';
import { withTimeout } from '../platform/runtime/withTimeout.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { connectPostgres } from '../postgres/connect.js';
import type { Sql } from '../postgres/connection.js';
import type { StoreUrls } from './command.js';

/**
 * Opens a connection pool.
 * @param name name in `pg_stat_activity`, prefixed with `spindle-`
 * @throws Error with one line if the address is unusable
 */
export const openPostgres = (url: string, name: string, max: number): Sql =>
  connectPostgres(url, { max, name: `spindle-${name}`, onError: () => {} });

const ANSWERS_WITHIN_MS = 10_000;

/**
 * Waits for the first answer of a store.
 * @throws Error that names the store and its host
 */
async function answering<T>(store: string, url: string, answer: Promise<T>): Promise<T> {
  const hosts = seedsOf(url).map((each) => new URL(each).host);
  try {
    return await withTimeout(answer, ANSWERS_WITHIN_MS);
  } catch (error) {
    throw new Error(`${store} at ${hosts.join(', ')} does not respond: ${lineOf(error)}`);
  }
}

/** @throws Error that names the host, if Postgres does not respond */
export const postgresAnswers = (sql: Sql, url: string): Promise<unknown> =>
  answering('Postgres', url, sql`SELECT 1`);

/** @throws Error that names each store that does not respond, with its host */
export async function openStores({
  redisUrl,
  databaseUrl,
}: StoreUrls): Promise<{ sql: Sql; nodes: RedisNodes }> {
  const sql = openPostgres(databaseUrl, 'recover', 4);
  try {
    const [postgres, redis] = await Promise.allSettled([
      postgresAnswers(sql, databaseUrl),
      answering(
        'Redis',
        redisUrl,
        openNodes(redisUrl, () => {}),
      ),
    ]);
    const faults = [postgres, redis].flatMap((each) =>
      each.status === 'rejected' ? [lineOf(each.reason)] : [],
    );
    if (redis.status === 'fulfilled' && faults.length === 0) return { sql, nodes: redis.value };
    if (redis.status === 'fulfilled') redis.value.close();
    throw new Error(faults.join('\n'));
  } catch (error) {
    await sql.end();
    throw error;
  }
}
