/**
 * Runs the samples of the quick start and of the PAR sheets page as printed, and compares the versions of
 * the client, the OpenAPI documents and the service.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { API_VERSION } from '../../src/api/contract/apis.js';
import { world } from '../setup/world.js';
import { docCode } from '../support/docBlocks.js';
import { ROOT } from '../support/root.js';
import { registerTable } from '../support/rounds.js';
import { parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

const run = promisify(execFile);
const ORIGIN = 'https://spindle.example.com';
const read = (...path: string[]): string => readFileSync(join(ROOT, ...path), 'utf8');
const isThere = (program: string): boolean => spawnSync(program, ['--version']).status === 0;

const { service, partner } = world({ CELLS: '1' });
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spindle-examples-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const QUICK_START = read('docs', 'quick-start.md');

/** Returns the code blocks of a page in a language, including labelled blocks. */
const samplesOf = (page: string, language: string): string => docCode(`docs/${page}`, language).join('\n');

/**
 * Returns the unlabelled code blocks of a part of the quick start in order, with the address of the service.
 */
const programOf = (part: string, language: string): string =>
  [...part.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))]
    .map(([, code]) => code!.replaceAll(ORIGIN, service.base))
    .join('\n');

/** Returns the code in a tab. This code can spin without the other code of the page. */
const tabOf = (label: string): string =>
  new RegExp(`\`\`\`\\w+ ${label}\\n([\\s\\S]*?)\`\`\``).exec(QUICK_START)![1]!;

test.skipIf(!isThere('python3'))(
  'the Python program of the quick start spins once, lists spins, and plays a blackjack round',
  async () => {
    await service.newGame(partner.key, parSheet('classic-3-reel'));
    await registerTable(service, partner.partnerId);
    const env = { PATH: process.env.PATH, HOME: folder, SPINDLE_URL: service.base, SPINDLE_KEY: partner.key };
    const { stdout } = await run('python3', ['-c', programOf(QUICK_START, 'python')], { env });
    expect(stdout).toMatch(
      /^paid [\d.]+ balance [\d.]+\n\d+ spins so far\nKS-4103\nthe round paid [\d.]+\n$/,
    );
  },
);

test.skipIf(!isThere('python3'))(
  'the Python samples of the PAR sheets page and the quick start register a game and spin it',
  async () => {
    const { key } = await service.newPartner();
    await writeFile(join(folder, 'par-sheet.json'), JSON.stringify(parSheet('classic-3-reel')));
    const env = { PATH: process.env.PATH, HOME: folder, SPINDLE_URL: service.base, SPINDLE_KEY: key };
    const spin = tabOf('Python')
      .replace('once(', 'spin = once(')
      .replace('"gameId": 1', '"gameId": game["gameConfigId"]');
    // The functions of the page's complete program are used, but not its part that looks up a game.
    const [calling, once] = [...QUICK_START.matchAll(/```python\n([\s\S]*?)```/g)].map(([, code]) => code);
    const functions = `${calling}\n${once!.split('\ngame = ')[0]}`;
    const program = [functions, samplesOf('par-sheets.md', 'python'), spin, 'print(spin["requestId"])'];
    const { stdout } = await run('python3', ['-c', program.join('\n')], { env, cwd: folder });
    expect(stdout).toBe('first-spin\n');
  },
);

test('the TypeScript samples of the PAR sheets page and the quick start register a game and spin it', async () => {
  const { key } = await service.newPartner();
  await writeFile(join(folder, 'par-sheet.json'), JSON.stringify(parSheet('classic-3-reel')));
  const client = join(ROOT, 'dist', 'clients', 'typescript', 'src', 'index.js');
  const spin = tabOf('TypeScript')
    .replace('await', 'const spin = await')
    .replace('gameId: 1', 'gameId: game.gameConfigId');
  const program = `import { readFile } from 'node:fs/promises';
import { Spindle } from '${client}';
const spindle = new Spindle({ baseUrl: '${service.base}', apiKey: '${key}' });
${samplesOf('par-sheets.md', 'ts')}
${spin}
console.log(spin.requestId);`;
  const args = ['--input-type=module', '--eval', program];
  const { stdout } = await run(process.execPath, args, { cwd: folder });
  expect(stdout).toBe('first-spin\n');
});

test.skipIf(!isThere('curl'))(
  'the quick start registers a game, spins once, forces an outcome, and shows a preview of a report',
  async () => {
    const { key } = await service.newPartner();
    const preview = /\n## 5\. [\s\S]*?```sh\n[\s\S]*?```/.exec(QUICK_START)![0];
    const steps = `${QUICK_START.split('\n## 4. ')[0]!}${preview}`;
    const program = programOf(steps, 'sh').replace('KEY=ks_…', `KEY=${key}`);
    const { stdout } = await run('bash', ['-euc', program], { cwd: folder, env: { PATH: process.env.PATH } });
    expect(stdout).toMatch(/idempotent-replayed: true/i);
    expect(stdout).toContain('"sandbox":{"forced":true}');
    expect(stdout).toContain('"payoutUsd":3.625');
    expect(stdout).toContain('KS-4102');
    expect(stdout).toMatch(/"reportStatus":"PREVIEW"[^\n]*\n$/);
  },
);

