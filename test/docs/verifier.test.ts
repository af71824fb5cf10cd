/**
 * Runs the commands of the verifier's page, of docs/proofs.md, docs/raffles.md and docs/blackjack.md as
 * printed, with the file that the service publishes at /docs/verify.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { world } from '../setup/world.js';
import { docCode } from '../support/docBlocks.js';
import { ROOT } from '../support/root.js';
import { deal, newTable, play, playOut, type RoundAnswer } from '../support/rounds.js';
import { parSheet } from '../support/sheets.js';

const PAGE = 'verifier/README.md';
const FILE = 'spindle-verify.mjs';
const SPINS = 20;

const { service, partner } = world({ CELLS: '1' });
let folder: string;
let env: Record<string, string>;
let gameId: number;

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs shell commands in the folder. */
const sh = (program: string): Promise<Ran> =>
  new Promise((resolve) => {
    execFile('bash', ['--norc', '-euc', program], { cwd: folder, env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
const blockWith = (page: string, text: string): string =>
  docCode(page, 'sh')
    .find((code) => code.includes(text))!
    .replaceAll('https://spindle.example.com', service.base);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spindle-verifier-'));
  const sheet = parSheet('classic-3-reel');
  gameId = await service.newGame(partner.key, sheet);
  let spinId = '';
  for (let i = 0; i < SPINS; i++) {
    const body = { gameId, playerId: 'alice', wagerUsd: 0.25, requestId: `verified-${i}` };
    const answer = await service.partner<{ spinId: string }>('POST', '/spin', partner.key, body);
    expect(answer.status).toBe(200);
    spinId = answer.body.spinId;
    await writeFile(join(folder, 'answer.json'), answer.text);
  }
  await writeFile(join(folder, 'sheet.json'), JSON.stringify(sheet));
  await writeFile(join(folder, 'partner-key'), partner.key);
  const { text: policy } = await service.request('GET', '/log/policy');
  await writeFile(join(folder, 'policy.txt'), policy);
  const vkey = /^log (\S+)/m.exec(policy)![1]!;
  const path = process.env.PATH!;
  env = { PATH: path, HOME: folder, URL: service.base, KEY: partner.key, VKEY: vkey, SPIN: spinId };
  const proof = await service.partner('GET', `/spins/${spinId}/proof`, partner.key);
  await writeFile(join(folder, 'proof.json'), proof.text);
  // The service publishes the file of its build.
  copyFileSync(join(ROOT, 'dist', 'verifier', FILE), join(folder, FILE));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

test('the page of the verifier has the checksums of the files that the service serves', async () => {
  const { text: page } = await service.request('GET', '/docs/verify');
  for (const name of [FILE, 'verify.mjs']) {
    const served = await fetch(`${service.base}/docs/verify/${name}`);
    expect(served.headers.get('content-type')).toBe('text/javascript; charset=utf-8');
    const bytes = Buffer.from(await served.arrayBuffer());
    expect(page).toContain(createHash('sha256').update(bytes).digest('hex'));
    expect(bytes.equals(readFileSync(join(ROOT, 'dist', 'verifier', name)))).toBe(true);
  }
  const manifest = readFileSync(join(ROOT, 'manifest.sha256'), 'utf8');
  const sums = (await service.request('GET', '/docs/verify/SHA256SUMS')).text;
  for (const line of sums.trimEnd().split('\n')) {
    const [sum, name] = line.split('  ');
    expect(manifest).toContain(`${sum}  dist/verifier/${name}\n`);
  }
});

test('the published verifier is downloaded, checked and started by the commands of its page', async () => {
  const { code, stdout, stderr } = await sh(blockWith(PAGE, 'SHA256SUMS'));
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain(`${FILE}: OK`);
  for (const command of ['verify ', 'verify-pool ', 'verify-round ', 'witness '])
    expect(stdout).toContain(command);
  expect(existsSync(join(folder, FILE))).toBe(true);
});

test('the module of the verifier proves a spin with the program of its page', async () => {
  const { code, stdout, stderr } = await sh(blockWith(PAGE, 'import { verify }'));
  expect([code, stdout, stderr]).toEqual([0, '[]\n', '']);
});

test('the published verifier proves a spin and names the fault of a changed proof, as docs/proofs.md shows', async () => {
  const good = await sh(blockWith('docs/proofs.md', '--log-key "$VKEY"'));
  expect([good.code, good.stdout]).toEqual([0, expect.stringMatching(/^PROVEN: spin /)]);
  const fixed = await sh(blockWith('docs/proofs.md', '--seen checkpoint.txt --url $URL'));
  expect([fixed.code, fixed.stderr]).toEqual([0, '']);
  expect(fixed.stdout).toMatch(
    /^PROVEN: [^\n]+\n {2}Fixed before you saved the checkpoint of \d+ records\. That proves something only/,
  );
  const proof = JSON.parse(await readFile(join(folder, 'proof.json'), 'utf8'));
  const changed = { ...proof, outcome: { ...proof.outcome, code: proof.outcome.code === 0 ? 1 : 0 } };
  await writeFile(join(folder, 'changed.json'), JSON.stringify(changed));
  const bad = await sh(`node ${FILE} verify changed.json --log-key "$VKEY"`);
  expect([bad.code, bad.stdout]).toEqual([1, expect.stringContaining('NOT PROVEN\n  outcome: ')]);
  const wrong = await sh(`node ${FILE} verify absent.json --log-key "$VKEY" --json`);
  expect([wrong.code, wrong.stdout]).toEqual([2, '']);
  expect(JSON.parse(wrong.stderr).error.message).toContain('Cannot read absent.json');
});

test('the published verifier proves the history of a game, as docs/proofs.md shows', async () => {
  const shown = blockWith('docs/proofs.md', '--state game-1.json').replace('--game 1', `--game ${gameId}`);
  const { code, stdout, stderr } = await sh(shown);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(new RegExp(`^PROVEN: game ${gameId}, \\d+ records in the log\\n`));
  // Random times may name the same spin more than once.
  expect(stdout).toMatch(/ [1-9]\d* spins checked\n/);
  expect(existsSync(join(folder, 'game-1.json'))).toBe(true);
});

test('the published verifier proves the pool of docs/raffles.md, and finds an exchanged commitment', async () => {
  const pool = JSON.parse(docCode('docs/raffles.md', 'json')[0]!) as { poolCommitment: string };
  await writeFile(join(folder, 'pool.json'), JSON.stringify(pool));
  const command = blockWith('docs/raffles.md', 'verify-pool').split('\n')[1]!;
  const ask = (commitment: string) => sh(command.replace('COMMITMENT_NOTED_WHEN_IT_WAS_SEALED', commitment));
  const good = await ask(pool.poolCommitment);
  expect([good.code, good.stdout]).toEqual([0, expect.stringMatching(/^PROVEN: game 7, 5 tickets/)]);
  const bad = await ask('0'.repeat(64));
  expect([bad.code, bad.stdout]).toEqual([1, expect.stringContaining('this is not the sealed pool')]);
});

test('the published verifier proves a round by the commands of docs/blackjack.md, and finds a changed card', async () => {
  const table = await newTable(service, partner.partnerId);
  const { body: dealt } = await deal(service, partner.key, table, 'alice', 'verified-round');
  const { roundId, shoe } = await playOut(service, partner.key, dealt);
  const shown = blockWith('docs/blackjack.md', 'verify-round')
    .replace('32ba64c0443dd3ef0747a1737bf2fa44', roundId)
    .replace('COMMITMENT_THAT_THE_DEAL_SHOWED', shoe.commitment);
  const good = await sh(shown);
  expect([good.code, good.stdout]).toEqual([0, expect.stringMatching(/^PROVEN: round /)]);
  const { text } = await play<RoundAnswer>(service, partner.key, 'GET', `/rounds/${roundId}`);
  const round = JSON.parse(text) as { dealer: { cards: string[] } };
  round.dealer.cards[0] = round.dealer.cards[0] === 'As' ? '2s' : 'As';
  await writeFile(join(folder, 'changed-round.json'), JSON.stringify(round));
  expect((await sh(`node ${FILE} verify-round changed-round.json`)).code).toBe(1);
});
