/** Starts the program with several front ends, ends them and the first process, and checks what is left. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import postgres from 'postgres';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { askOnce, plainRequest, portOf, spinRequest } from '../../support/load.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const FRONT_ENDS = ['front-end-1', 'front-end-2', 'front-end-3'];
const PLAYERS = 8;
/** Wait for a response before the spin is repeated, in ms. */
const REPEATED_AFTER_MS = 5000;

let dataDir: string;
let service: ServerProcess | undefined;

beforeAll(async () => {
  dataDir = await realpath(await mkdtemp(join(tmpdir(), 'spindle-front-ends-')));
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

const start = async (frontEnds: number): Promise<ServerProcess> => {
  service = await spawnService({
    DATA_DIR: dataDir,
    OPERATOR_API_KEY: OPERATOR_KEY,
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'warn',
    FRONT_ENDS: String(frontEnds),
  });
  return service;
};

/** Returns the process ids of all processes that a process has started. */
async function childrenOf({ pid }: ServerProcess, name = ''): Promise<number[]> {
  const { stdout } = await promisify(execFile)('ps', ['-eo', 'pid=,ppid=,args=']);
  return stdout
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, parent, ...args]) => Number(parent) === pid && args.join(' ').endsWith(name))
    .map(([child]) => Number(child));
}
const frontEndsOf = (started: ServerProcess): Promise<number[]> => childrenOf(started, 'main.js');

const isAlive = (pid: number): boolean => {
  const stat = `/proc/${pid}/stat`;
  try {
    // A zombie has ended. Its new parent may not have noticed yet.
    return existsSync(stat) && !/\) Z /.test(readFileSync(stat, 'utf8'));
  } catch {
    return false;
  }
};

/** Returns the values of a metric without further labels, by process. */
async function byProcess(started: ServerProcess, name: string): Promise<Record<string, number>> {
  const samples = (await started.scrape()).matchAll(new RegExp(`^${name}{process="(.+?)"} (.+)$`, 'gm'));
  return Object.fromEntries([...samples].map(([, process, value]) => [process, Number(value)]));
}

/**
 * Spins until it is stopped, each time on a new connection. A spin without an answer is repeated with its
 * requestId.
 */
function spinOn(port: number, key: string, gameId: number) {
  const answered: string[] = [];
  const refused: string[] = [];
  let isStopped = false;
  const play = async (player: string): Promise<void> => {
    for (let spins = 0; !isStopped; spins++) {
      const requestId = `${player}-${spins}`;
      const body = JSON.stringify({ gameId, playerId: player, wagerUsd: 0.25, requestId });
      let answer: Awaited<ReturnType<typeof askOnce>>;
      do answer = await askOnce(port, spinRequest(key, body), REPEATED_AFTER_MS);
      while (answer === undefined);
      if (answer.status === 200) answered.push(requestId);
      else refused.push(answer.text);
    }
  };
  const played = Promise.all(Array.from({ length: PLAYERS }, (_, i) => play(`p${i}`)));
  const stop = async (): Promise<void> => {
    isStopped = true;
    await played;
  };
  return { answered, refused, stop };
}

test('front ends of one start share a port, are restarted, and end with the service', async () => {
  const started = await start(FRONT_ENDS.length);
  const { key } = await started.client.newPartner();
  const gameId = await started.client.newGame(key, parSheet('classic-3-reel'));
  const { databaseUrl } = JSON.parse(readFileSync(join(dataDir, 'stores.json'), 'utf8'));
  const spins = spinOn(portOf(started.base!), key, gameId);
  const dealt = () => byProcess(started, 'spindle_spins_total');
  const allDeal = async (): Promise<boolean> => {
    const values = await dealt();
    return FRONT_ENDS.every((name) => (values[name] ?? 0) > 0);
  };
  await until(allDeal, 'every front end has dealt spins');
  expect(await dealt()).toMatchObject({ worker: 0 });

  const [victim, paused] = await frontEndsOf(started);
  process.kill(victim!, 'SIGKILL');
  const restarts = () => byProcess(started, 'spindle_front_end_restarts_total');
  await until(async () => Object.values(await restarts()).includes(1), 'a front end is restarted');
  const [name] = Object.entries(await restarts()).find(([, value]) => value === 1)!;
  await until(allDeal, 'every front end deals again');
  expect((await started.client.request('GET', '/statusz')).status).toBe(200);
  expect(Object.keys(await dealt()).sort()).toEqual([...FRONT_ENDS, 'worker']);
  expect(Object.values(await restarts()).sort()).toEqual([0, 0, 1]);
  expect(started.output()).toContain(`${name} ended unexpectedly (signal SIGKILL)`);
  await spins.stop();
  expect(spins.refused).toEqual([]);

  const missed = () => byProcess(started, 'spindle_front_end_missed_scrapes_total');
  const before = await missed();
  process.kill(paused!, 'SIGSTOP');
  let absent: string[] = [];
  await until(async () => {
    const present = Object.keys(await dealt());
    absent = FRONT_ENDS.filter((each) => !present.includes(each));
    return absent.length === 1;
  }, 'the metrics lack only the paused front end');
  process.kill(paused!, 'SIGCONT');
  expect((await missed())[absent[0]!]).toBeGreaterThan(before[absent[0]!]!);

  const sql = postgres(databaseUrl, { max: 1 });
  const booked = async (): Promise<string[]> => {
    const rows = await sql<{ request_id: string }[]>`SELECT request_id FROM ledger WHERE kind = 1`;
    return rows.map((row) => row.request_id).sort();
  };
  await until(async () => (await booked()).length >= spins.answered.length, 'the spins are booked');
  expect(await booked()).toEqual([...spins.answered].sort());
  await sql.end();

  const children = await childrenOf(started);
  expect(children.length).toBeGreaterThan(FRONT_ENDS.length);
  expect(await started.end()).toBe(0);
  await until(() => !children.some(isAlive), 'no process is left');
  expect(started.output().match(/is ready/g)).toHaveLength(1);
});

