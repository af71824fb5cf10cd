import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../../src/app/config.js';
import { freshStores } from '../../setup/freshStores.js';
import { cliOf, ROOT } from '../../support/root.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { spawnService } from '../../support/service.js';
import { until } from '../../support/wait.js';

const run = promisify(execFile);
let dataDir: string;
const started: ServerProcess[] = [];

// All tests share one data folder: the first test creates it, and each later test starts from what the
// previous tests left.
beforeAll(async () => {
  dataDir = await realpath(await mkdtemp(join(tmpdir(), 'spindle-start-')));
});
afterEach(async () => {
  for (const service of started.splice(0)) {
    if (service.child.exitCode === null && service.child.signalCode === null) await service.end();
  }
});
afterAll(() => rm(dataDir, { recursive: true, force: true }));

const environment = (): NodeJS.ProcessEnv => ({
  DATA_DIR: dataDir,
  PORT: '0',
  METRICS_PORT: '0',
  LOG_LEVEL: 'warn',
});
async function start(): Promise<ServerProcess> {
  const service = await spawnService(environment());
  started.push(service);
  return service;
}
/** Returns the servers whose command line names the data folder. */
async function servers(): Promise<number[]> {
  const { stdout } = await run('ps', ['-eo', 'pid=,args=']);
  return stdout
    .split('\n')
    .filter((line) => line.includes(dataDir) && !line.includes('ps -eo'))
    .map((line) => Number.parseInt(line, 10));
}
const key = (): string => readFileSync(join(dataDir, 'demo-api-key'), 'utf8').trim();
const spin = (service: ServerProcess, requestId: string) =>
  service.client.spin(key(), { gameId: 1, playerId: 'alice', wagerUsd: 0.25, requestId });

