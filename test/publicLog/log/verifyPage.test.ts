/**
 * Tests the page /verify in a real Chromium: what the page proves, which faults it names, and that it
 * contacts no host.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import { openBrowser } from '../../support/chromium.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

interface Proof {
  gameId: number;
  outcome: { index: number; code: number; nonce: string };
  path: string[];
  salt: string;
  label: string;
  logIndex: number;
  tlogProof: string;
  [member: string]: unknown;
}
interface Given {
  proof: unknown;
  trust: string;
  math?: unknown;
  spin?: unknown;
  seen?: string;
}

const WAIT_MS = 60_000;
const browser = await openBrowser('The page /verify');
const flipped = (hex: string): string => (hex[0] === '0' ? '1' : '0') + hex.slice(1);

describe.skipIf(browser === undefined)('the page /verify', { timeout: 5 * WAIT_MS }, () => {
  let stores: TestStores;
  let service: Awaited<ReturnType<typeof startService>>;
  let given: Given & { proof: Proof; spin: Record<string, unknown> };
  const sheet = parSheet('classic-3-reel');
  const folder = mkdtempSync(join(tmpdir(), 'spindle-verify-'));
  /** Errors and warnings of the browser, and every address that it requested. */
  const complaints: string[] = [];
  let asked: string[] = [];

  beforeAll(async () => {
    stores = await freshStores();
    service = await startService(stores, { CELLS: '1' });
    const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
    const [log] = await sql<{ vkeys: string[] }[]>`SELECT vkeys FROM logs`;
    await sql.end();
    const { key } = await service.newPartner();
    const gameId = await service.newGame(key, sheet);
    const { body } = await service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
    const spin = body as Record<string, unknown>;
    const proof = await service.request<Proof>('GET', `/api/partner/v1/spins/${spin.spinId}/proof`, { key });
    expect(proof.status).toBe(200);
    given = { proof: proof.body, trust: log!.vkeys[0]!, math: sheet, spin };
  });
  afterAll(async () => {
    await browser?.close();
    await service?.stop();
    await stores?.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function opened(address: string, colorScheme: 'light' | 'dark' = 'light'): Promise<Page> {
    const page = await (await browser!.newContext({ colorScheme })).newPage();
    page.setDefaultTimeout(WAIT_MS);
    asked = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    page.on('request', (request) => asked.push(request.url()));
    await page.goto(address);
    return page;
  }

  /** Fills in the form and returns the verdict of the page, line by line. */
  async function verdict(page: Page, { proof, trust, math, spin, seen = '' }: Given): Promise<string[]> {
    const fill = (name: string, text: string) => page.locator(`textarea[name=${name}]`).fill(text);
    const jsonOf = (value: unknown): string => (value === undefined ? '' : JSON.stringify(value));
    await fill('proof', jsonOf(proof));
    await fill('trust', trust);
    await fill('math', jsonOf(math));
    await fill('spin', jsonOf(spin));
    await fill('seen', seen);
    await page.getByRole('button', { name: 'Verify' }).click();
    const output = page.locator('output');
    await output.filter({ hasText: /PROVEN|can't be read/ }).waitFor();
    return (await output.innerText()).split('\n');
  }

  const seenOf = ({ tlogProof }: Proof): string => tlogProof.slice(tlogProof.indexOf('\n\n') + 2);

  test('the verify page proves a real spin, requests no other address, and works when saved to disk', async () => {
    const page = await opened(`${service.base}/verify`);
    const whole = { ...given, seen: seenOf(given.proof) };
    expect((await verdict(page, whole))[0]).toBe('PROVEN');
    expect((await page.locator('output').innerText()).split('\n')[1]).toMatch(
      /^The outcome was fixed before you saved the checkpoint of size \d+\. That proves something only/,
    );
    expect(asked).toEqual([`${service.base}/verify`]);
    await page.context().close();

    const file = join(folder, 'verify.html');
    writeFileSync(file, (await service.request('GET', '/verify')).text);
    const saved = await opened(pathToFileURL(file).href);
    expect(await verdict(saved, given)).toEqual([
      'PROVEN',
      'The outcome is in the log. To check that it was fixed before the bet, add a checkpoint that you saved before the bet.',
    ]);
    expect(asked).toEqual([pathToFileURL(file).href]);
    await saved.context().close();
    expect(complaints).toEqual([]);
  });

  test('the verify page redraws a revealed block and names its faults', async () => {
    const rotated = await service.operator('POST', `/games/${given.proof.gameId}/rotate`, {
      reason: 'shown',
    });
    expect(rotated.status).toBe(200);
    const path = `/api/operator/v1/games/${given.proof.gameId}/blocks/0`;
    const read = () => service.request<{ reveal: object | null }>('GET', path, { key: OPERATOR_KEY });
    await until(async () => (await read()).body.reveal !== null, 'the block is revealed');
    const { body: block } = await read();
    const page = await opened(`${service.base}/verify`);
    const { trust, math } = given;
    expect((await verdict(page, { proof: block, trust, math }))[0]).toBe('PROVEN');
    const other = { ...block, reveal: { ...block.reveal, seed: '0'.repeat(64) } };
    expect(await verdict(page, { proof: other, trust, math })).toEqual([
      'NOT PROVEN',
      'number 0: the revealed seed and nonce do not match the commitment',
    ]);
    await page.context().close();
  });

  test('the verify page names the fault of each of ten broken proofs', async () => {
    const { proof, spin } = given;
    const another = (part: object): Given => ({ ...given, proof: { ...proof, ...part } });
    const outcome = (part: object): Given => another({ outcome: { ...proof.outcome, ...part } });
    const signature = proof.tlogProof.lastIndexOf(' ') + 20;
    const turned = proof.tlogProof[signature] === 'A' ? 'B' : 'A';
    const forged = proof.tlogProof.slice(0, signature) + turned + proof.tlogProof.slice(signature + 1);
    const broken: [string, Given][] = [
      ['proof: the format is', another({ format: 'spindle proof v2' })],
      ['checkpoint: the signature of', another({ tlogProof: forged })],
      ['logged: logIndex is', another({ logIndex: proof.logIndex + 1 })],
      ['logged: the record is not at', another({ salt: flipped(proof.salt) })],
      ['entry: the entry belongs to game', another({ gameId: proof.gameId + 1 })],
      ['outcome: the outcome is not in the logged block', outcome({ code: proof.outcome.code ^ 1 })],
      ['outcome: outcome.nonce must be', outcome({ nonce: `${proof.outcome.nonce.slice(0, -1)}G` })],
      ['outcome: the path has', another({ path: proof.path.slice(1) })],
      ['math: the hash of the sheet differs', { ...given, math: { ...sheet, certifiedRtp: 0.5 } }],
      ['answer: the response pays', { ...given, spin: { ...spin, outcome: paying(spin.outcome) } }],
    ];
    const page = await opened(`${service.base}/verify`);
    for (const [line, each] of broken) {
      const [head, ...faults] = await verdict(page, each);
      expect([line, head]).toEqual([line, 'NOT PROVEN']);
      expect(
        faults.some((fault) => fault.startsWith(line)),
        `${line}: ${faults.join('; ')}`,
      ).toBe(true);
    }
    expect(asked).toEqual([`${service.base}/verify`]);
    await page.context().close();
    expect(complaints).toEqual([]);
  });

  const paying = (outcome: unknown): object => {
    const { payoutUsd, ...rest } = outcome as { payoutUsd: number };
    return { ...rest, payoutUsd: payoutUsd + 1 };
  };

  test.each(['light', 'dark'] as const)(
    'the verify page passes the accessibility checks of axe in %s mode',
    async (scheme) => {
      const page = await (await browser!.newContext({ colorScheme: scheme, bypassCSP: true })).newPage();
      await page.goto(`${service.base}/verify`);
      await page.evaluate(
        readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8'),
      );
      const found = (): Promise<unknown> =>
        page.evaluate(
          `axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))`,
        );
      expect(await found()).toEqual([]);
      await verdict(page, given);
      expect(await found()).toEqual([]);
      await verdict(page, { ...given, proof: { ...given.proof, gameId: 1 } });
      expect(await found()).toEqual([]);
      await page.context().close();
    },
  );
});
