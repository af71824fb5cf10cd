/**
 * Starts a PgBouncer (a connection pooler) in transaction mode in front of a Postgres, if it is installed.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { freePort } from '../../src/app/embedded/index.js';
import { storesParent } from './disk.js';
import { until } from './wait.js';

const PROGRAM = 'pgbouncer';
/** User id with which PgBouncer runs, because it refuses to run as root. */
const NOBODY = 65_534;

/** Returns the reason why PgBouncer can't run on this machine, or undefined if it can. */
export const pgbouncerMissing = (): string | undefined =>
  spawnSync(PROGRAM, ['--version']).status === 0 ? undefined : `${PROGRAM} is not installed`;

export interface PgBouncer {
  /** URL of the database through PgBouncer. */
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * @param poolSize number of PgBouncer's connections to Postgres. Clients open more connections to PgBouncer,
 * so their transactions share those to Postgres.
 */
export async function startPgBouncer(databaseUrl: string, poolSize: number): Promise<PgBouncer> {
  const folder = await mkdtemp(join(await storesParent(), 'spindle-pgbouncer-'));
  await chmod(folder, 0o755);
  const url = new URL(databaseUrl);
  const { hostname, port, username, password } = url;
  const usersFile = join(folder, 'users');
  await writeReadable(usersFile, `"${username}" "${decodeURIComponent(password)}"\n`);
  const settings = (listenPort: number): string => `[databases]
* = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = ${usersFile}
pool_mode = transaction
default_pool_size = ${poolSize}
ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout,extra_float_digits
`;
  const settingsFile = join(folder, 'pgbouncer.ini');
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  let child: ChildProcess | undefined;
  await until(async () => {
    // Another process may take the free port before PgBouncer does. PgBouncer then ends, and is started on
    // another port.
    if (child === undefined || child.exitCode !== null) {
      url.port = String(await freePort());
      await writeReadable(settingsFile, settings(Number(url.port)));
      child = spawn(PROGRAM, [settingsFile], { stdio: 'ignore', ...user });
    }
    const sql = postgres(url.href, { max: 1, prepare: false, onnotice: () => {} });
    const answers = await sql`SELECT 1`.then(
      () => true,
      () => false,
    );
    await sql.end();
    return answers && child.exitCode === null;
  }, `${PROGRAM} answers`);
  return {
    url: url.href,
    async stop() {
      const ended = once(child!, 'exit');
      child!.kill('SIGKILL');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function writeReadable(file: string, text: string): Promise<void> {
  await writeFile(file, text);
  await chmod(file, 0o644);
}
