/** Real servers for a whole test run: one Redis and one Postgres, started before the first file and stopped after the last. */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { lockDataDir, startEmbeddedPostgres, startEmbeddedRedis } from '../../src/embedded/index.js';

declare module 'vitest' {
  export interface ProvidedContext {
    redisUrl: string;
    databaseUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'spindle-test-')));
  const lock = await lockDataDir(dataDir);
  const options = {
    dataDir: lock.dataDir,
    cacheDir: join(import.meta.dirname, '..', '..', '.cache'),
    progress: () => {},
    onEvent: () => {},
  };
  const redis = await startEmbeddedRedis(options);
  const postgres = await startEmbeddedPostgres(options);
  project.provide('redisUrl', redis.url);
  project.provide('databaseUrl', postgres.url);
  return async () => {
    await postgres.stop();
    await redis.stop();
    await lock.release();
    await rm(dataDir, { recursive: true, force: true });
  };
}
