/**
 * Cuts the answer to the first attempt of each spin through a proxy, at every byte in turn. A client that
 * kept the requestId must find exactly one spin.
 */
import { execFile, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Spindle } from '../../clients/typescript/src/index.js';
import { world } from '../setup/world.js';
import { type Cable, proxy } from '../support/proxy.js';
import { ROOT } from '../support/root.js';
import { parSheet } from '../support/sheets.js';
import { until } from '../support/wait.js';

const run = promisify(execFile);
/** More bytes than an answer has, including its head. */
const BYTES = 1600;
const LANES = 8;

const { service, partner } = world(
  { CELLS: '1' },
  { partner: { spinRateLimit: 1_000_000, apiRateLimit: 1_000_000 } },
);
let gameId: number;
const cables: Cable[] = [];

beforeAll(async () => {
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});
afterAll(async () => {
  await Promise.all(cables.map((cable) => cable.close()));
});

/** A proxy to the service that cuts the first answer to each requestId `…-<n>` after n bytes. */
async function cutting(): Promise<{ readonly url: string; readonly cut: Set<string> }> {
  const cable = await proxy(service.base);
  cables.push(cable);
  const cut = new Set<string>();
  cable.beforeRequest = (chunk) => {
    const [, requestId, bytes] = /"requestId": ?"(\w+-(\d+))"/.exec(chunk.toString()) ?? [];
    if (requestId === undefined || cut.has(requestId)) return;
    cut.add(requestId);
    void cable.cutAfter('answers', Number(bytes));
  };
  return { url: cable.url.replace(/\/$/, ''), cut };
}

/**
 * Runs several lanes of spins concurrently.
 * @param spinAll spins once with the requestId `<name>-<n>` for each n of a lane
 */
async function everyByte(
  name: string,
  spinAll: (url: string, places: readonly number[]) => Promise<unknown>,
): Promise<void> {
  const wanted = Array.from({ length: BYTES }, (_, i) => `${name}-${i + 1}`);
  await Promise.all(
    Array.from({ length: LANES }, async (_, lane) => {
      const places = Array.from({ length: BYTES / LANES }, (_, i) => 1 + lane + i * LANES);
      const { url, cut } = await cutting();
      await spinAll(url, places);
      expect(cut.size).toBe(places.length);
    }),
  );
  const client = new Spindle({ baseUrl: service.base, apiKey: partner.key });
  const booked = async (): Promise<string[]> => {
    const ids: string[] = [];
    for await (const { requestId } of client.playerSpins(name)) ids.push(String(requestId));
    return ids;
  };
  await until(async () => (await booked()).length >= BYTES, 'the spins are booked');
  expect((await booked()).sort()).toEqual(wanted.sort());
}

test('the TypeScript client spins once for each requestId wherever the answer is cut, and returns the requestId', async () => {
  await everyByte('ts', async (baseUrl, places) => {
    const client = new Spindle({ baseUrl, apiKey: partner.key });
    for (const place of places) {
      const requestId = `ts-${place}`;
      const spin = await client.spin({ gameId, playerId: 'ts', wagerUsd: 0.25, requestId });
      expect(spin.requestId).toBe(requestId);
    }
  });
}, 180_000);

test.skipIf(spawnSync('python3', ['--version']).status !== 0)(
  'the Python program of the quick start spins once for each requestId wherever the answer is cut',
  async () => {
    const page = readFileSync(join(ROOT, 'docs', 'quick-start.md'), 'utf8');
    const [calling, once] = [...page.matchAll(/```python\n([\s\S]*?)```/g)].map(([, code]) => code!);
    // In the quick start, an example call follows the function, so the call is removed. The pauses are
    // shortened because the test doesn't check them.
    const program = `${calling}\n${once!.split('\ngame = ')[0]!.replace('pause = 0.1', 'pause = 0.001')}`;
    await everyByte('py', (url, places) => {
      const loop = `for n in ${JSON.stringify(places)}:
    once("/spin", {"gameId": ${gameId}, "playerId": "py", "wagerUsd": 0.25, "requestId": f"py-{n}"})`;
      const env = {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        SPINDLE_URL: url,
        SPINDLE_KEY: partner.key,
      };
      return run('python3', ['-c', `${program}\n${loop}`], { env });
    });
  },
  180_000,
);
