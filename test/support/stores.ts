/**
 * Starts a real Redis and a real Postgres in a separate folder, for tests, chaos, monitoring and
 * measurements.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import {
  freePort,
  lockDataDir,
  startEmbeddedPostgres,
  startEmbeddedRedis,
} from '../../src/app/embedded/index.js';
import { setpriv } from '../../src/app/embedded/postgresUser.js';
import { findRedisProgram, redisEnvironment } from '../../src/app/embedded/redisServer.js';
import type { EmbeddedStore } from '../../src/app/embedded/store.js';
import { migrate } from '../../src/postgres/migrate.js';
import { Cleanup } from './cleanup.js';
import { fillDisk, smallDisk, storesParent } from './disk.js';
import { ROOT } from './root.js';
import { StoreServer } from './storeServer.js';
import { until } from './wait.js';

const CACHE = join(ROOT, '.cache');
const AOF_FOLDER = 'appendonlydir';

export interface StoreUrls {
  readonly redisUrl: string;
  readonly databaseUrl: string;
}

/** Stores that a test may use until it drops them. */
export interface TestStores extends StoreUrls {
  drop(): Promise<void>;
}

/** Stores of a single test run, which may cause any fault in them. */
export interface OwnStores extends TestStores {
  readonly redis: StoreServer;
  readonly postgres: StoreServer;
  /** The folder with the data of both stores. */
  readonly dataDir: string;
  /** The folder with the data of Redis. If Redis has a separate disk, this folder is the disk. */
  readonly redisFolder: string;
  /** Fills the free space of the small Redis disk. {@link emptyDisk} frees it again. */
  fillDisk(): Promise<void>;
  emptyDisk(): Promise<void>;
  /** Saves a copy of the present append-only files of Redis. */
  copyRedis(): Promise<void>;
  /** Removes the append-only files of a stopped Redis. */
  wipeRedis(): Promise<void>;
  /** Replaces the append-only files of a stopped Redis with the saved copy. */
  restoreRedis(): Promise<void>;
}

export interface StoreOptions {
  /**
   * Folder for the stores, as an absolute real path, which the caller must remove. By default a temporary
   * folder is used, which {@link OwnStores.drop} removes.
   */
  readonly folder?: string;
  /** Size in MB of a memory disk that only Redis uses. */
  readonly redisDiskMegabytes?: number;
  /** Starts another Postgres instead of the embedded one. */
  readonly startPostgres?: () => Promise<EmbeddedStore>;
  /** Called with the progress of the start. */
  readonly onProgress?: (line: string) => void;
  /** Called when a server died, runs again or had to be killed. */
  readonly onEvent?: (line: string) => void;
}

/** Starts both stores. They are empty if the folder is empty. */
export async function ownStores(options: StoreOptions = {}): Promise<OwnStores> {
  const { redisDiskMegabytes, onProgress = () => {}, onEvent = () => {} } = options;
  const undo = new Cleanup();
  const dataDir =
    options.folder ?? (await realpath(await mkdtemp(join(await storesParent(), 'spindle-stores-'))));
  if (options.folder === undefined) {
    undo.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
    // If this process is root, Postgres runs as another user, who must be able to enter the folder.
    await chmod(dataDir, 0o755);
  }
  const template = process.env[STORES_TEMPLATE];
  if (template !== undefined && options.folder === undefined && options.startPostgres === undefined) {
    await copyTemplate(template, dataDir);
  }
  const redisFolder = join(dataDir, 'redis');
  const aof = join(redisFolder, AOF_FOLDER);
  const copy = join(dataDir, 'redis-copy');
  const filler = join(redisFolder, 'filler');
  try {
    if (redisDiskMegabytes !== undefined) undo.add(await smallDisk(redisFolder, redisDiskMegabytes));
    const lock = await lockDataDir(dataDir);
    undo.add(() => lock.release());
    const embedded = { dataDir, cacheDir: CACHE, progress: onProgress, onEvent };
    const redis = await StoreServer.begin(() => startEmbeddedRedis(embedded));
    undo.add(() => redis.close());
    const postgres = await StoreServer.begin(
      options.startPostgres ?? (() => startEmbeddedPostgres(embedded)),
    );
    undo.add(() => postgres.close());
    return {
      redis,
      postgres,
      redisUrl: redis.url,
      databaseUrl: postgres.url,
      dataDir,
      redisFolder,
      fillDisk: () => fillDisk(filler),
      emptyDisk: () => rm(filler, { force: true }),
      copyRedis: () => copyLiving(aof, copy),
      wipeRedis: () => rm(aof, { recursive: true, force: true }),
      async restoreRedis() {
        await rm(aof, { recursive: true, force: true });
        await cp(copy, aof, { recursive: true });
      },
      drop: () => undo.run(),
    };
  } catch (error) {
    await undo.run();
    throw error;
  }
}

/**
 * Name of the environment variable that has the folder of {@link makeTemplate} as its value in all processes
 * that this process starts.
 */
const STORES_TEMPLATE = 'SPINDLE_TEST_STORES_TEMPLATE';
/** A database with the schema and no rows. Copying it is faster than running all migrations. */
export const TEMPLATE_DATABASE = 'migrated';

/**
 * Creates a folder of stopped stores with the schema and no rows. All later {@link ownStores} start as copies
 * of it.
 */
