/**
 * Tests the embedded stores with real servers in folders of their own. Tests with killed owners, other users
 * or closed folders run the compiled code in a separate process. Run `npx tsc -p tsconfig.build.json` first.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { keptPort } from '../../../src/app/embedded/dataDir.js';
import {
  type EmbeddedStore,
  lockDataDir,
  readOrCreateSecret,
  SetupError,
  startEmbeddedPostgres,
  startEmbeddedRedis,
} from '../../../src/app/embedded/index.js';
import { supervise } from '../../../src/app/embedded/supervisor.js';
import { killDeathWatches } from '../../support/deathWatches.js';
import {
  commandsNaming,
  copyProject,
  isAlive,
  NOBODY,
  nobodyRunsNode,
  PROJECT,
  uidOf,
  until,
} from './processes.js';

const CACHE = join(PROJECT, '.cache');
const BUILT = 'dist/src/app/embedded/index.js';
const isRoot = process.getuid?.() === 0;
/** User id without a user name. */
const NAMELESS = 54_321;
const isLinux = process.platform === 'linux';
const hasSetpriv = isLinux && spawnSync('setpriv', ['--version']).status === 0;

/**
 * Script of an owner process. It starts both stores, prints their addresses, and then waits to be killed or
 * for the end of its input.
 */
const OWNER = `
  const { lockDataDir, startEmbeddedRedis, startEmbeddedPostgres } = await import(process.argv[1]);
  const [dataDir, cacheDir] = process.argv.slice(2);
  const lock = await lockDataDir(dataDir);
  const options = { dataDir: lock.dataDir, cacheDir, progress() {}, onEvent() {} };
  const stores = await Promise.all([startEmbeddedRedis(options), startEmbeddedPostgres(options)]);
  console.log(JSON.stringify(stores.map((store) => ({ url: store.url, pid: store.pid() }))));
  process.stdin.on('data', () => { throw new Error('asked to crash'); });
  process.stdin.on('end', async () => {
    await Promise.all(stores.map((store) => store.stop()));
    await lock.release();
  });
`;

let base: string;
let events: string[];
const opened: { stop(): Promise<void> }[] = [];
const children: ChildProcess[] = [];

beforeAll(async () => {
  if (!existsSync(join(PROJECT, BUILT))) {
    throw new Error('this test needs the build: npx tsc -p tsconfig.build.json');
  }
  // Other users must be able to enter this folder. Each test sets the modes of the folders inside it.
  base = await realpath(await mkdtemp(join(tmpdir(), 'spindle-embedded-')));
  await chmod(base, 0o755);
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.stop()));
  for (const child of children.splice(0)) child.kill('SIGKILL');
});

afterAll(async () => {
  const left = await commandsNaming(base);
  await rm(base, { recursive: true, force: true });
  expect(left).toEqual([]);
});

interface Stores {
  redis: EmbeddedStore;
  pg: EmbeddedStore;
}

async function startBoth(dataDir: string): Promise<Stores> {
  await mkdir(dataDir, { recursive: true });
  events = [];
  const options = {
    dataDir,
    cacheDir: CACHE,
    progress: () => {},
    onEvent: (line: string) => events.push(line),
  };
  const [redis, pg] = await Promise.all([startRedis(options), startPostgres(options)]);
  return { redis, pg };
}

async function startRedis(options: Parameters<typeof startEmbeddedRedis>[0]): Promise<EmbeddedStore> {
  const store = await startEmbeddedRedis(options);
  opened.push(store);
  return store;
}

async function startPostgres(options: Parameters<typeof startEmbeddedPostgres>[0]): Promise<EmbeddedStore> {
  const store = await startEmbeddedPostgres(options);
  opened.push(store);
  return store;
}

async function stopBoth({ redis, pg }: Stores): Promise<void> {
  await Promise.all([redis.stop(), pg.stop()]);
}

async function withRedis<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on('error', () => {});
  try {
    await client.connect();
    return await use(client);
  } finally {
    client.disconnect();
  }
}

