/**
 * Tests the arithmetic of a communal event by calling the script's own functions: which tier fires, what a
 * budget pays, and how an amount is divided.
 */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SPLIT_WHOLE, TIER_AMOUNT_MAX_MICROS } from '../../../src/domain/communal.js';
import { writeRules, writeState } from '../../../src/engine/redis/communalRecords.js';
import { LUA_DIR, loadScript } from '../../../src/engine/redis/scriptLoader.js';
import { Cleanup } from '../../support/cleanup.js';
import { ownRedis, rawRedis } from '../../support/redis.js';

const cleanup = new Cleanup();
let redis: Redis;
let folder: string;

beforeAll(async () => {
  const { url } = await ownRedis(cleanup);
  redis = rawRedis(url);
  cleanup.add(() => redis.disconnect());
  folder = mkdtempSync(join(tmpdir(), 'spindle-lua-'));
  cleanup.add(() => rmSync(folder, { recursive: true }));
  symlinkSync(join(LUA_DIR, 'include'), join(folder, 'include'));
});
afterAll(() => cleanup.run());

/**
 * Evaluates a Lua expression for each list of arguments. The expression can use the functions of lua/include.
 * Numbers are returned as text because Redis would truncate them.
 */
async function ofScript(body: string, calls: readonly (readonly (string | number)[])[]): Promise<string[][]> {
  const lines = [
    '-- include: library',
    '-- include: communalSplit',
    'local replies = {}',
    'for i, text in ipairs(ARGV) do',
    '  local a = cjson.decode(text)',
    '  local given = {}',
    `  for n, value in ipairs({${body}}) do given[n] = type(value) == 'number' and format('%.0f', value) or tostring(value) end`,
    '  replies[i] = given',
    'end',
    'return replies',
  ];
  writeFileSync(join(folder, 'arithmetic.lua'), lines.join('\n'));
  const { source } = loadScript(folder, 'arithmetic');
  return (await redis.eval(source, 0, ...calls.map((call) => JSON.stringify(call)))) as string[][];
}

test('the split of a communal amount distributes all of it, in shares that differ by at most one micro-USD', async () => {
  const calls = fc.sample(
    fc.tuple(
      fc.integer({ min: 1, max: TIER_AMOUNT_MAX_MICROS }),
      fc.integer({ min: 0, max: SPLIT_WHOLE }),
      fc.integer({ min: 1, max: 200 }),
    ),
    500,
  );
  calls.push(
    [TIER_AMOUNT_MAX_MICROS, SPLIT_WHOLE - 1, 200],
    [TIER_AMOUNT_MAX_MICROS - 1, 3333, 7],
    [1, 5000, 3],
  );
  const divided = await ofScript('splitAmount(a[1], a[2], a[3], false)', calls);
  calls.forEach(([amount, split, community], i) => {
    const [part, each, leftOver] = divided[i]!.map(BigInt) as [bigint, bigint, bigint];
    expect(part, `${amount} ${split}`).toBe((BigInt(amount) * BigInt(split)) / BigInt(SPLIT_WHOLE));
    expect(part + each * BigInt(community) + leftOver).toBe(BigInt(amount));
    expect(leftOver).toBeLessThan(BigInt(community));
  });
});

test('an empty community leaves its part of a communal amount to the triggering player or in the budget', async () => {
  const [toTrigger] = await ofScript('splitAmount(a[1], a[2], 0, false)', [[101, 4000]]);
  const [toBudget] = await ofScript('splitAmount(a[1], a[2], 0, true)', [[101, 4000]]);
  expect([toTrigger, toBudget]).toEqual([
    ['101', '0', '0'],
    ['40', '0', '0'],
  ]);
});

test('a budget pays a communal event in full, in part, or not at all', async () => {
  const body = 'payable(a[1], a[2], a[3] == 1) or -1';
  const paid = await ofScript(body, [
    [5, 5, 0],
    [5, 6, 1],
    [5, 4, 0],
    [5, 4, 1],
    [5, 0, 1],
    [5, -1, 1],
  ]);
  expect(paid.flat()).toEqual(['5', '5', '-1', '4', '-1', '-1']);
});

test('only the highest communal tier whose spin count divides the counter fires', async () => {
  const spins = [10, 20, 60, 140];
  const rules = {
    enabled: true,
    triggerInterval: 10,
    triggerSplit: 5000,
    windowMinutes: 5,
    communitySize: 3,
    ...({ emptyCommunity: 'TO_TRIGGER', onShortBudget: 'SKIP' } as const),
    tiers: spins.map((triggerAtSpins, i) => ({
      tierLevel: i + 1,
      tierName: `T${i}`,
      triggerAtSpins,
      amountMicros: 1_000_001,
    })),
  };
  const calls = Array.from({ length: 850 }, (_, progress) => {
    const state = writeState({ version: 1, remembersPlayers: true, progress, budgetMicros: 0 });
    return [Buffer.concat([state, writeRules(7, rules)]).toString('hex')];
  });
  const unhex = `(string.gsub(a[1], '..', function(hex) return char(tonumber(hex, 16)) end))`;
  const levels = await ofScript(`(nextTier(readPot(${unhex})) or {level = 0}).level`, calls);
  levels.forEach(([level], progress) => {
    const dividing = spins.findLastIndex((each) => (progress + 1) % each === 0);
    expect(Number(level), `${progress}`).toBe(dividing + 1);
  });
});
