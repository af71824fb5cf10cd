/** What goes wrong, for tests: stores that can be taken away, requests that no client library sends, PAR sheets with one fault each. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import { readConfig } from '../../src/config.js';
import {
  type EmbeddedStore,
  lockDataDir,
  startEmbeddedPostgres,
  startEmbeddedRedis,
} from '../../src/embedded/index.js';
import { findRedisProgram, redisEnvironment } from '../../src/embedded/redisServer.js';
import { type Running, start } from '../../src/main.js';
import { Client, environment, parSheet, ROOT, type TestStores, until } from './service.js';

// Stores that can be taken away --------------------------------------------------------------------------------------

/** One store of a test's own. */
export interface Outage {
  /** Ends the server; it stays away until {@link start}. */
  stop(): Promise<void>;
  /** Starts it again on the same data and port. */
  start(): Promise<void>;
  /** Stops all its processes where they are: connections stay open and nothing is answered. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  /** Ends the server and its children as by kill -9; its supervisor starts it again. */
  kill(): Promise<void>;
  /** The server's process; undefined while it is down. */
  pid(): number | undefined;
}

export interface OwnStores extends Pick<TestStores, 'redisUrl' | 'databaseUrl' | 'drop'> {
  readonly redis: Outage;
  readonly postgres: Outage;
  /** Where both keep their data. */
  readonly dataDir: string;
}

/**
 * A Redis and a Postgres of the test's own.
 * @param prepare makes the data folder ready before anything is in it; gives what undoes that once all has ended.
 */
