/**
 * Starts one real Redis and one real Postgres before the first file of a test run, and stops both after the
 * last file.
 */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { storesParent } from '../support/disk.js';
import { makeTemplate, ownStores, TEMPLATE_DATABASE } from '../support/stores.js';

declare module 'vitest' {
  export interface ProvidedContext {
    redisUrl: string;
    databaseUrl: string;
    /** Name of the {@link TEMPLATE_DATABASE}. */
    templateName: string;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const template = await realpath(await mkdtemp(join(await storesParent(), 'spindle-template-')));
  const remove = (): Promise<void> => rm(template, { recursive: true, force: true });
  try {
    // Under root, Postgres runs as another user, who must be able to enter the folder.
    await chmod(template, 0o755);
    await makeTemplate(template);
    const stores = await ownStores();
    project.provide('redisUrl', stores.redisUrl);
    project.provide('databaseUrl', stores.databaseUrl);
    project.provide('templateName', TEMPLATE_DATABASE);
    return async () => {
      await stores.drop();
      await remove();
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
