/** Gives each test its own databases on the servers of the test run (servers.ts). */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { inject } from 'vitest';
import type { TestStores } from '../support/stores.js';

/**
 * Number of the last of the 16 Redis databases. It contains the claims of processes on the other databases.
 */
const CLAIMS = 15;
const claimed = new Map<string, Promise<number>>();

/**
 * Claims a Redis database for this process. The worker numbers of the test runner repeat between projects
 * that run concurrently, and two workers in one database would delete each other's data.
 */
async function claimDatabase(serverUrl: string): Promise<number> {
  const url = new URL(serverUrl);
  url.pathname = `/${CLAIMS}`;
  const redis = new Redis(url.href, { protocol: 2 });
  try {
    for (let database = 0; database < CLAIMS; database++) {
      const key = `claim:${database}`;
      if ((await redis.set(key, process.pid, 'NX')) === 'OK') return database;
      const holder = Number(await redis.get(key));
      // If several processes find the claim of a dead process, the first one that replaces the claim gets the
      // database.
      if (!isAlive(holder) && (await redis.getset(key, process.pid)) === String(holder)) return database;
    }
  } finally {
    redis.disconnect();
  }
  throw new Error(`All ${CLAIMS} Redis databases are in use by living test workers`);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns an empty Redis database that no other worker uses, and an empty Postgres database.
 *
 * @param options.hasSchema false leaves out the schema, so that the first start of a service runs all
 * migrations
 */
export async function freshStores({ hasSchema = true } = {}): Promise<TestStores> {
  const redisUrl = new URL(inject('redisUrl'));
  const claim = claimed.get(redisUrl.host) ?? claimDatabase(redisUrl.href);
  claimed.set(redisUrl.host, claim);
  redisUrl.pathname = `/${await claim}`;
  const redis = new Redis(redisUrl.href, { protocol: 2 });
  await redis.flushdb();
  redis.disconnect();
  const server = postgres(inject('databaseUrl'), { max: 1, onnotice: () => {} });
  const name = `test_${randomBytes(6).toString('hex')}`;
  await server.unsafe(`CREATE DATABASE ${name}${hasSchema ? ` TEMPLATE ${inject('templateName')}` : ''}`);
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
