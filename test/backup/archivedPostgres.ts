/** A Postgres of the system that archives its log, with the system's tools for backups. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants } from 'node:fs';
import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { freePort } from '../../src/embedded/index.js';
import { until } from '../support/wait.js';

const run = promisify(execFile);
const TOOLS = ['initdb', 'postgres', 'pg_dump', 'pg_restore', 'pg_basebackup'];
const USUAL_FOLDERS = ['18', '17', '16', '15'].map((version) => `/usr/lib/postgresql/${version}/bin`);
/** Postgres refuses to run as root. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};

/** The folder of the programs. @throws where no folder has all of them. */
function programs(): string {
  const has = (folder: string): boolean =>
    TOOLS.every((name) => {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
  const found = [...(process.env.PATH ?? '').split(delimiter), ...USUAL_FOLDERS].find(has);
  if (found === undefined) throw new Error(`The drill needs one folder in PATH with ${TOOLS.join(', ')}`);
  return found;
}

export class ArchivedPostgres {
  readonly url: string;
  readonly #bin = programs();
  readonly #folder: string;
  readonly #port: number;
  #child: ChildProcess | undefined;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
    this.url = `postgres://spindle@127.0.0.1:${port}/spindle`;
  }

  /** @param folder empty; removed by the caller */
  static async begin(folder: string): Promise<ArchivedPostgres> {
    const server = new ArchivedPostgres(folder, await freePort());
    for (const name of ['', 'archive', 'backup']) {
      await mkdir(join(folder, name), { recursive: true });
      if (isRoot) await chown(join(folder, name), NOBODY, NOBODY);
    }
    await server.#tool('initdb', '-D', server.#data, '-U', 'spindle', '--auth', 'trust', '--no-sync');
    await server.#configure(`archive_mode = on\narchive_command = 'cp %p ${join(folder, 'archive')}/%f'\n`);
    await server.start();
    const admin = postgres(server.url.replace(/spindle$/, 'postgres'), { max: 1, onnotice: () => {} });
    await admin`CREATE DATABASE spindle`;
    await admin.end();
    return server;
  }

  get #data(): string {
    return join(this.#folder, 'data');
  }

  async start(): Promise<void> {
    this.#child = spawn(join(this.#bin, 'postgres'), ['-D', this.#data], {
      stdio: 'ignore',
      cwd: this.#folder,
      ...user,
    });
    await until(async () => {
      const sql = postgres(this.url.replace(/spindle$/, 'postgres'), { max: 1, onnotice: () => {} });
      const isUp = await sql`SELECT pg_is_in_recovery() AS recovering`.then(
        ([row]) => row!.recovering === false,
        () => false,
      );
      await sql.end();
      return isUp;
    }, 'Postgres is up');
  }

  /** SIGKILL, as where its machine is lost; or an orderly stop. */
  async stop(signal: 'SIGKILL' | 'SIGINT' = 'SIGINT'): Promise<void> {
    if (this.#child === undefined) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill(signal);
    await ended;
    this.#child = undefined;
  }

  /** `pg_dump`, and `pg_basebackup` for the archive to go on from. */
  async backUp(): Promise<void> {
    await this.#tool(
      'pg_dump',
      '--format',
      'custom',
      '--file',
      join(this.#folder, 'backup', 'dump'),
      this.url,
    );
    await this.#tool(
      'pg_basebackup',
      '-D',
      join(this.#folder, 'backup', 'base'),
      '-d',
      this.url,
      '--checkpoint',
      'fast',
      '-X',
      'stream',
    );
  }

  /** The log so far goes to the archive, as `archive_timeout` sees to. */
  async archive(): Promise<void> {
    const sql = postgres(this.url, { max: 1, onnotice: () => {} });
    const [row] = await sql`SELECT pg_walfile_name(pg_switch_wal()) AS file`;
    await until(
      async () =>
        (await sql`SELECT last_archived_wal >= ${row!.file} AS done FROM pg_stat_archiver`)[0]!.done === true,
      'the log is in the archive',
    );
    await sql.end();
  }

  /** A new server from the base backup and all that is in the archive. */
  async restoreFromArchive(): Promise<void> {
    await rm(this.#data, { recursive: true, force: true });
    await run('cp', ['-a', join(this.#folder, 'backup', 'base'), this.#data]);
    await this.#configure(`restore_command = 'cp ${join(this.#folder, 'archive')}/%f %p'\n`);
    await writeFile(join(this.#data, 'recovery.signal'), '');
    if (isRoot) await chown(join(this.#data, 'recovery.signal'), NOBODY, NOBODY);
    await this.start();
  }

  /** The database as the dump has it, in the place of what is there. */
  async restoreDump(): Promise<void> {
    const admin = postgres(this.url.replace(/spindle$/, 'postgres'), { max: 1, onnotice: () => {} });
    await admin`DROP DATABASE spindle WITH (FORCE)`;
    await admin`CREATE DATABASE spindle`;
    await admin.end();
    await this.#tool(
      'pg_restore',
      '--dbname',
      this.url,
      '--exit-on-error',
      join(this.#folder, 'backup', 'dump'),
    );
  }

  async #configure(more: string): Promise<void> {
    const file = join(this.#data, 'postgresql.auto.conf');
    await writeFile(
      file,
      `listen_addresses = '127.0.0.1'\nport = ${this.#port}\nunix_socket_directories = ''\n${more}`,
    );
    await chmod(file, 0o644);
  }

  async #tool(name: string, ...args: string[]): Promise<void> {
    await run(join(this.#bin, name), args, { cwd: this.#folder, ...user });
  }
}
