/** Real servers for a whole test run: one Redis and one Postgres, started before the first file and stopped after the last. */
import type { TestProject } from 'vitest/node';
import { ownStores, templateDatabase } from '../support/stores.js';

declare module 'vitest' {
  export interface ProvidedContext {
    redisUrl: string;
    databaseUrl: string;
    /** Of {@link templateDatabase}. */
    templateName: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const stores = await ownStores();
  project.provide('redisUrl', stores.redisUrl);
  project.provide('databaseUrl', stores.databaseUrl);
  project.provide('templateName', await templateDatabase(stores));
  return () => stores.drop();
}