export async function makeTemplate(folder: string): Promise<void> {
  const stores = await ownStores({ folder });
  await migrate(stores.databaseUrl, join(ROOT, 'src', 'postgres', 'migrations'), () => {});
  const url = new URL(stores.databaseUrl);
  url.pathname = '/postgres';
  const server = postgres(url.href, { max: 1, onnotice: () => {} });
  const others = () => server`
    SELECT 1 FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`;
  await until(async () => (await others()).length === 0, 'the connections of the migrations are closed');
  await server.unsafe(`CREATE DATABASE ${TEMPLATE_DATABASE} TEMPLATE spindle`);
  await server.end();
  await stores.drop();
  process.env[STORES_TEMPLATE] = folder;
}

/**
 * Copies the data folder and the password file of Postgres from the template. The copies keep the owners of
 * the files. The port is not copied, because each server needs a different one.
 */
async function copyTemplate(template: string, dataDir: string): Promise<void> {
  const folder = join(dataDir, 'postgres');
  await mkdir(folder, { recursive: true });
  const parts = ['data', 'password'].map((name) => join(template, 'postgres', name));
  await promisify(execFile)('cp', ['-a', ...parts, folder]);
}

/**
 * Starts the stopped Redis of {@link ownStores} with other settings.
 * @returns a function that ends this Redis
 */
export async function startRedisWith(
  { redisFolder, redisUrl }: OwnStores,
  settings: readonly string[],
): Promise<() => Promise<void>> {
  const program = await findRedisProgram(CACHE, () => {});
  const child = spawn(program.file, [join(redisFolder, 'redis.conf'), ...settings], {
    cwd: redisFolder,
    env: redisEnvironment(program),
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const redis = new Redis(redisUrl, { protocol: 2, retryStrategy: () => 20, maxRetriesPerRequest: null });
  redis.on('error', () => {});
  await redis.ping();
  redis.disconnect();
  return async () => {
    child.kill();
    await ended;
  };
}

/**
 * Starts the stopped Postgres of {@link ownStores} without some settings on its command line, so that the
 * values of `ALTER SYSTEM` apply.
 * @returns a function that ends this Postgres
 */
export async function startPostgresWithout(
  { dataDir, databaseUrl }: OwnStores,
  settings: readonly string[],
): Promise<() => Promise<void>> {
  const data = join(dataDir, 'postgres', 'data');
  const [program, words] = await commandLineOf(data);
  const args = words.flatMap((word, i) => {
    const ofOption = word === '-c' ? words[i + 1]! : word;
    return settings.some((name) => ofOption.startsWith(`${name}=`)) ? [] : [word];
  });
  const end = await runPostgres(data, program, args);
  await postgresAnswers(databaseUrl);
  return end;
}

/**
 * Starts a hot standby with a copy of the data of {@link ownStores}, whose Postgres is stopped for the copy.
 * The standby follows nobody.
 * @returns its URL, and a function that ends it
 */
export async function startStandby(stores: OwnStores): Promise<{ url: string; end(): Promise<void> }> {
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const [row] = await sql<[{ data_directory: string }]>`SHOW data_directory`;
  await sql.end();
  const data = row.data_directory;
  const copy = `${data}-standby`;
  const [program, words] = await commandLineOf(data);
  await stores.postgres.stop();
  await rm(copy, { recursive: true, force: true });
  await promisify(execFile)('cp', ['-a', data, copy]);
  await stores.postgres.start();
  await rm(join(copy, 'postmaster.pid'), { force: true });
  await writeFile(join(copy, 'standby.signal'), '');
  const url = new URL(stores.databaseUrl);
  url.port = String(await freePort());
  // The later of two equal options counts.
  const end = await runPostgres(copy, program, [...words, '-D', copy, '-c', `port=${url.port}`]);
  await postgresAnswers(url.href);
  return { url: url.href, end };
}

/** Returns the program and the arguments with which the Postgres of a data folder was started. */
async function commandLineOf(data: string): Promise<[program: string, args: string[]]> {
  const [program = '', ...quoted] = (await readFile(join(data, 'postmaster.opts'), 'utf8')).trim().split(' ');
  return [program, quoted.map((word) => word.replace(/^"|"$/g, ''))];
}

/** Starts a Postgres. Returns a function that ends it. */
async function runPostgres(
  data: string,
  program: string,
  args: readonly string[],
): Promise<() => Promise<void>> {
  const { uid, gid } = await stat(data);
  // If this process is root, other users may be unable to enter the project's folder. So root starts the
  // program, which then changes to the other user.
  const isRoot = process.getuid?.() === 0;
  const [file = program, ...wrapping] = isRoot ? [...setpriv(uid, gid), program] : [program];
  const child = spawn(file, [...wrapping, ...args], {
    cwd: '/',
    env: { PATH: process.env.PATH, LC_ALL: 'C' },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  return async () => {
    child.kill('SIGINT');
    await ended;
  };
}

/**
 * Resolves once the Postgres at a URL responds. A killed Postgres refuses connections until it has recovered.
 */
export async function postgresAnswers(databaseUrl: string): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  const answers = () =>
    sql`SELECT 1`.then(
      () => true,
      () => false,
    );
  await until(answers, 'Postgres answers');
  await sql.end();
}

/** Copies a folder while programs write to it. Repeats the copy if a file disappears meanwhile. */
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
