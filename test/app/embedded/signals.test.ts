/** Ends the service in the ways of people and service managers, and checks that no process is left. */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { IS_WHOLE, ROOT } from '../../support/root.js';
import { ServerProcess } from '../../support/serverProcess.js';
import { pause, until } from '../../support/wait.js';

const run = promisify(execFile);
/**
 * Number of repetitions of each way to end the service in which signals may race; `npm run test:scale` uses
 * more.
 */
const ROUNDS = IS_WHOLE ? 20 : 2;
const TEST_TIMEOUT_MS = ROUNDS * 120_000;
/** Arguments of `npm start` without the build, which already exists. */
const NPM_START = ['start', '--silent', '--ignore-scripts'];
/** Debian's `script` (package bsdutils) runs a command in a terminal. */
const hasTerminal = spawnSync('script', ['-qec', 'true', '/dev/null']).status === 0;

let dataDir: string;
beforeAll(async () => {
  dataDir = await realpath(await mkdtemp(join(tmpdir(), 'spindle-signals-')));
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

const environment = (): NodeJS.ProcessEnv => ({
  DATA_DIR: dataDir,
  PORT: '0',
  METRICS_PORT: '0',
  LOG_LEVEL: 'warn',
});

/** Returns the processes whose command line names the data folder. */
async function servers(): Promise<number[]> {
  const { stdout } = await run('ps', ['-eo', 'pid=,args=']);
  return stdout
    .split('\n')
    .filter((line) => line.includes(dataDir) && !line.includes('ps -eo'))
    .map((line) => Number.parseInt(line, 10));
}
const nothingIsLeft = (): Promise<void> =>
  until(async () => (await servers()).length === 0, 'no server of the data folder is left');

function launch(file: string, args: readonly string[]): { child: ChildProcess; ended: Promise<number> } {
  const child = spawn(file, args, {
    cwd: ROOT,
    env: { ...process.env, ...environment() },
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  });
  return { child, ended: once(child, 'exit').then(([code]) => code as number) };
}

async function untilReady({ child }: { child: ChildProcess }): Promise<void> {
  let text = '';
  child.stdout!.on('data', (chunk: Buffer) => {
    text += chunk;
  });
  await until(() => text.includes('is ready'), 'the service is ready');
}

const inTerminal = (): ReturnType<typeof launch> =>
  launch('script', ['-qec', `exec npm ${NPM_START.join(' ')}`, '/dev/null']);

describe.skipIf(!hasTerminal)('npm start in a terminal (skipped where there is no `script`)', () => {
  test(
    'Ctrl-C on npm start ends the service in order and leaves no server running',
    async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const program = inTerminal();
        await untilReady(program);
        program.child.stdin!.write('\x03');
        expect(await program.ended).toBe(0);
        await nothingIsLeft();
      }
    },
    TEST_TIMEOUT_MS,
  );

  test('a second Ctrl-C right after the first on npm start changes nothing', async () => {
    const program = inTerminal();
    await untilReady(program);
    program.child.stdin!.write('\x03');
    await pause(50);
    program.child.stdin!.write('\x03');
    expect(await program.ended).toBe(0);
    await nothingIsLeft();
  });

  test('closing the terminal of npm start leaves no server running', async () => {
    const program = inTerminal();
    await untilReady(program);
    program.child.kill('SIGKILL');
    await program.ended;
    await nothingIsLeft();
  });

  test('Ctrl-C during the start of npm start leaves no server running', async () => {
    const program = inTerminal();
    await until(async () => (await servers()).length >= 2, 'servers are being started');
    program.child.stdin!.write('\x03');
    await program.ended;
    await nothingIsLeft();
  });
});

describe('npm start', () => {
  test(
    'SIGTERM to the process group of npm start ends the service in order and leaves no server running',
    async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const program = launch('npm', NPM_START);
        await untilReady(program);
        process.kill(-program.child.pid!, 'SIGTERM');
        await program.ended;
        await nothingIsLeft();
      }
    },
    TEST_TIMEOUT_MS,
  );

  test('npm start under `timeout` leaves no server running', async () => {
    const program = launch('timeout', ['6', 'npm', ...NPM_START]);
    await program.ended;
    await nothingIsLeft();
  });
});

describe('signals to the service', () => {
  const start = (): Promise<ServerProcess> => ServerProcess.launch({ env: environment() }).ready();

  test(
    'treats a repeated signal within 2 s as the same signal, and exits with status 0',
    async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const service = await start();
        for (const signal of ['SIGTERM', 'SIGTERM', 'SIGINT', 'SIGTERM'] as const) service.child.kill(signal);
        expect(await service.ended).toBe(0);
        expect(await servers()).toEqual([]);
      }
    },
    TEST_TIMEOUT_MS,
  );

  test(
    'ends its embedded servers when the service is killed with SIGKILL',
    async () => {
      for (let round = 0; round < ROUNDS; round++) {
        const service = await start();
        expect((await servers()).length).toBeGreaterThan(0);
        await service.end('SIGKILL');
        await nothingIsLeft();
      }
    },
    TEST_TIMEOUT_MS,
  );

  test('names what a hanging stop waits for, and ends at once with its servers on a later signal', async () => {
    const service = await start();
    const redis = await redisServer();
    // The stop hangs, because it waits for a Redis that does not answer.
    process.kill(redis, 'SIGSTOP');
    const firstMs = performance.now();
    service.child.kill('SIGINT');
    const said = (): boolean => /^Stopping: waiting for (.+, )?flusher(, .+)? …$/m.test(service.output());
    await until(() => said() || service.hasEnded, 'it says what it waits for');
    expect(said()).toBe(true);
    // A signal within two seconds after the first counts as the same signal. A stop that completes normally
    // ends with another exit status.
    while (!service.hasEnded) {
      service.child.kill('SIGTERM');
      await pause(250);
    }
    const endMs = performance.now() - firstMs;
    process.kill(redis, 'SIGCONT');
    expect(await service.ended).toBe(143);
    expect(endMs).toBeGreaterThan(2000);
    await nothingIsLeft();
  });
});

async function redisServer(): Promise<number> {
  const { stdout } = await run('ps', ['-eo', 'pid=,args=']);
  const line = stdout
    .split('\n')
    .find((text) => /(redis|valkey)-server/.test(text) && text.includes(dataDir));
  return Number.parseInt(line!, 10);
}
