/**
 * Tests the descriptions in ARCHITECTURE.md of how a spin, a ticket, a round's action and a request id are
 * processed. Such a request must execute code in every file that its description names.
 */
import { readFileSync } from 'node:fs';
import { type Profiler, Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { outboxKey } from '../../../src/engine/redis/keys.js';
import { LUA_DIR, loadScript } from '../../../src/engine/redis/scriptLoader.js';
import { world } from '../../setup/world.js';
import { rawRedis } from '../../support/redis.js';
import { untilReleased } from '../../support/requestSegments.js';
import { ROOT } from '../../support/root.js';
import { act, dealUntil, isPlaying, newTable } from '../../support/rounds.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

/**
 * Returns the files that ARCHITECTURE.md names for a kind of request, in their order. A spin has a section,
 * and every other kind has a paragraph.
 */
const filesOf = (life: string): string[] => {
  const page = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
  const part =
    life === 'A spin'
      ? page.split('## The life of a spin\n')[1]?.split('\n## ')[0]
      : page.split(`**${life}**`)[1]?.split('\n\n')[0];
  return [...(part ?? '').matchAll(/`((?:src|lua)\/[\w./]+\.(?:ts|lua))`/g)].map(([, file]) => file!);
};

const { stores, service, partner } = world({ CELLS: '1', REQUEST_ID_WINDOW_S: '1' });
const session = new Session();

beforeAll(async () => {
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
});

afterAll(async () => {
  session.disconnect();
});

const named = ({ functions }: Profiler.ScriptCoverage): boolean =>
  functions.some(({ functionName, ranges }) => functionName !== '' && ranges[0]!.count > 0);

/**
 * Returns the source files of the service in which at least one function was executed during the callback.
 */
async function ranIn(play: () => Promise<unknown>): Promise<Set<string>> {
  await session.post('Profiler.takePreciseCoverage');
  await play();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const urls = result.filter(named).map(({ url }) => url.split('?')[0]!.replace('file://', ''));
  return new Set(urls.filter((url) => url.startsWith(ROOT)).map((url) => url.slice(ROOT.length + 1)));
}

/** Returns the Lua files that make up an operation. */
function composedOf(operation: string): Set<string> {
  const { source, locate } = loadScript(LUA_DIR, operation);
  return new Set(source.split('\n').map((_, i) => `lua/${locate(i + 1).split(':')[0]}`));
}

function expectLife(life: string, ran: ReadonlySet<string>, ...operations: string[]): void {
  const lua = operations.flatMap((operation) => [...composedOf(operation)]);
  const files = filesOf(life);
  expect(files.length).toBeGreaterThan(3);
  expect(files.filter((file) => !ran.has(file) && !lua.includes(file))).toEqual([]);
}

/** ARCHITECTURE.md must name every file of these folders whose code is executed by a spin. */
const OF_A_SPIN = ['src/api/spins/', 'src/engine/cells/'];
/** Files of periodic tasks, which may run while the spin does. */
const IN_BACKGROUND = ['answered.store', 'ownedWork', 'playerStatuses.store', 'playerBlocking'].map(
  (name) => `src/engine/cells/${name}.ts`,
);

test('a spin executes code of every file that ARCHITECTURE.md names for it, and of no other file in the folders of spins', async () => {
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const request = { gameId, playerId: 'spins', wagerUsd: 0.25, requestId: 'spin' };
  const redis = rawRedis(stores.redisUrl);
  const ran = await ranIn(async () => {
    expect((await service.spin(partner.key, request)).status).toBe(200);
    await until(async () => (await redis.xlen(outboxKey(0))) === 0, 'the spin is committed and trimmed');
  });
  redis.disconnect();
  expectLife('A spin', ran, 'deal');
  const passed = [...ran].filter(
    (file) => OF_A_SPIN.some((folder) => file.startsWith(folder)) && !IN_BACKGROUND.includes(file),
  );
  expect(passed.length).toBeGreaterThan(10);
  expect(passed.filter((file) => !filesOf('A spin').includes(file))).toEqual([]);
});

test('a raffle ticket executes code of every file that ARCHITECTURE.md names for it', async () => {
  const prizes = [{ prizeName: 'Car', prizeTier: 1, valueUsd: 5, count: 1 }];
  const raffle = { ticketPriceUsd: 0.5, poolSize: 10, prizes };
  const gameId = await service.api.newRaffle(partner.partnerId, 'raffle', raffle);
  const ran = await ranIn(async () => {
    const request = { gameId, playerId: 'buys', wagerUsd: 0.5, requestId: 'ticket' };
    expect((await service.spin(partner.key, request)).status).toBe(200);
  });
  expectLife('A ticket', ran, 'deal');
});

test('the action of a blackjack round executes code of every file that ARCHITECTURE.md names for it', async () => {
  const table = await newTable(service, partner.partnerId);
  const round = await dealUntil(service, partner.key, table, 'plays', isPlaying);
  const ran = await ranIn(async () => {
    expect((await act(service, partner.key, round.roundId, 'stand', 1)).status).toBe(200);
  });
  expectLife("A round's action", ran, 'roundAct');
});

test('a retried request id executes code of every file that ARCHITECTURE.md names for it', async () => {
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const request = { gameId, playerId: 'repeats', wagerUsd: 0.25, requestId: 'again' };
  const redis = rawRedis(stores.redisUrl);
  const ran = await ranIn(async () => {
    const first = await service.spin(partner.key, request);
    expect(first.status).toBe(200);
    await untilReleased(redis, 0);
    expect((await service.spin(partner.key, request)).text).toBe(first.text);
  });
  redis.disconnect();
  expectLife('A request id', ran, 'deal', 'requestSegments');
});
