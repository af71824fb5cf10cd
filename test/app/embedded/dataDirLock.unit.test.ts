/** Tests the lock of the data folder: who may hold it, and which events it survives. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { lockDataDir, SetupError } from '../../../src/app/embedded/index.js';
import { NOBODY, nobodyRunsNode } from './processes.js';

const isLinux = process.platform === 'linux';
const isRoot = process.getuid?.() === 0;
let base: string;
const children: ChildProcess[] = [];

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), 'spindle-lock-'));
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  await rm(base, { recursive: true });
});

/** Returns the name in the abstract socket namespace that versions up to 1.4.0 hold as their lock. */
const nameOf = (folder: string): string =>
  `\0spindle-${createHash('sha256').update(folder).digest('hex').slice(0, 32)}`.padEnd(108, '\0');

test.skipIf(!isLinux)('respects the lock of a data folder that a version up to 1.4.0 holds', async () => {
  const { dataDir, release } = await lockDataDir(base);
  await release();
  const older = createServer((socket) => socket.destroy());
  older.listen(nameOf(dataDir));
  await once(older, 'listening');
  await expect(lockDataDir(base)).rejects.toThrow(/is in use by another Spindle/);
  older.close();
  await once(older, 'close');
  const lock = await lockDataDir(base);
  await lock.release();
});

test.skipIf(!isLinux || !isRoot || !nobodyRunsNode())(
  'starts although another user holds the lock names of earlier versions',
  async () => {
    const newest = `\0spindle-${createHash('sha512').update(base).digest('hex')}`.slice(0, 108);
    const hold = `for (const name of JSON.parse(process.argv[1])) require('net').createServer().listen(name, () => console.log(1));`;
    const stranger = spawn(process.execPath, ['-e', hold, JSON.stringify([nameOf(base), newest])], {
      cwd: '/',
      uid: NOBODY,
      gid: NOBODY,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(stranger);
    let said = '';
    for await (const text of stranger.stdout!) {
      said += text;
      if (said === '1\n1\n') break;
    }
    const lock = await lockDataDir(base);
    await lock.release();
  },
);

test('gives the lock of a data folder to at most one of several processes that start at the same moment', async () => {
  for (let round = 0; round < 20; round++) {
    const results = await Promise.allSettled(Array.from({ length: 4 }, () => lockDataDir(base)));
    const held = results.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    expect(held.length).toBeLessThanOrEqual(1);
    for (const each of results)
      if (each.status === 'rejected') expect(String(each.reason)).toContain('is in use by another Spindle');
    for (const lock of held) await lock.release();
    await (await lockDataDir(base)).release();
  }
  expect(readdirSync(base)).toEqual([]);
});

test.skipIf(!isLinux)('locks a data folder whose path is too long for a socket', async () => {
  const folder = join(base, 'x'.repeat(120));
  mkdirSync(folder);
  const lock = await lockDataDir(folder);
  await expect(lockDataDir(folder)).rejects.toThrow(/is in use by another Spindle/);
  await lock.release();
  await (await lockDataDir(folder)).release();
});

test.skipIf(!isLinux)(
  'refuses a data folder that other users can write, and makes a folder private that other users can read',
  async () => {
    for (const mode of [0o702, 0o777]) {
      chmodSync(base, mode);
      await expect(lockDataDir(base)).rejects.toThrow(SetupError);
    }
    chmodSync(base, 0o755);
    await (await lockDataDir(base)).release();
  },
);
