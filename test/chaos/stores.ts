/** The stores of a chaos run: a Redis on a small disk of its own in memory, and a Postgres, each with its supervisor. */
import { execFile } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { cp, mkdir, open, readFile, rm, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  type EmbeddedStore,
  lockDataDir,
  startEmbeddedPostgres,
  startEmbeddedRedis,
} from '../../src/embedded/index.js';
import { reasonOf } from '../../src/embedded/setupError.js';
import { ROOT } from '../support/root.js';
import { until } from '../support/wait.js';

const run = promisify(execFile);

/** Room for the log, its rewritten copy and what comes in meanwhile; small enough to be filled at once. */
const DISK_MEGABYTES = 256;
const KILLED_WITHIN_MS = 10_000;
const AOF_FOLDER = 'appendonlydir';

/** One server that faults are done to. */
export class ChaosStore {
  readonly #begin: () => Promise<EmbeddedStore>;
  #store: EmbeddedStore;
  #frozen: number[] = [];
  #turn: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  private constructor(begin: () => Promise<EmbeddedStore>, store: EmbeddedStore) {
    this.#begin = begin;
    this.#store = store;
  }

  static async begin(begin: () => Promise<EmbeddedStore>): Promise<ChaosStore> {
    return new ChaosStore(begin, await begin());
  }

  /** Past every proxy; the same for the whole run. */
  get url(): string {
    return this.#store.url;
  }

  /** SIGKILL; resolves when it is dead. Its supervisor starts it again. */
  async kill(): Promise<void> {
    const pid = this.#store.pid();
    if (pid === undefined) return;
    send(pid, 'SIGKILL');
    await until(() => this.#store.pid() !== pid, `process ${pid} is dead`, KILLED_WITHIN_MS, 1);
  }

  /** Stops all its processes where they are: connections stay open and nothing is answered. */
  async freeze(): Promise<void> {
    const pid = this.#store.pid();
    if (pid === undefined) return;
    // The parent first: it makes no further children then.
    send(pid, 'SIGSTOP');
    this.#frozen = [pid, ...(await childrenOf(pid))];
    for (const each of this.#frozen) send(each, 'SIGSTOP');
  }

  thaw(): void {
    for (const pid of this.#frozen.splice(0)) send(pid, 'SIGCONT');
  }

  /** Ends it in an orderly way; it stays away until {@link start}. */
  stop(): Promise<void> {
    return this.#next(() => this.#store.stop());
  }

  start(): Promise<void> {
    return this.#next(async () => {
      if (!this.#isClosed) this.#store = await this.#begin();
    });
  }

  /** Ends it for good, whatever state a fault left it in. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.thaw();
    return this.#next(() => this.#store.stop());
  }

  /** One after the other: a start that is under way when the run is interrupted must not outlive it. */
  #next(step: () => Promise<void>): Promise<void> {
    const done = this.#turn.then(step);
    this.#turn = done.catch(() => {});
    return done;
  }
}

export interface ChaosStores {
  readonly redis: ChaosStore;
  readonly postgres: ChaosStore;
  /** Why Redis has no disk of its own; undefined where it has one. */
  readonly noDisk: string | undefined;
  /** Takes all that is left of Redis's disk, until {@link emptyDisk}. */
  fillDisk(): Promise<void>;
  emptyDisk(): Promise<void>;
  /** Keeps a copy of the append-only files as they are now. */
  copyRedis(): Promise<void>;
  /** Removes the append-only files of a Redis that is stopped. */
  wipeRedis(): Promise<void>;
  /** Puts the kept copy in the place of the append-only files of a Redis that is stopped. */
  restoreRedis(): Promise<void>;
  /** Ends both servers. @param keep leaves what Redis had on its disk in the folder. */
  close(keep: boolean): Promise<void>;
}

/** @param folder an absolute real path, whose name no other process has in its command line. */
export async function startStores(folder: string): Promise<ChaosStores> {
  const redisDir = join(folder, 'redis-disk');
  const postgresDir = join(folder, 'postgres-disk');
  const copy = join(folder, 'redis-copy');
  const filler = join(redisDir, 'filler');
  const aof = join(redisDir, 'redis', AOF_FOLDER);
  await mkdir(redisDir);
  await mkdir(postgresDir);
  const noDisk = await mountDisk(redisDir);
  const undo: (() => Promise<unknown>)[] = [];
  if (noDisk === undefined) undo.push(() => unmountDisk(redisDir));
  const say = (line: string): void =>
    appendFileSync(join(folder, 'stores.log'), `${new Date().toISOString()} ${line}\n`);
  const closeAll = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  const begin = async (dataDir: string, start: typeof startEmbeddedRedis): Promise<ChaosStore> => {
    const lock = await lockDataDir(dataDir);
    undo.push(() => lock.release());
    const options = { dataDir, cacheDir: join(ROOT, '.cache'), progress: say, onEvent: say };
    const store = await ChaosStore.begin(() => start(options));
    undo.push(() => store.close());
    return store;
  };
  try {
    const redis = await begin(redisDir, startEmbeddedRedis);
    const postgres = await begin(postgresDir, startEmbeddedPostgres);
    return {
      redis,
      postgres,
      noDisk,
      fillDisk: () => fill(filler),
      emptyDisk: () => rm(filler, { force: true }),
      copyRedis: () => copyLiving(aof, copy),
      wipeRedis: () => rm(aof, { recursive: true, force: true }),
      async restoreRedis() {
        await rm(aof, { recursive: true, force: true });
        await cp(copy, aof, { recursive: true });
      },
      async close(keep) {
        await rm(filler, { force: true });
        await Promise.all([redis.close(), postgres.close()]);
        if (keep && noDisk === undefined) {
          await cp(join(redisDir, 'redis'), join(folder, 'redis-kept'), { recursive: true });
        }
        await closeAll();
      },
    };
  } catch (error) {
    await closeAll();
    throw error;
  }
}

/** @returns why it can't be had; undefined once it is there. */
async function mountDisk(folder: string): Promise<string | undefined> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root on Linux can mount one';
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MEGABYTES}m,mode=755`, 'spindle-chaos', folder]);
    return undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Lazily where something still holds it: it goes when that does. */
export async function unmountDisk(folder: string): Promise<void> {
  await run('umount', [folder]).catch(() => run('umount', ['--lazy', folder]));
}

async function fill(path: string): Promise<void> {
  const file = await open(path, 'w');
  try {
    const chunk = Buffer.alloc(1 << 20);
    for (let size = chunk.length; size > 0; ) {
      try {
        await file.write(chunk, 0, size);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
        // The last pages.
        size = Math.floor(size / 2);
      }
      if ((await statfs(path)).bavail === 0) return;
    }
  } finally {
    await file.close();
  }
}

/** Copies a folder that is written to; again where a file went away under the copy. */
async function copyLiving(from: string, to: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    await rm(to, { recursive: true, force: true });
    try {
      await cp(from, to, { recursive: true });
      return;
    } catch (error) {
      if (tries === 5 || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
