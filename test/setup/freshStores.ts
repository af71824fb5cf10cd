/** A test's share of the servers of the run (servers.ts). */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { inject } from 'vitest';
import type { TestStores } from '../support/stores.js';

/** An empty Redis database (one of the server's 16, by worker) and an empty Postgres database. */
export async function freshStores(): Promise<TestStores> {
  const redisUrl = new URL(inject('redisUrl'));
  redisUrl.pathname = `/${Number(process.env.VITEST_POOL_ID ?? 1) % 16}`;
  const redis = new Redis(redisUrl.href, { protocol: 2 });
  await redis.flushdb();
  redis.disconnect();
  const server = postgres(inject('databaseUrl'), { max: 1, onnotice: () => {} });
  const name = `test_${randomBytes(6).toString('hex')}`;
  await server.unsafe(`CREATE DATABASE ${name}`);
  await server.end();
  const databaseUrl = new URL(inject('databaseUrl'));
  databaseUrl.pathname = `/${name}`;
  return {
    redisUrl: redisUrl.href,
    databaseUrl: databaseUrl.href,
    async drop() {
      const again = postgres(inject('databaseUrl'), { max: 1, onnotice: () => {} });
      await again.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await again.end();
    },
  };
}