export async function ownStores(
  prepare: (dataDir: string) => Promise<() => Promise<void>> = async () => async () => {},
): Promise<OwnStores> {
  const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'spindle-faults-')));
  const undo = await prepare(dataDir);
  const lock = await lockDataDir(dataDir);
  const options = { dataDir, cacheDir: join(ROOT, '.cache'), progress: () => {}, onEvent: () => {} };
  const outage = async (begin: () => Promise<EmbeddedStore>): Promise<Outage & { url: string }> => {
    let store = await begin();
    const signal = async (name: NodeJS.Signals): Promise<void> => {
      for (const pid of await family(store.pid()!)) {
        try {
          process.kill(pid, name);
        } catch (error) {
          // A child may have ended by itself meanwhile.
          if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
        }
      }
    };
    return {
      url: store.url,
      stop: () => store.stop(),
      async start() {
        store = await begin();
      },
      freeze: () => signal('SIGSTOP'),
      thaw: () => signal('SIGCONT'),
      kill: () => signal('SIGKILL'),
      pid: () => store.pid(),
    };
  };
  const redis = await outage(() => startEmbeddedRedis(options));
  const postgres = await outage(() => startEmbeddedPostgres(options));
  return {
    redisUrl: redis.url,
    databaseUrl: postgres.url,
    redis,
    postgres,
    dataDir,
    async drop() {
      await Promise.all([redis.stop(), postgres.stop()]);
      await lock.release();
      await undo();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Starts the Redis of {@link ownStores}, stopped before, with other settings. @returns what ends it. */
export async function startRedisWith(
  { dataDir, redisUrl }: OwnStores,
  settings: readonly string[],
): Promise<() => Promise<void>> {
  const program = await findRedisProgram(join(ROOT, '.cache'), () => {});
  const folder = join(dataDir, 'redis');
  const child = spawn(program.file, [join(folder, 'redis.conf'), ...settings], {
    cwd: folder,
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

/** Why {@link smallDisk} can't be used; undefined where it can. */
export function smallDiskMissing(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'only root can mount a small disk';
  const folder = mkdtempSync(join(tmpdir(), 'spindle-mount-'));
  try {
    if (spawnSync('mount', ['-t', 'tmpfs', 'tmpfs', folder]).status !== 0)
      return 'mounting is not allowed here';
    spawnSync('umount', [folder]);
    return undefined;
  } finally {
    rmdirSync(folder);
  }
}

/** Makes a folder a disk of its own, of that size, readable by its owner. @returns what takes it away. */
export async function smallDisk(folder: string, megabytes: number): Promise<() => Promise<void>> {
  await mkdir(folder, { mode: 0o700 });
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', folder]);
  if (mounted.status !== 0) throw new Error(`No disk: ${mounted.stderr}`);
  const quoted = `'${folder}'`;
  // Whatever becomes of the test run, the mount does not outlive it.
  const guard = spawn(
    'sh',
    ['-c', `while kill -0 ${process.pid}; do sleep 1; done; umount --lazy ${quoted}; rm -rf ${quoted}`],
    { detached: true, stdio: 'ignore' },
  );
  guard.unref();
  return async () => {
    guard.kill();
    const unmounted = spawnSync('umount', ['--lazy', folder]);
    if (unmounted.status !== 0) throw new Error(`The disk stays: ${unmounted.stderr}`);
  };
}

/** A process and its children, which Postgres gives groups of their own. */
async function family(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return [pid, ...children.split(' ').filter(Boolean).map(Number)];
}

// A service whose log and metrics are read ---------------------------------------------------------------------------

export interface LoggedService extends Client {
  readonly running: Running;
  /** The log lines so far. */
  readonly lines: readonly Record<string, unknown>[];
  /** The sum of the series that have a name and, among others, a label, such as `spindle_errors_total{code="KS-5004"}`. */
  metric(series: string): Promise<number>;
}

/** The service in this process, with its log kept. */
export async function startLogged(
  stores: Pick<TestStores, 'redisUrl' | 'databaseUrl'>,
  more: NodeJS.ProcessEnv = {},
): Promise<LoggedService> {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const running = await start(readConfig(environment(stores, more)), log, () => {});
  return Object.assign(new Client(`http://127.0.0.1:${running.port}`), {
    running,
    lines,
    async metric(series: string) {
      const text = await (await fetch(`http://127.0.0.1:${running.metricsPort}/metrics`)).text();
      const [name, label = ''] = series.replace('}', '').split('{');
      const isOf = (line: string): boolean =>
        line.startsWith(`${name} `) || (line.startsWith(`${name}{`) && line.includes(label));
      return text
        .split('\n')
        .filter(isOf)
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
  });
}

// The windows of the store's clock -----------------------------------------------------------------------------------

/** The store's clock. */
export interface StoreClock {
  seconds(): Promise<number>;
  /** Resolves when at least so many seconds of the running minute are left. */
  room(seconds: number): Promise<void>;
  close(): void;
}

export function storeClock(redisUrl: string): StoreClock {
  const redis = new Redis(redisUrl, { protocol: 2 });
  const seconds = async (): Promise<number> => Number((await redis.time())[0]);
  return {
    seconds,
    room: (wanted) =>
      until(
        async () => 60 - ((await seconds()) % 60) >= wanted,
        `${wanted} s of the minute are left`,
        wanted * 1000 + 5000,
      ),
    close: () => redis.disconnect(),
  };
}

/** A port that nobody listens on. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

// Requests as bytes --------------------------------------------------------------------------------------------------

export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** Sends bytes on a connection of their own, `Connection: close` among them, and reads until the server hangs up. */
export function raw(
  base: string,
  lines: readonly string[],
  body: string | readonly string[] = '',
  localAddress = '127.0.0.1',
): Promise<RawAnswer> {
  const { hostname, port, host } = new URL(base);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), localAddress });
    let text = '';
    socket.setEncoding('latin1');
    socket.on('error', reject);
    socket.on('data', (chunk: string) => {
      text += chunk;
    });
    socket.on('close', () => {
      const end = text.indexOf('\r\n\r\n');
      if (end < 0) {
        reject(new Error(`The connection was closed after ${JSON.stringify(text)}`));
        return;
      }
      const [statusLine = '', ...fields] = text.slice(0, end).split('\r\n');
      resolve({
        status: Number(statusLine.split(' ')[1]),
        headers: new Map(
          fields.map((field) => [
            field.slice(0, field.indexOf(':')).toLowerCase(),
            field.slice(field.indexOf(':') + 1).trim(),
          ]),
        ),
        body: text.slice(end + 4),
      });
    });
    const [first, ...rest] = lines;
    socket.write([first, `Host: ${host}`, 'Connection: close', ...rest, '', ''].join('\r\n'));
    for (const chunk of typeof body === 'string' ? [body] : body) socket.write(chunk);
  });
}

/** A body in chunks (RFC 9112, 7.1). */
export const chunked = (body: string, size = 1000): string[] => [
  ...Array.from({ length: Math.ceil(body.length / size) }, (_, i) => {
    const part = body.slice(i * size, (i + 1) * size);
    return `${part.length.toString(16)}\r\n${part}\r\n`;
  }),
  '0\r\n\r\n',
];

// PAR sheets with one fault each -------------------------------------------------------------------------------------

// biome-ignore lint/suspicious/noExplicitAny: sheets are broken on purpose
type Sheet = any;

/** What is wrong, how a good sheet (classic-3-reel) is made so, and a path that the faults must name. */
export const PAR_FAULTS: readonly [what: string, path: string, spoil: (sheet: Sheet) => void][] = [
  ['the tier probabilities do not sum to 1', '/tiers', (s) => (s.tiers[0].probability = 0.5)],
  [
    'a tier is not the sum of its combinations',
    '/tiers/1/probability',
    (s) => (s.tiers[1].probability += 0.001),
  ],
  ['the RTP is not the computed one', '/certifiedRtp', (s) => (s.certifiedRtp = 0.95)],
  [
    'a symbol is not defined',
    '/combinations/0/reelSymbols/0',
    (s) => (s.combinations[0].reelSymbols[0] = 'Ghost'),
  ],
  ['a tier is not defined', '/combinations/0/tierId', (s) => s.tiers.shift()],
  ['the stops are not one for each reel', '/virtualStopsPerReel', (s) => s.virtualStopsPerReel.pop()],
  [
    'a combination has a reel too few',
    '/combinations/0/reelSymbols',
    (s) => s.combinations[0].reelSymbols.pop(),
  ],
  ['a reel has fewer stops than symbols', '/virtualStopsPerReel/0', (s) => (s.virtualStopsPerReel[0] = 1)],
  ['there are 11 reels', '/numReels', (s) => (s.numReels = 11)],
  ['a probability is above 1', '/tiers/0/probability', (s) => (s.tiers[0].probability = 1.1)],
  [
    'a multiplier is negative',
    '/combinations/0/payMultiplier',
    (s) => (s.combinations[0].payMultiplier = -1),
  ],
  ['a tier id is above 6', '/tiers/6/tierId', (s) => (s.tiers[6].tierId = 7)],
  ['a tier is there twice', '/tiers/2/tierId', (s) => (s.tiers[2].tierId = 1)],
  ['tier 0 is missing', '/tiers', (s) => s.tiers.shift()],
  ['tier 0 pays', '/tiers/0/payMultiplier', (s) => (s.tiers[0].payMultiplier = 1)],
  [
    'a winning combination is in tier 0',
    '/combinations/0/tierId',
    (s) => (s.combinations[0].payMultiplier = 1),
  ],
  ['a symbol is there twice', '/symbols/1/name', (s) => (s.symbols[1].name = s.symbols[0].name)],
  [
    'the comboString is not its displays',
    '/combinations/0/comboString',
    (s) => (s.combinations[0].comboString = 'X'),
  ],
  ['the denomination is 0', '/denominationUsd', (s) => (s.denominationUsd = 0)],
  ['the denomination has 7 decimals', '/denominationUsd', (s) => (s.denominationUsd = 0.2500001)],
  [
    'a payout is finer than a micro-USD',
    '/combinations/0/payMultiplier',
    (s) => (s.combinations[0].payMultiplier = 1e-7),
  ],
  ['a required field is missing', '/gameTitle', (s) => delete s.gameTitle],
  ['a field has the wrong type', '/manufacturer', (s) => (s.manufacturer = 7)],
];

/** The sheet of a fault. */
export function spoiled(spoil: (sheet: Sheet) => void): Sheet {
  const sheet = parSheet('classic-3-reel');
  spoil(sheet);
  return sheet;
}