describe('starting with one command', () => {
  test('starts with embedded stores, prints a working spin request, and continues from its data at the next start', async () => {
    const service = await start();
    const line = /^ {2}curl .*$/m.exec(service.output())!;
    const { stdout } = await run('/bin/sh', ['-c', line[0]]);
    expect(stdout.endsWith('}\n')).toBe(true);
    expect(JSON.parse(stdout)).toMatchObject({ spinId: expect.any(String), communityBonus: null });
    expect(service.output()).toMatch(/operator key \(shown only once\) ks_[\w-]{43}/);
    for (const file of ['operator-api-key', 'demo-api-key', 'stores.json']) {
      expect(statSync(join(dataDir, file)).mode & 0o777).toBe(0o600);
    }
    expect((await service.client.request('GET', '/statusz')).status).toBe(200);
    const first = await spin(service, 'kept');
    const shown = await run(process.execPath, [cliOf(ROOT), 'show', 'player', '1', 'alice', '--json'], {
      env: { ...process.env, DATA_DIR: dataDir },
    });
    expect(JSON.parse(shown.stdout)[0]).toMatchObject({ playerId: 'alice', entries: 3 });
    // The `spindle` command finds the address of the service in the data folder, whatever the port.
    const listed = await run(process.execPath, [cliOf(ROOT), 'game', 'list', '--partner', '1', '--json'], {
      env: { PATH: process.env.PATH, DATA_DIR: dataDir },
    });
    expect(JSON.parse(listed.stdout).games.length).toBeGreaterThan(0);
    const refused: { code?: number; stderr?: string } = await run(
      process.execPath,
      [cliOf(ROOT), 'partner', 'show', '999999', '--json'],
      { env: { PATH: process.env.PATH, DATA_DIR: dataDir } },
    ).catch((error) => error);
    expect(refused.code).toBe(1);
    expect(JSON.parse(refused.stderr!)).toMatchObject({
      error: { code: 'KS-4209', status: 404, details: [] },
    });

    expect(await service.end()).toBe(0);
    expect(await servers()).toEqual([]);
    expect(existsSync(join(dataDir, 'stores.json'))).toBe(false);
    expect(existsSync(join(dataDir, 'service.json'))).toBe(false);

    const again = await start();
    expect(again.output()).not.toContain('shown only once');
    expect((await spin(again, 'kept')).text).toBe(first.text);
    expect((await spin(again, 'new')).status).toBe(200);
  });

  test('a signal to npm reaches the service and leaves no process running', async () => {
    // The build is skipped, because it would rewrite files that other tests are running.
    const npm = spawn('npm', ['start', '--silent', '--ignore-scripts'], {
      cwd: ROOT,
      env: { ...process.env, ...environment() },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const ended = once(npm, 'exit');
    let text = '';
    npm.stdout.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    await until(() => text.includes('is ready'), 'the service is ready');
    npm.kill('SIGTERM');
    await ended;
    await until(async () => (await servers()).length === 0, 'the stores have ended');
  });

  test('with external stores and no operator key, makes a key but creates no demo partner', async () => {
    const stores = await freshStores();
    try {
      const given = { REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl };
      const service = await spawnService({
        ...environment(),
        ...given,
        DATA_DIR: join(dataDir, 'not', 'there'),
      });
      started.push(service);
      const operatorKey = /shown only once\) (ks_[\w-]{43})/.exec(service.output())![1]!;
      const { body } = await service.client.request<{ partners: unknown[] }>(
        'GET',
        '/api/operator/v1/partners',
        {
          key: operatorKey,
        },
      );
      expect(body.partners).toEqual([]);
      expect(await service.end()).toBe(0);

      const demo = await spawnService({ ...environment(), ...given }, ['--demo']);
      started.push(demo);
      expect((await spin(demo, 'demo')).status).toBe(200);
      await demo.end();
    } finally {
      await stores.drop();
    }
  });

  test('refuses to start a second service on the same data folder, with an error message of one line', async () => {
    await start();
    await expect(spawnService(environment())).rejects.toThrow(
      /ended with 1: (.*\n)?spindle: DATA_DIR .* is in use/,
    );
  });

  test('starts again after every process was killed, and still has every answered spin', async () => {
    const service = await start();
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => spin(service, `killed-${i}`)));
    for (const pid of [service.child.pid!, ...(await servers())]) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The process with this id has already ended, together with its parent.
      }
    }
    await until(() => service.child.signalCode !== null, 'the service is dead');
    const again = await start();
    for (const [i, answer] of answers.entries())
      expect((await spin(again, `killed-${i}`)).text).toBe(answer.text);
  });

  test('starts again at once after only the service was killed, and replaces its orphaned servers', async () => {
    const service = await start();
    const answer = await spin(service, 'orphan');
    await service.end('SIGKILL');
    const again = await start();
    expect((await spin(again, 'orphan')).text).toBe(answer.text);
  });

  test('restarts an embedded store that dies while the service runs', async () => {
    const service = await start();
    const answer = await spin(service, 'before');
    const urls = JSON.parse(readFileSync(join(dataDir, 'stores.json'), 'utf8')) as { redisUrl: string };
    const port = new URL(urls.redisUrl).port;
    const pids = await servers();
    for (const pid of pids) {
      const line = (await run('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => ({ stdout: '' }))).stdout;
      if (line.includes('redis-server') || line.includes('valkey-server') || line.includes(port))
        process.kill(pid, 'SIGKILL');
    }
    await until(async () => (await spin(service, 'before')).status === 200, 'Redis is back');
    expect((await spin(service, 'before')).text).toBe(answer.text);
    expect((await spin(service, 'after')).status).toBe(200);
  });
});

describe('settings of the service', () => {
  test('names each wrong setting once, with its allowed values', () => {
    expect(() => readConfig({ ...environment(), ACK: 'foo', PORT: 'ninety' })).toThrow(
      /^PORT must be an integer; ACK must be redis, replica or ledger$/,
    );
  });

  test.each([
    ['PORT', 'ninety'],
    ['ROLES', 'http,cook'],
    ['CELLS', '0'],
    ['OPERATOR_API_KEY', 'short'],
    ['LOG_LEVEL', 'loud'],
    ['TEST_CONSTANTS', '{"restrictionReadS":1}'],
  ])('refuses %s=%s with an error message of one line that names the setting', (name, value) => {
    expect(() => readConfig({ ...environment(), [name]: value })).toThrow(
      new RegExp(`^[^\\n]*${name}[^\\n]*$`),
    );
  });
});