async function withPostgres<T>(url: string, use: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => {} });
  try {
    return await use(sql);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function write({ redis, pg }: Reachable): Promise<void> {
  await withRedis(redis.url, (client) => client.set('kept', 'yes'));
  await withPostgres(pg.url, async (sql) => {
    await sql`create table kept (word text)`;
    await sql`insert into kept values ('yes')`;
  });
}

async function read({ redis, pg }: Reachable): Promise<unknown[]> {
  return [
    await withRedis(redis.url, (client) => client.get('kept')),
    await withPostgres(pg.url, async (sql) => (await sql`select word from kept`)[0]?.word),
  ];
}

type Reachable = { redis: { url: string }; pg: { url: string } };

interface Owner {
  child: ChildProcess;
  redis: { url: string; pid: number };
  pg: { url: string; pid: number };
}

/** Starts both stores from a separate process. */
async function startOwner(setup: {
  project?: string;
  dataDir: string;
  cacheDir?: string;
  uid?: number;
  env?: NodeJS.ProcessEnv;
}): Promise<Owner> {
  const { project = PROJECT, dataDir, cacheDir = CACHE, uid, env = process.env } = setup;
  const module = pathToFileURL(join(project, BUILT)).href;
  const child = spawn(process.execPath, ['--input-type=module', '-e', OWNER, module, dataDir, cacheDir], {
    cwd: '/',
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  });
  children.push(child);
  let complaint = '';
  child.stderr?.on('data', (text) => {
    complaint += text;
  });
  for await (const line of createInterface({ input: child.stdout! })) {
    const [redis, pg] = JSON.parse(line);
    return { child, redis, pg };
  }
  throw new Error(`the owner ended: ${complaint}`);
}

async function endOwner({ child }: Owner): Promise<void> {
  const ended = once(child, 'exit');
  child.stdin?.end();
  expect(await ended).toEqual([0, null]);
}

describe('a pair of embedded stores', () => {
  test('keeps data, ports and passwords of the embedded stores across starts, and leaves no process running', async () => {
    const dataDir = join(base, 'with a space');
    const first = await startBoth(dataDir);
    await write(first);
    const pids = [first.redis.pid()!, first.pg.pid()!];
    await stopBoth(first);
    expect(pids.map(isAlive)).toEqual([false, false]);
    expect([first.redis.pid(), first.pg.pid()]).toEqual([undefined, undefined]);

    const second = await startBoth(dataDir);
    expect(await read(second)).toEqual(['yes', 'yes']);
    expect([second.redis.url, second.pg.url]).toEqual([first.redis.url, first.pg.url]);
    await stopBoth(second);
    expect(events).toEqual([]);
    expect(await commandsNaming(dataDir)).toEqual([]);
  });

  test('embedded Redis syncs each answered change to disk and evicts nothing, and no password is visible', async () => {
    const dataDir = join(base, 'settings');
    const { redis, pg } = await startBoth(dataDir);
    const redisSettings = await withRedis(redis.url, async (client) => {
      const names = [
        'appendonly',
        'appendfsync',
        'no-appendfsync-on-rewrite',
        'maxmemory-policy',
        'save',
        'bind',
      ];
      const pairs = await Promise.all(names.map((name) => client.config('GET', name)));
      return Object.fromEntries(pairs as [string, string][]);
    });
    expect(redisSettings).toEqual({
      appendonly: 'yes',
      appendfsync: 'always',
      'no-appendfsync-on-rewrite': 'no',
      'maxmemory-policy': 'noeviction',
      save: '',
      bind: '127.0.0.1',
    });
    const names = [
      'fsync',
      'synchronous_commit',
      'full_page_writes',
      'data_checksums',
      'server_encoding',
      'jit',
    ];
    const rows = await withPostgres(
      pg.url,
      (sql) => sql`select name, setting from pg_settings where name in ${sql(names)}`,
    );
    expect(Object.fromEntries(rows.map((row) => [row.name, row.setting]))).toEqual({
      fsync: 'on',
      synchronous_commit: 'on',
      full_page_writes: 'on',
      data_checksums: 'on',
      server_encoding: 'UTF8',
      jit: 'off',
    });

    const commands = (await commandsNaming(dataDir)).join('\n');
    for (const { url } of [redis, pg]) {
      const { password } = new URL(url);
      expect(password).toMatch(/^[0-9a-f]{48}$/);
      expect(commands).not.toContain(password);
    }
    const bare = `redis://127.0.0.1:${new URL(redis.url).port}/0`;
    await expect(withRedis(bare, (client) => client.set('a', 'b'))).rejects.toThrow();
    const wrong = pg.url.replace(new URL(pg.url).password, 'wrong');
    await expect(withPostgres(wrong, (sql) => sql`select 1`)).rejects.toThrow(/password/);
    for (const file of ['redis/redis.conf', 'redis/password', 'postgres/password']) {
      expect((await stat(join(dataDir, file))).mode & 0o777).toBe(0o600);
    }
  });

  test('restarts each embedded store after SIGKILL on the same URL with its data', async () => {
    const stores = await startBoth(join(base, 'killed'));
    await write(stores);
    for (const [name, store] of [
      ['redis', stores.redis],
      ['postgres', stores.pg],
    ] as const) {
      const killed = store.pid()!;
      process.kill(killed, 'SIGKILL');
      await until(`${name} is back`, () =>
        events.some((line) => line.startsWith(`${name} is running again after`)),
      );
      expect(store.pid()).not.toBe(killed);
      expect(events).toContainEqual(
        expect.stringMatching(`^${name} ended unexpectedly \\(signal SIGKILL\\)`),
      );
    }
    expect(await read(stores)).toEqual(['yes', 'yes']);
  });

  test('does not restart an embedded store that is stopped between its death and its restart', async () => {
    const dataDir = join(base, 'stopped-while-down');
    const stores = await startBoth(dataDir);
    for (const store of [stores.redis, stores.pg]) {
      const dead = store.pid()!;
      process.kill(dead, 'SIGKILL');
      await until('the death is noticed', () => store.pid() !== dead);
    }
    await stopBoth(stores);
    // The session processes of a killed Postgres end on their own once they notice its death.
    await until('nothing is left', async () => (await commandsNaming(dataDir)).length === 0);
  });

  test('moves an embedded store to another port if a stranger listens on its last port', async () => {
    const dataDir = join(base, 'port-taken');
    const first = await startBoth(dataDir);
    await write(first);
    await stopBoth(first);
    const takers = [first.redis, first.pg].map(({ url }) => {
      const server = createServer((socket) => socket.destroy());
      server.listen(Number(new URL(url).port), '127.0.0.1');
      return server;
    });
    await Promise.all(takers.map((server) => once(server, 'listening')));
    try {
      const second = await startBoth(dataDir);
      expect(new URL(second.redis.url).port).not.toBe(new URL(first.redis.url).port);
      expect(new URL(second.pg.url).port).not.toBe(new URL(first.pg.url).port);
      expect(await read(second)).toEqual(['yes', 'yes']);
    } finally {
      for (const server of takers) server.close();
    }
  });
});

describe('leftovers of an earlier start', () => {
  test('ends and replaces embedded servers that survived the SIGKILL of their owner and of their watchdogs', async () => {
    const dataDir = join(base, 'orphans');
    const owner = await startOwner({ dataDir });
    await write(owner);
    expect(await killDeathWatches(owner.child.pid!)).toBe(2);
    owner.child.kill('SIGKILL');
    await once(owner.child, 'exit');
    expect([isAlive(owner.redis.pid), isAlive(owner.pg.pid)]).toEqual([true, true]);

    const stores = await startBoth(dataDir);
    expect(events).toHaveLength(2);
    expect(await read(stores)).toEqual(['yes', 'yes']);
    expect([stores.redis.url, stores.pg.url]).toEqual([owner.redis.url, owner.pg.url]);
    expect([stores.redis.pid(), stores.pg.pid()]).not.toEqual([owner.redis.pid, owner.pg.pid]);
  });

  test('restarts the embedded stores from their files alone after every process got SIGKILL', async () => {
    const dataDir = join(base, 'all-killed');
    const owner = await startOwner({ dataDir });
    await write(owner);
    owner.child.kill('SIGKILL');
    await once(owner.child, 'exit');
    for (const pid of [owner.redis.pid, owner.pg.pid]) process.kill(pid, 'SIGKILL');

    const stores = await startBoth(dataDir);
    expect(await read(stores)).toEqual(['yes', 'yes']);
    expect([stores.redis.url, stores.pg.url]).toEqual([owner.redis.url, owner.pg.url]);
  });

  test('ends the embedded stores when the process that owns them dies of an error', async () => {
    const dataDir = join(base, 'crashed');
    const owner = await startOwner({ dataDir });
    owner.child.stdin?.write('crash');
    await once(owner.child, 'exit');
    await until('the stores end', async () => (await commandsNaming(dataDir)).length === 0);
  });

  test('ignores a stale pid that belongs to an unrelated process, and does not end that process', async () => {
    const dataDir = join(base, 'stale-pid');
    const data = join(dataDir, 'postgres/data');
    const first = await startBoth(dataDir);
    await write(first);
    const pidFile = await readFile(join(data, 'postmaster.pid'), 'utf8');
    await stopBoth(first);

    const { uid, gid } = await stat(data);
    // The unrelated process runs as the same user as the server, with our paths in its command line, like an
    // editor or a backup.
    const stranger = spawn('/bin/sh', ['-c', 'read -r line', 'sh', join(dataDir, 'redis/redis.conf'), data], {
      cwd: '/',
      stdio: ['pipe', 'ignore', 'ignore'],
      ...(isRoot ? { uid, gid } : {}),
    });
    children.push(stranger);
    await once(stranger, 'spawn');
    await writeFile(join(data, 'postmaster.pid'), pidFile.replace(/^\d+/, String(stranger.pid)), {
      mode: 0o600,
    });
    await chown(join(data, 'postmaster.pid'), uid, gid);
    await writeFile(join(dataDir, 'redis/redis.pid'), String(stranger.pid));

    const second = await startBoth(dataDir);
    expect(await read(second)).toEqual(['yes', 'yes']);
    expect(events).toEqual([]);
    expect([stranger.exitCode, stranger.signalCode]).toEqual([null, null]);
    stranger.kill('SIGKILL');
    await once(stranger, 'exit');
  });

  test('recreates a data folder whose creation was interrupted by a kill', async () => {
    const dataDir = join(base, 'half-made');
    await mkdir(join(dataDir, 'postgres/new-0123456789ab/data'), { recursive: true });
    await writeFile(join(dataDir, 'postgres/new-0123456789ab/data/PG_VERSION'), '18\n');
    const stores = await startBoth(dataDir);
    await write(stores);
    expect((await readdir(join(dataDir, 'postgres'))).sort()).toEqual([
      'data',
      'password',
      'port',
      'postgres.log',
    ]);
  });
});

describe('users and closed folders', () => {
  test.skipIf(!isRoot || !hasSetpriv)(
    'root starts the embedded stores from a project and data folder closed to all other users',
    async () => {
      const closed = join(base, 'closed');
      await mkdir(closed, { mode: 0o700 });
      await copyProject(closed);
      const owner = await startOwner({ project: closed, dataDir: join(closed, '.data') });
      await write(owner);
      expect(await read(owner)).toEqual(['yes', 'yes']);
      expect(await uidOf(owner.pg.pid)).not.toBe(0);
      await endOwner(owner);
      expect([owner.redis.pid, owner.pg.pid].map(isAlive)).toEqual([false, false]);
    },
  );

  test.skipIf(!isRoot || !isLinux)(
    'root without setpriv starts the embedded stores from a closed project if other users can enter the data folder',
    async () => {
      const closed = join(base, 'closed-project');
      await mkdir(closed, { mode: 0o700 });
      await copyProject(closed);
      const env = { ...process.env, PATH: join(base, 'no-programs') };
      const owner = await startOwner({ project: closed, dataDir: join(base, 'open-data'), env });
      await write(owner);
      expect(await uidOf(owner.pg.pid)).not.toBe(0);
      await endOwner(owner);

      const hopeless = startOwner({ project: closed, dataDir: join(closed, '.data'), env });
      await expect(hopeless).rejects.toThrow(
        /Postgres can't run as root, and user \d+ can't enter .*closed-project/,
      );
    },
  );

  // This test is also skipped if other users can't run this Node binary, for example below /root.
  test.skipIf(!isRoot || !isLinux || !nobodyRunsNode())(
    'an ordinary user starts the stores, root continues with their data, and a user without a name gets an error',
    async () => {
      const home = join(base, 'home');
      await mkdir(home, { mode: 0o700 });
      await copyProject(home);
      for (const name of existsSync(CACHE) ? (await readdir(CACHE)).filter((each) => /redis/.test(each)) : [])
        await cp(join(CACHE, name), join(home, '.cache', name), { recursive: true, verbatimSymlinks: true });
      spawnSync('chown', ['-R', `${NOBODY}:${NOBODY}`, home]);
      const setup = { project: home, dataDir: join(home, '.data'), cacheDir: join(home, '.cache') };
      const owner = await startOwner({ ...setup, uid: NOBODY });
      expect([await uidOf(owner.redis.pid), await uidOf(owner.pg.pid)]).toEqual([NOBODY, NOBODY]);
      await write(owner);
      await endOwner(owner);

      const root = await startOwner(setup);
      expect(await uidOf(root.pg.pid)).toBe(NOBODY);
      expect(await read(root)).toEqual(['yes', 'yes']);
      await endOwner(root);

      // Postgres refuses to run as a user that is not in /etc/passwd.
      const dataDir = join(base, 'nameless');
      await mkdir(dataDir);
      await chown(dataDir, NAMELESS, NAMELESS);
      await chmod(home, 0o755);
      await expect(startOwner({ ...setup, dataDir, uid: NAMELESS })).rejects.toThrow(
        /Cannot create the Postgres data folder in .*nameless.* \(initdb: .*\b54321\b.*\)\. Start Spindle as a user that is in \/etc\/passwd, or set DATABASE_URL\.\n/,
      );
      await until('no server is left', async () => (await commandsNaming(dataDir)).length === 0);
    },
  );
});

describe('the data folder of the embedded stores', () => {
  test('locks the data folder for one process at a time, and frees it when its holder is killed', async () => {
    const dataDir = join(base, 'locked');
    const lock = await lockDataDir(dataDir);
    await expect(lockDataDir(dataDir)).rejects.toThrow(SetupError);
    await symlink(dataDir, join(base, 'locked-too'));
    await expect(lockDataDir(join(base, 'locked-too'))).rejects.toThrow(/is in use by another Spindle/);
    await lock.release();

    const source =
      'const m = await import(process.argv[1]); await m.lockDataDir(process.argv[2]); console.log(1);';
    const module = pathToFileURL(join(PROJECT, BUILT)).href;
    const holder = spawn(
      process.execPath,
      ['--input-type=module', '-e', `${source} process.stdin.resume();`, module, dataDir],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    );
    children.push(holder);
    await once(holder.stdout!, 'data');
    await expect(lockDataDir(dataDir)).rejects.toThrow(SetupError);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    const again = await lockDataDir(dataDir);
    await again.release();
  });

  test('gives one secret to all concurrent requests, and keeps a port while it is free', async () => {
    let made = 0;
    const path = join(base, 'secret');
    const secrets = await Promise.all(
      Array.from({ length: 8 }, () => readOrCreateSecret(path, () => `s${made++}`)),
    );
    expect(new Set(secrets).size).toBe(1);
    expect((await stat(path)).mode & 0o777).toBe(0o600);

    const port = await keptPort(join(base, 'port'));
    expect(await keptPort(join(base, 'port'))).toBe(port);
    const taker = createServer().listen(port, '127.0.0.1');
    await once(taker, 'listening');
    expect(await keptPort(join(base, 'port'))).not.toBe(port);
    taker.close();
  });

  test('a stored port that another port of the same server has is replaced', async () => {
    const [own, bus] = [join(base, 'own-port'), join(base, 'bus-port')];
    const port = await keptPort(own);
    await writeFile(bus, `${port}\n`);
    expect(await keptPort(bus)).toBe(port);
    expect(await keptPort(bus, own)).not.toBe(port);
  });
});

test('reports the last output of a server that dies at every start, instead of waiting for it', async () => {
  const started = supervise({
    name: 'thing',
    logFile: join(base, 'thing.log'),
    launch: async () => ({ file: '/bin/sh', args: ['-c', 'echo no such luck; exit 3'], env: {}, cwd: '/' }),
    isReady: async () => false,
    stopSignals: ['SIGTERM'],
    stopDeadlineMs: 1_000,
    onEvent: () => {},
  });
  await expect(started).rejects.toThrow(/thing did not start: exit code 3 .*no such luck/);
});

test('kills a server that ignores the stop signals when their deadline is over', async () => {
  const lines: string[] = [];
  const ready = join(base, 'deaf-is-ready');
  const script = 'trap "" TERM; : > "$1"; while :; do sleep 0.05; done';
  const deaf = await supervise({
    name: 'deaf',
    logFile: join(base, 'deaf.log'),
    launch: async () => ({ file: '/bin/sh', args: ['-c', script, 'sh', ready], env: process.env, cwd: '/' }),
    isReady: async () => existsSync(ready),
    stopSignals: ['SIGTERM'],
    stopDeadlineMs: 200,
    onEvent: (line) => lines.push(line),
  });
  const pid = deaf.pid()!;
  await Promise.all([deaf.stop(), deaf.stop()]);
  expect(isAlive(pid)).toBe(false);
  expect(lines).toEqual(['deaf did not end within 200 ms after SIGTERM']);
});