interface HealthBody {
  readonly missing: string[];
  readonly waiting: string[];
  readonly problems: { name: string }[];
}

/** Returns the answer of a health check of the first process. */
async function checkOf(
  { metrics }: ServerProcess,
  path: string,
): Promise<{ status: number; body: HealthBody }> {
  const answer = await fetch(new URL(path, metrics));
  return { status: answer.status, body: (await answer.json()) as HealthBody };
}

test('a front end that no longer responds is named and replaced', async () => {
  const started = await start(2);
  expect(await checkOf(started, '/statusz')).toMatchObject({ status: 200, body: { problems: [] } });
  const [paused] = await frontEndsOf(started);
  process.kill(paused!, 'SIGSTOP');
  const seen = new Set<string>();
  await until(async () => {
    const { body } = await checkOf(started, '/statusz');
    for (const line of body.waiting) seen.add(line);
    return !isAlive(paused!);
  }, 'the paused front end is ended');
  expect([...seen].join()).toMatch(/front-end-\d does not respond/);
  await until(async () => (await checkOf(started, '/statusz')).status === 200, 'it is replaced');
  expect(await frontEndsOf(started)).toHaveLength(2);
  expect(started.output()).toMatch(/front-end-\d does not respond; replacing it/);
});

test('the first process is not ready while none of its front ends serves', async () => {
  const started = await start(2);
  expect((await checkOf(started, '/readyz')).status).toBe(200);
  for (const pid of await frontEndsOf(started)) process.kill(pid, 'SIGSTOP');
  let { body } = await checkOf(started, '/readyz');
  await until(async () => {
    const answer = await checkOf(started, '/readyz');
    body = answer.body;
    return answer.status === 503;
  }, 'it is not ready');
  expect(body.missing).toEqual([
    expect.stringContaining('front-end-1 '),
    expect.stringContaining('front-end-2 '),
  ]);
  await until(async () => (await checkOf(started, '/readyz')).status === 200, 'it is ready again');
});

test('a front end lists the front ends of its start that do not serve', async () => {
  const started = await start(2);
  const port = portOf(started.base!);
  const [first] = await frontEndsOf(started);
  process.kill(first!, 'SIGSTOP');
  await until(async () => {
    // Some of the connections go to the paused front end, which does not answer.
    const asked = Array.from({ length: 6 }, () => askOnce(port, plainRequest('GET', '/statusz', ''), 500));
    return (await Promise.all(asked)).some((answer) => answer?.text.includes('front-end-down'));
  }, 'the other front end names it');
  if (isAlive(first!)) process.kill(first!, 'SIGCONT');
});

test('front ends and stores end if the first process is killed', async () => {
  const started = await start(2);
  const children = await childrenOf(started);
  expect(await frontEndsOf(started)).toHaveLength(2);
  await started.end('SIGKILL');
  await until(() => !children.some(isAlive), 'no process is left');
});

test('without the worker role, the first process is one of the front ends, and a foreign port is refused in one line', async () => {
  const stores = await freshStores();
  const taken = createServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  try {
    service = await spawnService(environment(stores, { ROLES: 'http', FRONT_ENDS: '2' }));
    const dealt = await byProcess(service, 'spindle_spins_total');
    expect(Object.keys(dealt).sort()).toEqual(FRONT_ENDS.slice(0, 2));
    expect(await frontEndsOf(service)).toHaveLength(1);
    expect(await service.end()).toBe(0);
    const { port } = taken.address() as AddressInfo;
    const refused = spawnService(environment(stores, { PORT: String(port), FRONT_ENDS: '2' }));
    const { message } = await refused.then(
      (running) => {
        service = running;
        return { message: 'it started' };
      },
      (error: Error) => error,
    );
    const lines = message.split('\n').filter((line) => line.includes('spindle: '));
    expect(lines).toEqual([
      expect.stringContaining(`Port ${port} of 127.0.0.1 is in use by another program`),
    ]);
  } finally {
    taken.close();
    await stores.drop();
  }
});
