/** Real servers for a whole test run: one Redis and one Postgres, started before the first file and stopped after the last. */
import type { TestProject } from 'vitest/node';
import { ownStores } from '../support/stores.js';

declare module 'vitest' {
  export interface ProvidedContext {
    redisUrl: string;
    databaseUrl: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stores = await ownStores();
  project.provide('redisUrl', stores.redisUrl);
  project.provide('databaseUrl', stores.databaseUrl);
  return () => stores.drop();
}
