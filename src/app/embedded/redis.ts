/**
 * Embedded Redis (or Valkey) server on a loopback port, with its append-only file in the data folder. Every
 * acknowledged write is on disk (`appendfsync always`), and nothing is ever evicted.
 */
import { join } from 'node:path';
import { ownFolder } from '../../platform/privateFolder.js';
import { keptPort, newPassword, readOrCreateSecret, writeFileAtomic } from './dataDir.js';
import { endOrphans } from './orphans.js';
import { askRedis } from './redisQuestion.js';
import { findRedisProgram, REDIS_PROGRAM_NAMES, redisEnvironment } from './redisServer.js';
import type { EmbeddedOptions, EmbeddedStore } from './store.js';
import { supervise } from './supervisor.js';

const STOP_SIGNALS = ['SIGTERM'] as const;
const STOP_DEADLINE_MS = 15_000;

/** Options of one server, besides those common to all embedded stores. */
export interface RedisServerOptions {
  /** Folder of the server's data, created if missing. */
  readonly folder: string;
  readonly password: string;
  /** Returns further configuration lines, after the port has been chosen. */
  readonly settings?: () => Promise<string>;
}

/**
 * Starts the server on the data in `<dataDir>/redis`. Resolves when the server has loaded its append-only
 * file and answers. The caller must hold the lock of the data folder. Throws SetupError if no server program
 * can be found or downloaded.
 */
export async function startEmbeddedRedis(options: EmbeddedOptions): Promise<EmbeddedStore> {
  options.progress('Starting Redis …');
  const folder = join(options.dataDir, 'redis');
  return startRedisServer(options, { folder, password: await keptPassword(folder) });
}

/** Returns the password of the servers in a folder, created at their first start. */
export const keptPassword = (folder: string): Promise<string> =>
  readOrCreateSecret(join(folder, 'password'), newPassword);

/** Starts one Redis server, like {@link startEmbeddedRedis}. */
export async function startRedisServer(
  { cacheDir, progress, onEvent }: EmbeddedOptions,
  { folder, password, settings }: RedisServerOptions,
): Promise<EmbeddedStore> {
  const program = await findRedisProgram(cacheDir, progress);
  await ownFolder(folder, 'The folder');
  const configFile = join(folder, 'redis.conf');
  const mark = { programs: REDIS_PROGRAM_NAMES, argument: configFile };
  const stopping = { stopSignals: STOP_SIGNALS, stopDeadlineMs: STOP_DEADLINE_MS, onEvent };

  let port = 0;
  let answered = false;
  const supervisor = await supervise({
    name: 'redis',
    logFile: join(folder, 'redis.log'),
    ...stopping,
    launch: async () => {
      await endOrphans({ mark, ...stopping });
      // Once the URL has been returned, the server's port is fixed. Before that, another port is chosen if a
      // process already listens on the chosen one.
      if (!answered) port = await keptPort(join(folder, 'port'));
      const more = settings === undefined ? '' : await settings();
      await writeFileAtomic(configFile, configuration({ folder, port, password }) + more);
      return { file: program.file, args: [configFile], env: redisEnvironment(program), cwd: folder };
    },
    isReady: async () => {
      const ready = await answersPing(port, password);
      answered ||= ready;
      return ready;
    },
  });
  return {
    url: `redis://:${password}@127.0.0.1:${port}/0`,
    pid: () => supervisor.pid(),
    stop: () => supervisor.stop(),
  };
}

/**
 * Returns the configuration file. It contains the password, because command-line arguments are visible to
 * every user of the machine.
 */
function configuration({
  folder,
  port,
  password,
}: {
  folder: string;
  port: number;
  password: string;
}): string {
  return `# Written anew at each start.
bind 127.0.0.1
port ${port}
protected-mode yes
requirepass ${password}
daemonize no
# The command line stays as it was given: a later start knows a server of this folder by it.
set-proc-title no

dir ${JSON.stringify(folder)}
appendonly yes
appendfsync always
no-appendfsync-on-rewrite no
aof-use-rdb-preamble yes
aof-load-truncated yes
# A spin adds some 330 bytes to the log and 46 to what a rewrite leaves: by the defaults rewrites cost as much as spins.
auto-aof-rewrite-percentage 200
auto-aof-rewrite-min-size 256mb
rdbcompression no
# In a hash with fewer fields Redis searches field by field, and each batch reads and writes its partners and games.
hash-max-listpack-entries 8
save ""
maxmemory-policy noeviction
`;
}

/**
 * Returns whether the embedded server itself answers, which its password proves, and has finished loading.
 */
const answersPing = (port: number, password: string): Promise<boolean> =>
  askRedis(`redis://:${password}@127.0.0.1:${port}`, ['PING']).then(
    (reply) => reply === 'PONG',
    () => false,
  );
