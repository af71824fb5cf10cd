/** Tests `spindle program check` on a copy of the build, which the tests change. */
import { execFile } from 'node:child_process';
import { appendFile, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { copyProgram } from '../support/programCopy.js';

const CHANGED = 'dist/src/app/program/banner.js';
let root: string;

beforeAll(() => {
  root = copyProgram();
});
afterAll(() => rm(root, { recursive: true, force: true }));

const run = (program: string, ...args: string[]) =>
  promisify(execFile)(program, args, { cwd: root }).then(
    ({ stdout, stderr }) => ({ status: 0, out: stdout, error: stderr }),
    ({ code, stdout, stderr }) => ({
      status: code as number,
      out: stdout as string,
      error: stderr as string,
    }),
  );
const check = (...args: string[]) =>
  run(process.execPath, 'dist/src/cli/cli.js', 'program', 'check', ...args);

test('spindle program check confirms unchanged files, and sha256sum agrees', async () => {
  const { status, out } = await check();
  expect(out).toMatch(/^spindle \S+, manifest [0-9a-f]{64}: \d+ files, all match\n$/);
  expect(status).toBe(0);
  expect(await check('--quiet')).toMatchObject({ status: 0, out: '' });
  expect(await run('sha256sum', '--quiet', '-c', 'manifest.sha256')).toMatchObject({ status: 0, out: '' });
});

test('spindle program check names a changed file as text, and as JSON with a given list, and npm start names it before the build', async () => {
  await appendFile(join(root, CHANGED), ' ');
  expect(await check()).toMatchObject({ status: 1, out: expect.stringContaining(`  changed  ${CHANGED}\n`) });
  const list = await readFile(join(root, 'manifest.sha256'));
  await writeFile(join(root, 'approved'), list);
  const other = await check('--json', '--manifest', join(root, 'approved'));
  expect(JSON.parse(other.out)).toMatchObject({
    differing: 1,
    differences: [{ path: CHANGED, what: 'CHANGED' }],
  });
  const { status, out, error } = await run('sh', 'tools/compare.sh');
  expect([status, out]).toEqual([0, '']);
  expect(error).toContain(`  changed  ${CHANGED}\n`);
});

test('a build replaces an output that something else has changed or removed, and writes no other', async () => {
  const build = () => run(process.execPath, 'tools/build.mjs', 'typebox');
  const file = join(root, 'dist', 'typebox', 'index.js');
  expect(await build()).toMatchObject({ status: 0, error: '' });
  const made = await readFile(file, 'utf8');
  const { mtimeMs } = await stat(file);
  await build();
  expect((await stat(file)).mtimeMs).toBe(mtimeMs);
  await appendFile(file, '// changed');
  await build();
  expect(await readFile(file, 'utf8')).toBe(made);
  await rm(file);
  await build();
  expect(await readFile(file, 'utf8')).toBe(made);
});

test("spindle program check reports wrong usage without a list, or with one that doesn't exist", async () => {
  await rm(join(root, 'manifest.sha256'));
  expect(await check()).toMatchObject({
    status: 2,
    error: expect.stringContaining('The file manifest.sha256 does not exist'),
  });
  expect(await check('--manifest', '/nowhere/list')).toMatchObject({ status: 2 });
  expect(await run('sh', 'tools/compare.sh')).toMatchObject({ status: 0, out: '' });
});
