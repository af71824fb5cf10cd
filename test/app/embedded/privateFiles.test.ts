/** Tests that other users of the machine can't read the files of the service. */
import { spawnSync } from 'node:child_process';
import { chmodSync, readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openToOthers } from '../../support/openToOthers.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { spawnService } from '../../support/service.js';
import { until } from '../../support/wait.js';
import { NOBODY } from './processes.js';

let base: string;
let dataDir: string;
const started: ServerProcess[] = [];

beforeAll(async () => {
  base = await mkdtemp(join(tmpdir(), 'spindle-private-'));
  chmodSync(base, 0o755);
  dataDir = join(base, 'data');
});
afterAll(async () => {
  for (const service of started) await service.stop();
  await rm(base, { recursive: true, force: true });
});

async function start(): Promise<ServerProcess> {
  const service = await spawnService({
    DATA_DIR: dataDir,
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'warn',
    POSITION_FILE: join(base, 'position', 'file'),
    LOG_COPY_DIR: join(base, 'log'),
  });
  started.push(service);
  return service;
}

const folders = (): string[] => [dataDir, join(base, 'position'), join(base, 'log')];
const openOnes = (): string[] => folders().flatMap(openToOthers);

/** Gives the files the modes that they had after a start of an earlier version under the usual umask. */
function openAll(): void {
  for (const folder of [dataDir, join(base, 'log')]) chmodSync(folder, 0o755);
  for (const part of ['redis', 'log-key', 'seeds-key']) {
    const path = join(dataDir, part);
    const all = statSync(path).isDirectory() ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : [];
    for (const each of [path, ...all.map((name) => join(path, name))])
      chmodSync(each, statSync(each).isDirectory() ? 0o755 : 0o644);
  }
}

test('makes store files, keys, position file and log copy private to their owner, also in an older folder', async () => {
  const service = await start();
  await until(() => readdirSync(join(base, 'log')).includes('checkpoint'), 'the log is copied');
  expect(readdirSync(join(dataDir, 'redis'))).toContain('appendonlydir');
  expect(openOnes()).toEqual([]);
  if (process.getuid?.() === 0) {
    const asNobody = { uid: NOBODY, gid: NOBODY, cwd: '/' };
    const { stdout } = spawnSync('find', [...folders(), '-mindepth', '1'], asNobody);
    expect(`${stdout}`).toBe('');
  }

  // The servers of the killed service keep running, and its lock remains.
  await service.end('SIGKILL');
  openAll();
  expect(openOnes()).not.toEqual([]);
  const again = await start();
  await until(() => openToOthers(join(base, 'log')).length === 0, 'the copy of the log is closed');
  expect(openOnes()).toEqual([]);
  expect(await again.end()).toBe(0);
});

test('refuses a DATA_DIR that other users can write, and names the command that closes it', async () => {
  chmodSync(dataDir, 0o777);
  await expect(start()).rejects.toThrow(
    /ended with 1: (.*\n)?spindle: DATA_DIR .*data can be written by other users \(mode 777\).*«chmod 700 .*data»/,
  );
  expect(statSync(dataDir).mode & 0o777).toBe(0o777);
});
