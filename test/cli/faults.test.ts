/**
 * Tests the error messages of the built `spindle` command if it can't begin its work: as text, and as JSON
 * with --json. No service runs.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cliOf, ROOT } from '../support/root.js';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spindle-faults-'));
  await writeFile(join(folder, 'key'), 'a-key');
});
afterAll(() => rm(folder, { recursive: true }));

const cli = (...args: string[]) =>
  promisify(execFile)(process.execPath, [cliOf(ROOT), ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH },
  }).then(
    ({ stdout, stderr }) => ({ status: 0, out: stdout, error: stderr }),
    ({ code, stdout, stderr }) => ({
      status: code as number,
      out: stdout as string,
      error: stderr as string,
    }),
  );

test.each([
  [['partner', 'bogus'], "unknown command 'bogus'"],
  [['webhooks', 'liste'], "unknown command 'liste' (Did you mean listen?)"],
  [['partner', 'show'], "missing required argument 'PARTNER'"],
  [
    ['partner', 'list', '--url', 'ftp://x', '--key-file', 'key'],
    '«ftp://x» is not an http:// or https:// address',
  ],
  [['partner', 'list', '--key-file', 'absent'], 'Cannot read the operator key from absent'],
])('reports the arguments %j as wrong usage, as a line of JSON with --json', async (args, message) => {
  const plain = await cli(...args);
  expect([plain.status, plain.out]).toEqual([2, '']);
  expect(plain.error.replaceAll('\n', ' ')).toBe(`spindle: ${message} `);
  const json = await cli(...args, '--json');
  expect([json.status, json.out]).toEqual([2, '']);
  expect(json.error).toBe(`${JSON.stringify({ error: { message, details: [] } })}\n`);
});

test('spindle names the settings that are missing if it finds neither a service nor a key', async () => {
  const { status, error } = await cli('overview');
  expect(status).toBe(2);
  for (const name of ['DATA_DIR', 'SPINDLE_URL', 'OPERATOR_API_KEY', '--url', '--key-file'])
    expect(error).toContain(name);
});

test("spindle suggests another address if the service doesn't respond, also with --json", async () => {
  const { status, error } = await cli(
    'overview',
    '--url',
    'http://127.0.0.1:1',
    '--key-file',
    'key',
    '--json',
  );
  expect(status).toBe(1);
  expect(JSON.parse(error).error.details).toEqual([
    { message: 'If the address is wrong, set SPINDLE_URL or use --url' },
  ]);
});

test('spindle names a damaged file with the addresses of the embedded stores', async () => {
  await mkdir(join(folder, '.data'));
  await writeFile(join(folder, '.data', 'stores.json'), '{"redisUrl":');
  const { status, error } = await cli('recover', '--check');
  expect(status).toBe(2);
  expect(error).toMatch(/\.data\/stores\.json can't be read or is damaged/);
});
