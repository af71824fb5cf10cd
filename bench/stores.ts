/** A Redis that syncs its log before each answer, and a Postgres, both new, and what their books say. */
import { rm } from 'node:fs/promises';
import type { Redis } from 'ioredis';
import { connectPostgres, raw } from '../src/postgres/client.js';
import type { Cleanup } from '../test/support/cleanup.js';
import { rawRedis } from '../test/support/redis.js';
import { ownStores } from '../test/support/stores.js';
import { pause } from '../test/support/wait.js';
import { newDiskFolder } from './diskFolder.js';
import type { Versions } from './measurement.js';

export interface Stores {
  readonly folder: string;
  readonly redisUrl: string;
  readonly databaseUrl: string;
  readonly processes: { readonly redis: number; readonly postgres: number };
  readonly redis: Redis;
  /** A connection that is there for one question: none of ours is part of what is measured. */
  ask<Row extends object>(query: string): Promise<Row[]>;
  versions(): Promise<Versions>;
}

export async function startStores(cleanup: Cleanup): Promise<Stores> {
  const folder = await newDiskFolder();
  cleanup.add(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const own = await ownStores({ folder, onEvent: (line) => console.error(line) });
  cleanup.add(() => own.drop());
  const { redis, postgres } = own;
  const client = rawRedis(redis.url);
  cleanup.add(() => client.disconnect());
  const ask = async <Row extends object>(query: string): Promise<Row[]> => {
    const sql = connectPostgres(postgres.url, { max: 1, name: 'bench', onError: () => {} });
    try {
      return await sql<Row[]>`${raw(query)}`;
    } finally {
      await sql.end();
    }
  };
  return {
    folder: own.dataDir,
    redisUrl: redis.url,
    databaseUrl: postgres.url,
    processes: { redis: redis.pid()!, postgres: postgres.pid()! },
    redis: client,
    ask,
    versions: async () => {
      const info = await client.info('server');
      const valkey = /^valkey_version:(\S+)/m.exec(info)?.[1];
      const [row] = await ask<{ version: string }>("SELECT current_setting('server_version') AS version");
      return {
        redis: valkey === undefined ? (/^redis_version:(\S+)/m.exec(info)?.[1] ?? '?') : `Valkey ${valkey}`,
        postgres: row!.version,
      };
    },
  };
}

/** A ledger to compare with the spins that were answered. */
export interface Books {
  /** Entries of the outbox that are not in Postgres yet. */
  outboxEntries(): Promise<number>;
  /** Spins in Postgres. */
  ledgerRows(): Promise<number>;
}

/** @param countRows a query that gives `rows` */
export const booksOf = ({ redis, ask }: Stores, outboxes: readonly string[], countRows: string): Books => ({
  outboxEntries: async () =>
    (await Promise.all(outboxes.map((key) => redis.xlen(key)))).reduce((sum, length) => sum + length, 0),
  ledgerRows: async () => Number((await ask<{ rows: bigint }>(countRows))[0]!.rows),
});

const DRAIN_DEADLINE_MS = 30_000;
const DRAIN_POLL_MS = 20;

/** Waits until the outbox is empty, or the deadline. @returns how long that took, seconds. */
export async function drained(books: Books | undefined): Promise<number> {
  const startedMs = performance.now();
  while (books !== undefined && (await books.outboxEntries()) > 0) {
    if (performance.now() - startedMs > DRAIN_DEADLINE_MS) break;
    await pause(DRAIN_POLL_MS);
  }
  return (performance.now() - startedMs) / 1000;
}
