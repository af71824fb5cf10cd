/**
 * The folder and stores of a test run that causes faults, and a guard process that ends what a killed run
 * leaves behind.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EmbeddedStore } from '../../src/app/embedded/store.js';
import { Cleanup } from './cleanup.js';
import { smallDiskMissing } from './disk.js';
import { ROOT } from './root.js';
import { type OwnStores, ownStores } from './stores.js';

/** Name of an environment variable that has the run's folder as its value in every process of the run. */
export const FOLDER_VARIABLE = 'SPINDLE_CHAOS_FOLDER';
/**
 * Size of the Redis disk in MB. It has room for the log of Redis, its rewritten copy and new data, but can be
 * filled quickly.
 */
const DISK_MEGABYTES = 256;

export interface RunFolder {
  readonly folder: string;
  readonly stores: OwnStores;
  /** The reason why Redis has no separate disk, or undefined if it has one. */
  readonly noDisk: string | undefined;
  /** The clean-up steps of processes that run on the stores. {@link close} runs them in reverse order. */
  readonly cleanup: Cleanup;
  /**
   * Ends everything that the run has started.
   * @param keep whether the folder is kept
   */
  close(keep: boolean): Promise<void>;
}

/**
 * Creates the folder and starts the stores, with Redis on a separate small disk.
 *
 * @param cleanup ends everything if {@link RunFolder.close} does not, and keeps the folder if `keep` is set
 * @param withPostgres makes another Postgres than the embedded one in a folder, with the environment that its
 * processes must have
 */
export async function openRunFolder(
  cleanup: Cleanup,
  keep: boolean,
  withPostgres?: (folder: string, environment: NodeJS.ProcessEnv) => Promise<() => Promise<EmbeddedStore>>,
): Promise<RunFolder> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'spindle-chaos-')));
  let isKept = keep;
  const mine = new Cleanup();
  let closed: Promise<void> | undefined;
  const close = (keepIt: boolean): Promise<void> => {
    isKept = keepIt;
    closed ??= mine.run();
    return closed;
  };
  cleanup.add(() => close(isKept));
  mine.add(() => (isKept ? undefined : rm(folder, { recursive: true, force: true })));
  mine.add(startGuard(folder));
  const say = (line: string): void =>
    appendFileSync(join(folder, 'stores.log'), `${new Date().toISOString()} ${line}\n`);
  const noDisk = smallDiskMissing();
  const disk = noDisk === undefined ? { redisDiskMegabytes: DISK_MEGABYTES } : {};
  // If this process is root, servers run as another user, who must be able to enter the folder.
  await chmod(folder, 0o755);
  const own = await withPostgres?.(join(folder, 'archived'), { [FOLDER_VARIABLE]: folder });
  // The embedded stores close their folder to other users, so the additional Postgres needs another folder.
  const dataDir = join(folder, 'stores');
  await mkdir(dataDir);
  const stores = await ownStores({
    folder: dataDir,
    ...disk,
    onProgress: say,
    onEvent: say,
    ...(own === undefined ? {} : { startPostgres: own }),
  });
  mine.add(() => stores.drop());
  mine.add(async () => {
    await stores.emptyDisk();
    await Promise.all([stores.redis.close(), stores.postgres.close()]);
    if (isKept && noDisk === undefined) {
      await cp(stores.redisFolder, join(folder, 'redis-kept'), { recursive: true });
    }
  });
  return { folder, stores, noDisk, cleanup: mine, close };
}

/** @returns a function that ends the guard */
function startGuard(folder: string): () => Promise<void> {
  const program = join(ROOT, 'dist', 'test', 'support', 'guard.js');
  const guard = spawn(process.execPath, [program, folder], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
  return async () => {
    const ended = once(guard, 'exit');
    guard.stdin.end();
    await ended;
  };
}
