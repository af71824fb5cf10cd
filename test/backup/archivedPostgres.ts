/** An installed Postgres that archives its WAL, with backup and restore by the commands of docs/backup.md. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { accessSync, constants, readFileSync } from 'node:fs';
import { chmod, chown, mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import postgres from 'postgres';
import { freePort } from '../../src/app/embedded/index.js';
import type { EmbeddedStore } from '../../src/app/embedded/store.js';
import { until } from '../support/wait.js';
import { PAGE } from './page.js';

const TOOLS = ['initdb', 'pg_ctl', 'postgres', 'pg_dump', 'pg_restore', 'pg_basebackup'];
const USUAL_FOLDERS = ['18', '17', '16', '15'].map((version) => `/usr/lib/postgresql/${version}/bin`);
/** User id for the server, because Postgres refuses to run as root. */
const NOBODY = 65_534;
const isRoot = process.getuid?.() === 0;
const user = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
const GONE_EVERY_MS = 5;
const WATCH_EVERY_MS = 100;

function programs(): string | undefined {
  const has = (folder: string): boolean =>
    TOOLS.every((name) => {
      try {
        accessSync(join(folder, name), constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
  return [...USUAL_FOLDERS, ...(process.env.PATH ?? '').split(delimiter)].find(has);
}

/** Returns the reason why no such Postgres can run here, or undefined if it can. */
export const archivedPostgresMissing = (): string | undefined =>
  programs() === undefined ? `no folder in PATH has ${TOOLS.join(', ')}` : undefined;

export class ArchivedPostgres {
  readonly url: string;
  readonly #bin: string;
  #pid: number | undefined;

  private constructor(
    private readonly folder: string,
    private readonly port: number,
    private readonly environment: NodeJS.ProcessEnv,
  ) {
    const bin = programs();
    if (bin === undefined) throw new Error(archivedPostgresMissing());
    this.#bin = bin;
    this.url = `postgres://spindle@127.0.0.1:${port}/spindle`;
  }

  /**
   * @param folder an empty folder, which the caller removes
   * @param environment environment variables for all processes of the server
   */
  static async begin(folder: string, environment: NodeJS.ProcessEnv = {}): Promise<ArchivedPostgres> {
    const server = new ArchivedPostgres(folder, await freePort(), environment);
    for (const name of ['', 'archive', 'backup']) {
      await mkdir(join(folder, name), { recursive: true });
      if (isRoot) await chown(join(folder, name), NOBODY, NOBODY);
    }
    await server.#run('initdb -D "$PGDATA" -U spindle --auth trust --no-sync');
    const file = join(server.#data, 'postgresql.auto.conf');
    const settings = `listen_addresses = '127.0.0.1'\nport = ${server.port}\nunix_socket_directories = ''\nmax_connections = 200\n`;
    await writeFile(file, settings + server.#here(PAGE.archiveSettings()));
    await chmod(file, 0o644);
    await server.start();
    await server.#query('CREATE DATABASE spindle');
    await server.#query('CREATE ROLE spindle_backup LOGIN REPLICATION');
    return server;
  }

  get #data(): string {
    return join(this.folder, 'data');
  }

  /** The process id of the server, or undefined while it is down. */
  pid(): number | undefined {
    return this.#pid !== undefined && isAlive(this.#pid) ? this.#pid : undefined;
  }

  async start(): Promise<void> {
    await this.#run('pg_ctl start');
    await this.#isStarted();
  }

  async #isStarted(): Promise<void> {
    const [pid = ''] = (await readFile(join(this.#data, 'postmaster.pid'), 'utf8')).split('\n');
    this.#pid = Number(pid);
    await until(
      () =>
        this.#query('SELECT pg_is_in_recovery() AS recovering').then(
          ([row]) => row?.recovering === false,
          () => false,
        ),
      'Postgres is up',
    );
  }

  /** Kills the server with SIGKILL, as if its machine were lost, or stops it in order. */
  async stop(signal: 'SIGKILL' | 'SIGINT' = 'SIGINT'): Promise<void> {
    const pid = this.pid();
    if (pid === undefined) return;
    process.kill(pid, signal);
    await until(() => !isAlive(pid), 'Postgres has ended', undefined, GONE_EVERY_MS);
    this.#pid = undefined;
  }

  /** Makes a dump, and a base backup with which the archived WAL continues. Both replace earlier ones. */
  async backUp(): Promise<void> {
    await this.#run('rm -rf /backup/base /backup/spindle.dump');
    await this.#run(PAGE.dump());
    await this.#run(PAGE.baseBackup());
  }

  /** Archives the WAL written so far, as `archive_timeout` does. */
  async archive(): Promise<void> {
    const [row] = await this.#query('SELECT pg_walfile_name(pg_switch_wal()) AS file');
    await until(
      async () =>
        (await this.#query(`SELECT last_archived_wal >= '${row!.file}' AS done FROM pg_stat_archiver`))[0]!
          .done === true,
      'the log is in the archive',
    );
  }

  /** Replaces a stopped server with a new one, restored from the base backup and the whole archived WAL. */
  async restoreFromArchive(): Promise<void> {
    await this.#run(PAGE.restoreBaseBackup());
    await this.#isStarted();
  }

  /**
   * Restores the base backup without the archived WAL, so everything written since the base backup is lost.
   */
  async restoreBaseBackup(): Promise<void> {
    await this.#run('rm -rf /archive && mkdir /archive');
    await this.restoreFromArchive();
  }

  /** Replaces the database with the content of the dump. */
  async restoreDump(): Promise<void> {
    await this.#query('DROP DATABASE spindle WITH (FORCE)');
    await this.#query('CREATE DATABASE spindle');
    await this.#run(PAGE.restoreDump());
  }

  /** Replaces the folder names of docs/backup.md with the folders of this server. */
  #here(text: string): string {
    return text.replace(/\/(backup|archive)/g, `${this.folder}/$1`);
  }

  /**
   * Runs a command of docs/backup.md or of a test in a shell.
   * @throws Error with the output
   */
  async #run(command: string): Promise<void> {
    // The output goes to a file, because a started server keeps it open and a pipe would never end.
    const outFile = join(this.folder, 'commands.log');
    const out = await open(outFile, 'a');
    try {
      const child = spawn('bash', ['-euc', this.#here(command)], {
        stdio: ['ignore', out.fd, out.fd],
        cwd: this.folder,
        env: {
          ...this.environment,
          PATH: `${this.#bin}:${process.env.PATH}`,
          LC_ALL: 'C',
          PGDATA: this.#data,
          DATABASE_URL: this.url,
          BACKUP_URL: `postgres://spindle_backup@127.0.0.1:${this.port}/`,
        },
        ...user,
      });
      const [code] = await once(child, 'exit');
      if (code !== 0) throw new Error(`«${command}» ended with ${code}: see ${outFile}`);
    } finally {
      await out.close();
    }
  }

  async #query(text: string): Promise<Record<string, unknown>[]> {
    const sql = postgres(this.url.replace(/spindle$/, 'postgres'), {
      max: 1,
      onnotice: () => {},
      connect_timeout: 5,
    });
    try {
      return [...(await sql.unsafe(text))];
    } finally {
      await sql.end({ timeout: 1 });
    }
  }
}

/**
 * Makes the server a store that is restarted when it dies.
 * @returns a function that starts the server, or uses a server that was started meanwhile
 */
export function supervised(server: ArchivedPostgres): () => Promise<EmbeddedStore> {
  return async () => {
    if (server.pid() === undefined) await server.start();
    let isStopping = false;
    let starting: Promise<void> | undefined;
    const watch = setInterval(() => {
      if (isStopping || starting !== undefined || server.pid() !== undefined) return;
      starting = server
        .start()
        .catch(() => {})
        .finally(() => {
          starting = undefined;
        });
    }, WATCH_EVERY_MS);
    return {
      url: server.url,
      pid: () => server.pid(),
      async stop() {
        isStopping = true;
        clearInterval(watch);
        await starting;
        await server.stop();
      },
    };
  };
}

function isAlive(pid: number): boolean {
  try {
    // A zombie process, which its parent has not collected yet, counts as ended.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