test.skipIf(!isThere('curl'))('the PAR sheets page uploads a sheet with the key alone', async () => {
  const { key } = await service.newPartner();
  await writeFile(join(folder, 'par-sheet.json'), JSON.stringify(parSheet('classic-3-reel')));
  const program = samplesOf('par-sheets.md', 'sh').replace(ORIGIN, service.base);
  const env = { PATH: process.env.PATH, KEY: key };
  const { stdout } = await run('bash', ['--norc', '-euc', program], { env, cwd: folder });
  expect(JSON.parse(stdout)).toMatchObject({ parSheetId: expect.any(Number), numReels: 3 });
});

test.skipIf(!isThere('curl'))('the overview lists the games of an account and spins one', async () => {
  const { key } = await service.newPartner();
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const program = docCode('docs/README.md', 'sh')
    .join('\necho\n')
    .replace(ORIGIN, service.base)
    .replace('ks_…', key)
    .replace('"gameId":1', `"gameId":${gameId}`);
  const { stdout } = await run('bash', ['--norc', '-euc', program], { env: { PATH: process.env.PATH } });
  const [games, spin] = stdout.split('\n').map((line) => JSON.parse(line));
  expect(games.games[0].gameConfigId).toBe(gameId);
  expect(spin).toMatchObject({ requestId: 'bet-1', presentation: { type: 'slot' } });
});

test.skipIf(!isThere('curl'))('the webhooks page sends a test delivery and lists its attempts', async () => {
  const { key } = await service.newPartner();
  const webhook = { url: 'http://localhost:9/', events: ['spin.large_win'] };
  const { body } = await service.partner<{ id: string }>('POST', '/webhooks', key, webhook);
  const program = docCode('docs/webhooks.md', 'sh').find((code) => code.includes('/test"'))!;
  const env = { PATH: process.env.PATH, URL: service.base, KEY: key, ID: String(body.id) };
  const { stdout } = await run('bash', ['-euc', program], { env });
  expect(stdout).toMatch(/"deliveries":\[\{[^}]*"event":"spin.large_win"/);
});

test('the load recipe of the go-live page spins once for each request, and counts refusals apart', async () => {
  const { key, partnerId } = await service.newPartner({ spinRateLimit: 300 });
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const [setUp, flood, steady] = docCode('docs/go-live.md', 'sh').map((code) =>
    code
      .replace(ORIGIN, service.base)
      .replace('ks_…', key)
      .replace('GAME=1', `GAME=${gameId}`)
      .replace(/-d \d+$/m, '-d 2'),
  );
  // The real npx would download the package, and without --yes it would wait for a confirmation.
  const npx = `#!/bin/sh
test "$1 $2" = '--yes autocannon@8' || exit 1
shift 2
exec ${join(ROOT, 'node_modules', '.bin', 'autocannon')} --json --no-progress "$@"
`;
  await writeFile(join(folder, 'npx'), npx, { mode: 0o755 });
  const env = { PATH: `${folder}:${process.env.PATH}` };
  const codesOf = async (program: string): Promise<Record<string, { count: number }>> => {
    const { stdout } = await run('bash', ['--norc', '-euc', program], { env });
    return JSON.parse(stdout.trim().split('\n').at(-1)!).statusCodeStats;
  };
  const spins = async (): Promise<number> => {
    const { body } = await service.partner<{ total: number }>('GET', '/players/load-1/spins?limit=1', key);
    return body.total;
  };
  expect(Object.keys(await codesOf(setUp!))).toEqual(['200']);
  const functions = setUp!.split('\n').slice(0, -1).join('\n');
  expect(Object.keys(await codesOf(`${functions}\n${flood}`)).sort()).toEqual(['200', '429']);
  await service.operator('PATCH', `/partners/${partnerId}`, { spinRateLimit: 1_000_000 });
  await until(
    async () => (await service.spin(key, { gameId, playerId: 'other', wagerUsd: 0.25 })).status === 200,
    'the new limit applies',
  );
  const before = await spins();
  const codes = await codesOf(`${functions}\n${steady}`);
  expect(Object.keys(codes)).toEqual(['200']);
  // Spins that autocannon no longer waited for happened as well.
  await until(async () => (await spins()) >= before + codes['200']!.count, 'the spins are committed');
});

test('the client, the OpenAPI documents and the service have the same version', async () => {
  const versionOf = (...path: string[]): string => JSON.parse(read(...path)).version;
  expect(versionOf('package.json')).toBe(API_VERSION);
  expect(versionOf('clients', 'typescript', 'package.json')).toBe(API_VERSION);
  for (const scope of ['partner', 'operator', 'play']) {
    expect(JSON.parse(read('openapi', `${scope}.v1.json`)).info.version).toBe(API_VERSION);
  }
  const { body } = await service.partner<{ version: string }>('GET', '/version', partner.key);
  expect(body.version).toBe(API_VERSION);
  for (const page of ['docs/quick-start.md', 'clients/typescript/README.md']) {
    for (const [, version] of read(page).matchAll(/spindle-client-([\d.]+)\.tgz/g))
      expect(version).toBe(API_VERSION);
  }
});
