/** A test's share of the servers of the run (servers.ts). */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { inject } from 'vitest';
import type { TestStores } from '../support/stores.js';

/** Of the server's 16 databases the last has the claims on the others. */
const CLAIMS = 15;
const claimed = new Map<string, Promise<number>>();

/**
 * The Redis database of this process. The runner's worker numbers repeat between projects that run side by side, and two
 * workers in one database would empty each other's.
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
      // Whoever takes a dead holder's claim away first has it.
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
 * An empty Redis database, which no other worker uses, and a Postgres database without a row.
 * @param options.hasSchema without it the database is empty, and the first start of a service brings all migrations.
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
