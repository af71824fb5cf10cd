/**
 * Tests files that several processes write. A process that was paused during its write must not replace newer
 * content with older content.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, utimesSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OtherHistoryError, type Position, PositionFile } from '../../../src/engine/recovery/positionFile.js';
import { replaceFile } from '../../../src/platform/files.js';
import { ROOT } from '../../support/root.js';
import { until } from '../../support/wait.js';

/**
 * Source code of a writer that pauses itself at its first call of a given function: after it has read the
 * file, or before it renames its new file.
 */
const WRITER = `
  import fs from 'node:fs/promises';
  import { syncBuiltinESMExports } from 'node:module';
  const [, module, path, position, where] = process.argv;
  const any = await fs.open('/dev/null');
  const functions = where === 'rename' ? fs : Object.getPrototypeOf(any);
  const called = functions[where];
  let stops = 1;
  functions[where] = function (...given) {
    if (stops-- > 0) process.kill(process.pid, 'SIGSTOP');
    return called.apply(this, given);
  };
  syncBuiltinESMExports();
  await any.close();
  const { PositionFile } = await import(module);
  await new PositionFile(path).write(() => JSON.parse(position));
`;

let folder: string;
let path: string;
let child: ChildProcess | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spindle-paused-'));
  path = join(folder, 'position.json');
});
afterEach(async () => {
  child?.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

/** Ids of two histories of a position file. */
const ONE = '00000000-0000-4000-8000-000000000001';
const TWO = '00000000-0000-4000-8000-000000000002';

const positionAt = (bookedId: string, more: Partial<Position> = {}): Position => ({
  id: ONE,
  dataset: 'd',
  writtenAt: '2026-11-26T00:00:00.000Z',
  leases: { 7: Number(bookedId) },
  postgres: { systemIdentifier: 's', timeline: '1', databaseOid: '1', database: 'd' } as never,
  cells: { 0: { epoch: '1', bookedId, newestId: bookedId } },
  ...more,
});
const kept = (): Position => JSON.parse(readFileSync(path, 'utf8')) as Position;
const stateOf = (pid: number): string => /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))![1]!;

test.skipIf(process.platform !== 'linux').each(['writeFile', 'rename'])(
  'a process that is paused before %s for longer than its lock lasts does not overwrite a newer position',
  async (where) => {
    await new PositionFile(path).write(() => positionAt('10'));
    const module = pathToFileURL(join(ROOT, 'dist/src/engine/recovery/positionFile.js')).href;
    const args = ['--input-type=module', '-e', WRITER, module, path, JSON.stringify(positionAt('20')), where];
    child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] });
    const ended = once(child, 'exit');
    await until(() => stateOf(child!.pid!) === 'T', 'the writer is paused');
    // The lock file is given an old time, so that another process takes the lock over.
    const longAgo = Date.now() / 1000 - 60;
    utimesSync(`${path}.lock`, longAgo, longAgo);
    await new PositionFile(path).write(() => positionAt('30'));
    child.kill('SIGCONT');
    expect(await ended).toEqual([0, null]);
    expect(kept()).toMatchObject({ cells: { 0: { bookedId: '30' } }, leases: { 7: 30 } });
    expect(existsSync(`${path}.lock`)).toBe(false);
  },
);

test('refuses a position of a history that another one has replaced after a restore', async () => {
  const file = new PositionFile(path);
  await file.write(() => positionAt('10'));
  await file.write(() => positionAt('5', { id: TWO }), ONE);
  await expect(new PositionFile(path).write(() => positionAt('20'))).rejects.toThrow(OtherHistoryError);
  expect(kept()).toMatchObject({ id: TWO, leases: { 7: 5 } });
});

test('concurrent writers of a file lose no change', async () => {
  const add = (_: unknown, i: number) =>
    replaceFile(path, (now) => JSON.stringify([...JSON.parse(String(now ?? '[]')), i]));
  for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 3 }, add));
  expect(kept()).toHaveLength(15);
});
