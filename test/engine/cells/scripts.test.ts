import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { TOTALS } from '../../../src/domain/layouts.js';
// The tests of this file monitor the Redis calls of each operation: a read after a write fails the test.
import { type BatchItem, type CountItem, KIND } from '../../../src/engine/cells/batch.js';
import { CellFiller } from '../../../src/engine/redis/cellFiller.js';
import {
  cellToken,
  isGame,
  readAhead,
  readGame,
  readOutbox,
  readPlayer,
  totalsOfLast,
  writeBooked,
} from '../../../src/engine/redis/cellRecords.js';
import type { CellStore } from '../../../src/engine/redis/cellStore.js';
import {
  blockKey,
  cellKey,
  gamesKey,
  idempotencyKey,
  outboxKey,
  partnersKey,
  playersKey,
} from '../../../src/engine/redis/keys.js';
import {
  EpochError,
  NotSentError,
  OutrunError,
  RefusedError,
  StaleError,
} from '../../../src/engine/redis/scriptErrors.js';
import { Scripts } from '../../../src/engine/redis/scripts.js';
import { SPIN_STATUS } from '../../../src/engine/redis/statuses.js';
import { world } from '../../setup/world.js';
import { Cleanup } from '../../support/cleanup.js';
import {
  CELL,
  dealOnce,
  GAME_ID,
  game,
  item,
  OUTBOX_MAX,
  PAYOUTS,
  partner,
  watchedLua,
} from '../../support/dealing.js';
import { type OpenNodes, openNodes, ownRedis, rawRedis } from '../../support/redis.js';
import { CLAIMED, openedAt } from '../../support/requestSegments.js';

const { stores } = world();
let luaDir: string;
let redis: Redis;
let nodes: OpenNodes;
const cell = (): CellStore => nodes.nodes.cell(CELL);
let scripts: Scripts;

const run = (items: BatchItem[], options = {}) => dealOnce(scripts, items, options);
const outcomes = (...codes: number[]): Buffer => Buffer.from(Uint16Array.from(codes).buffer);
const load = (from: number, ...codes: number[]) =>
  cell().loadBlock(CLAIMED, GAME_ID, from, outcomes(...codes));
const outbox = async () => {
  const batches = (await redis.xrangeBuffer(outboxKey(CELL), '-', '+')) as [Buffer, Buffer[]][];
  return batches.flatMap(([, fields]) => readOutbox(fields[1]!));
};
const everything = async () => {
  const state: Record<string, unknown> = {};
  for (const key of (await redis.keys('*')).sort())
    state[key] = (await redis.dumpBuffer(key)).toString('hex');
  return state;
};

async function open(url: string): Promise<void> {
  redis = rawRedis(url);
  nodes = await openNodes(url, luaDir);
  scripts = new Scripts(nodes.nodes, { outboxMax: OUTBOX_MAX });
}

beforeAll(async () => {
  luaDir = watchedLua();
  await open(stores.redisUrl);
});
beforeEach(async () => {
  await redis.flushdb();
  await redis.hset(cellKey(CELL), openedAt(cellToken('1', nodes.node.serverId!)));
});
afterAll(async () => {
  redis.disconnect();
  nodes.close();
  rmSync(luaDir, { recursive: true });
});

describe('the spin script (lua/deal.lua)', () => {
  test('the spin script deals the outcomes of the blocks in order, across the end of a block', async () => {
    await load(0, 0, 1);
    await load(2, 2, 0, 1);
    const { statuses, cores } = await run([item(), item(), item()]);
    expect(statuses).toEqual([SPIN_STATUS.dealt, SPIN_STATUS.dealt, SPIN_STATUS.dealt]);
    expect(cores.map((core) => core.readUInt16LE(8))).toEqual([0, 1, 2]);
    const record = readGame((await redis.hgetBuffer(gamesKey(CELL), String(GAME_ID)))!);
    expect(record).toEqual({ nextIndex: 3, queueEnd: 5, blockFrom: 2, blockEnd: 5, readyBlocks: 1 });
    expect((await run([item(), item(), item()])).statuses).toEqual([
      SPIN_STATUS.dealt,
      SPIN_STATUS.dealt,
      SPIN_STATUS.queueExhausted,
    ]);
  });

  test('the spin script reads outcomes ahead and deals each outcome once, across blocks of any length', async () => {
    const lengths = [3, 16, 1, 40, 17, 2];
    const dealt = Array.from(
      { length: lengths.reduce((sum, length) => sum + length) },
      (_, i) => (i * 7) % PAYOUTS.length,
    );
    let from = 0;
    for (const length of lengths) {
      await load(from, ...dealt.slice(from, from + length));
      from += length;
    }
    const got: number[] = [];
    for (let spins = 1; got.length < dealt.length; spins = (spins % 5) + 1) {
      const { statuses, cores } = await run(Array.from({ length: spins }, () => item()));
      got.push(
        ...cores.filter((_, i) => statuses[i] === SPIN_STATUS.dealt).map((core) => core.readUInt16LE(8)),
      );
      const record = (await redis.hgetBuffer(gamesKey(CELL), String(GAME_ID)))!;
      const { nextIndex } = readGame(record);
      expect(nextIndex).toBe(got.length);
      const ahead = Array.from({ length: readAhead(record).length / 2 }, (_, i) =>
        readAhead(record).readUInt16LE(2 * i),
      );
      expect(ahead.length).toBeLessThan(16);
      expect(ahead).toEqual(dealt.slice(nextIndex, nextIndex + ahead.length));
    }
    expect(got).toEqual(dealt);
    expect(
      (await outbox()).filter(({ kind }) => kind === 'spin').map(({ outcomeIndex }) => outcomeIndex),
    ).toEqual(dealt.map((_, index) => index));
  });

  test("the spin script reads ahead no more outcomes than a game's record may hold, even if some spins are refused", async () => {
    await load(0, ...Array.from({ length: 200 }, (_, i) => i % PAYOUTS.length));
    await run([item({ requestId: 'first' })]);
    const repeated = Array.from({ length: 60 }, () => item({ requestId: 'first' }));
    // The first call has read 15 outcomes ahead. Each further call reads as many outcomes as the batch has
    // spins.
    for (let call = 1; call <= 16; call++) {
      expect((await run([...repeated, item()])).statuses.at(-1)).toBe(SPIN_STATUS.dealt);
      const record = (await redis.hgetBuffer(gamesKey(CELL), String(GAME_ID)))!;
      expect(isGame(record)).toBe(true);
      expect(readGame(record).nextIndex).toBe(1 + call);
    }
  });

  test('the spin script writes an opening and each spin to the outbox, numbered, chained and with exact amounts', async () => {
    await load(0, 1, 2, 0);
    await run([item({ requestId: 'r1' }), item(), item({ playerId: 'bob' })]);
    const entries = await outbox();
    expect(
      entries.map(
        ({ kind, playerId, entryNumber, creditMicros, wagerMicros, balanceMicros, outcomeIndex }) => [
          kind,
          playerId,
          entryNumber,
          creditMicros,
          wagerMicros,
          balanceMicros,
          outcomeIndex,
        ],
      ),
    ).toEqual([
      ['opening', 'alice', 1, 1_000_000, 0, 1_000_000, 0],
      ['spin', 'alice', 2, 2_500_000, 250_000, 3_250_000, 0],
      ['spin', 'alice', 3, 77_000, 250_000, 3_077_000, 1],
      ['opening', 'bob', 1, 1_000_000, 0, 1_000_000, 0],
      ['spin', 'bob', 2, 0, 250_000, 750_000, 2],
    ]);
    expect(entries[1]!.previousId).toBe(entries[0]!.id);
    expect(entries[2]!.previousId).toBe(entries[1]!.id);
    expect(entries[1]!.requestId).toBe('r1');
    const ids = entries.map((entry) => entry.id);
    expect([...ids].sort((a, b) => (a < b ? -1 : 1))).toEqual(ids);
    const alice = readPlayer((await redis.hgetBuffer(playersKey(CELL), '7:alice'))!);
    expect(alice).toMatchObject({ balanceMicros: 3_077_000, entries: 3, newestEntryId: entries[2]!.id });
  });

  test('the spin script answers a repeated operation with the stored reply and changes nothing', async () => {
    await load(0, 1, 2, 0);
    const first = await run([item(), item({ requestId: 'x' })], { operation: 77 });
    const before = await everything();
    const again = await run([item(), item({ requestId: 'x' })], { operation: 77 });
    expect(again.buffer).toEqual(first.buffer);
    expect(await everything()).toEqual(before);
  });

  test('the spin script refuses an operation that is older than the newest one and changes nothing', async () => {
    await load(0, 1, 2, 0);
    await run([item()], { operation: 77 });
    await run([item()], { operation: 78 });
    const before = await everything();
    await expect(run([item()], { operation: 77 })).rejects.toThrow(StaleError);
    expect(await everything()).toEqual(before);
  });

  test('the spin script does not deal an outcome that the PAR sheet lacks', async () => {
    await load(0, PAYOUTS.length);
    expect((await run([item()])).statuses).toEqual([SPIN_STATUS.noBlock]);
    expect(await redis.exists(playersKey(CELL), outboxKey(CELL))).toBe(0);
  });

  test('the spin script detects a repeated requestId within one batch', async () => {
    await load(0, 1, 2, 0, 1);
    const { statuses, cores } = await run([
      item({ requestId: 'same' }),
      item({ requestId: 'same' }),
      item({ requestId: 'same', playerId: 'bob' }),
      item(),
    ]);
    expect(statuses).toEqual([
      SPIN_STATUS.dealt,
      SPIN_STATUS.replay,
      SPIN_STATUS.conflict,
      SPIN_STATUS.dealt,
    ]);
    expect(cores[1]).toEqual(cores[0]);
    expect(cores[3]!.readUInt16LE(8)).toBe(2);
  });

  test('two versions of a game in one batch are dealt from the same queue', async () => {
    await load(0, 0, 1, 2);
    const { cores } = await run([item(), item({ game: { ...game } }), item({ partner: { ...partner } })]);
    expect(cores.map((core) => core.readUInt16LE(8))).toEqual([0, 1, 2]);
  });

  test('the spin script answers a denied request only if its requestId is bound', async () => {
    await load(0, 1, 2);
    await run([item({ requestId: 'bound' })]);
    const { statuses } = await run([
      item({ requestId: 'bound', isDenied: true }),
      item({ requestId: 'bound', isDenied: true, mayEqual: false }),
      item({ requestId: 'free', isDenied: true }),
      item({ isDenied: true }),
      item({ requestId: 'bound', mayBeBound: true }),
      item({ requestId: 'free', mayBeBound: true }),
    ]);
    expect(statuses).toEqual([
      SPIN_STATUS.replay,
      SPIN_STATUS.conflict,
      SPIN_STATUS.denied,
      SPIN_STATUS.denied,
      SPIN_STATUS.replay,
      SPIN_STATUS.mayBeBound,
    ]);
  });

  test('a spin that the script refuses binds no requestId and creates no player', async () => {
    const { statuses } = await run([item({ requestId: 'r' })]);
    expect(statuses).toEqual([SPIN_STATUS.noBlock]);
    expect(await redis.exists(playersKey(CELL), outboxKey(CELL))).toBe(0);
    await load(0, 1);
    expect((await run([item({ requestId: 'r' })])).statuses).toEqual([SPIN_STATUS.dealt]);
  });

  test('the spin script counts spins and API requests in separate windows and stops at the limit', async () => {
    const limited = { ...partner, spinRateLimit: 3, apiRateLimit: 2 };
    const count = (kind: CountItem['kind']): CountItem => ({ kind, partner: limited });
    const { statuses, reply } = await run([
      ...Array.from({ length: 4 }, () => count(KIND.countSpin)),
      ...Array.from({ length: 3 }, () => count(KIND.countApi)),
    ]);
    expect(statuses).toEqual([9, 9, 9, 3, 9, 9, 3]);
    const minute = Math.floor(reply.timeMs / 60_000);
    const record = (await redis.hgetBuffer(partnersKey(CELL), '7'))!;
    expect([record.readUInt32LE(0), record.readUInt32LE(4), record.readUInt32LE(12)]).toEqual([minute, 3, 2]);
    // A request that an earlier call has counted is dealt even if the window is full now, and is not counted
    // again.
    await load(0, 1, 1);
    const counted = item({ kind: KIND.dealCounted, partner: limited, requestId: 'r' });
    const later = await run([count(KIND.countSpin), counted, counted]);
    if (Math.floor(later.reply.timeMs / 60_000) === minute) expect(later.statuses).toEqual([3, 0, 1]);
    expect(later.statuses.slice(1)).toEqual([SPIN_STATUS.dealt, SPIN_STATUS.replay]);
    const after = (await redis.hgetBuffer(partnersKey(CELL), '7'))!;
    if (after.readUInt32LE(0) === minute) expect(after.readUInt32LE(4)).toBe(3);
  });

  test('the spin script checks balance, funding and the maximum amount of money before it deals', async () => {
    await load(0, 1, 1, 1);
    const poor = { ...partner, partnerId: 8, balanceMode: 'enforce' as const, openingBalanceMicros: 249_999 };
    const bare = { ...partner, partnerId: 9, fundingMicros: 2_499_999 };
    const rich = { ...partner, partnerId: 10, openingBalanceMicros: 9_000_000_000_000_000 };
    const { statuses } = await run([poor, bare, rich].map((p) => item({ partner: p })));
    expect(statuses).toEqual([
      SPIN_STATUS.insufficientBalance,
      SPIN_STATUS.fundingUnavailable,
      SPIN_STATUS.overflow,
    ]);
    expect(readGame((await redis.hgetBuffer(gamesKey(CELL), String(GAME_ID)))!).nextIndex).toBe(0);
  });

  test('the spin script changes nothing in a cell that has another epoch', async () => {
    await load(0, 1);
    const before = await everything();
    await expect(run([item()], { epoch: '2' })).rejects.toThrow(EpochError);
    expect(await everything()).toEqual(before);
  });

  test('the spin script refuses a spin if Redis is out of memory, without a partial write', async () => {
    const cleanup = new Cleanup();
    const before = { redis, nodes, scripts };
    try {
      await open((await ownRedis(cleanup)).url);
      await redis.hset(cellKey(CELL), openedAt(cellToken('1', nodes.node.serverId!)));
      await load(0, 1, 2);
      await run([item()]);
      const state = await everything();
      await redis.config('SET', 'maxmemory', '1');
      await expect(run([item({ requestId: 'r' })])).rejects.toThrow(RefusedError);
      expect(await everything()).toEqual(state);
    } finally {
      redis.disconnect();
      nodes.close();
      ({ redis, nodes, scripts } = before);
      await cleanup.run();
    }
  });

  test('the spin script deals nothing while the outbox is full, but still answers replays', async () => {
    await load(0, ...Array.from({ length: 1000 }, () => 0));
    const first = await run([item({ requestId: 'first' })]);
    for (let left = 498; left > 0; left -= 250) {
      const { statuses } = await run(Array.from({ length: Math.min(250, left) }, () => item()));
      expect(new Set(statuses)).toEqual(new Set([SPIN_STATUS.dealt]));
    }
    const last = (await redis.hgetBuffer(cellKey(CELL), 'last'))!;
    // The opening of the only player counts as an outbox entry as well.
    expect(totalsOfLast(last).entries).toBe(500);
    const before = await outbox();
    const full = await run([item(), item({ requestId: 'first' }), item({ requestId: 'second' })]);
    expect(full.statuses).toEqual([SPIN_STATUS.outboxFull, SPIN_STATUS.replay, SPIN_STATUS.outboxFull]);
    expect(full.cores[1]).toEqual(first.cores[0]);
    expect(await outbox()).toEqual(before);
    const booked = writeBooked({ id: 1n, totals: { ...totalsOfLast(last), entries: 499 } });
    await redis.hset(cellKey(CELL), 'booked', booked);
    expect((await run([item({ requestId: 'second' })])).statuses).toEqual([SPIN_STATUS.dealt]);
  });

  test('each outbox record states how many entries and bytes preceded it', async () => {
    await load(0, 0, 0, 0, 0);
    await run([item(), item()]);
    await run([item()]);
    const [one, two] = (await redis.xrangeBuffer(outboxKey(CELL), '-', '+')) as [Buffer, Buffer[]][];
    expect(TOTALS.read(one![1][3]!)).toEqual({ entries: 0, bytes: 0 });
    expect(TOTALS.read(two![1][3]!)).toEqual({ entries: 3, bytes: one![1][1]!.length });
    const last = (await redis.hgetBuffer(cellKey(CELL), 'last'))!;
    const bytes = one![1][1]!.length + two![1][1]!.length;
    expect(totalsOfLast(last)).toEqual({ entries: 4, bytes });
  });

  test('entry ids increase even if the clock of Redis goes back', async () => {
    await load(0, 0, 0, 0, 0);
    await run([item()]);
    const last = Buffer.alloc(20);
    const ahead = Date.now() + 3_600_000;
    last.writeUIntLE(ahead, 0, 6);
    last.writeUInt16LE(16_383, 6);
    await redis.hset(cellKey(CELL), 'last', last);
    await run([item(), item()]);
    const entries = await outbox();
    expect(entries.slice(-2).map((entry) => entry.timeMs)).toEqual([ahead + 1, ahead + 1]);
  });

  test('finds a requestId that was bound before the clock of Redis went back', async () => {
    await load(0, 0, 0);
    await run([item()]);
    const last = (await redis.hgetBuffer(cellKey(CELL), 'last'))!;
    // The newest entry has a time two days in the future, as if the clock had been ahead.
    last.writeUIntLE(Date.now() + 2 * 86_400_000, 0, 6);
    await redis.hset(cellKey(CELL), 'last', last);
    const [first] = (await run([item({ requestId: 'ahead' })])).cores;
    const again = await run([item({ requestId: 'ahead' })]);
    expect([again.statuses, again.cores]).toEqual([[SPIN_STATUS.replay], [first]]);
  });
});

describe("writes of a cell's owner", () => {
  const owner = (fence: bigint) => ({ fence, serverId: nodes.node.serverId! });

  beforeEach(async () => {
    await redis.hdel(cellKey(CELL), 'fence');
  });

  test("refuses writes of a cell's owner before its claim, after a later owner's claim, and once the claim is lost", async () => {
    const set = async (fence: bigint, value: string): Promise<void> => {
      const filler = new CellFiller(cell(), owner(fence));
      filler.request(1, Buffer.from('f'), Buffer.from(value));
      await filler.finish();
    };
    const key = idempotencyKey(CELL, 1);
    await expect(set(1n, 'early')).rejects.toThrow(OutrunError);
    await cell().claim(owner(2n));
    await set(2n, 'two');
    await cell().claim(owner(3n));
    await expect(set(2n, 'late')).rejects.toThrow(OutrunError);
    await expect(cell().claim(owner(2n))).rejects.toThrow(OutrunError);
    await expect(cell().clear(owner(2n))).rejects.toThrow(OutrunError);
    expect(await redis.hget(key, 'f')).toBe('two');
    await redis.flushdb();
    await expect(set(3n, 'lost')).rejects.toThrow(OutrunError);
    expect(await redis.exists(key)).toBe(0);
  });

  test('a claim is made only on the server run that was checked, and otherwise fails', async () => {
    await expect(cell().claim({ ...owner(1n), serverId: 'another' })).rejects.toThrow(NotSentError);
    expect(await redis.hexists(cellKey(CELL), 'fence')).toBe(0);
  });

  test('clears a cell with any number of keys', async () => {
    const keys = Array.from({ length: 20_000 }, (_, i) => blockKey(CELL, GAME_ID, i));
    await redis.mset(...keys.flatMap((key) => [key, 'x']));
    await cell().clear(owner(1n));
    expect(await redis.keys('*')).toEqual([cellKey(CELL)]);
  });

  test("clearing a cell leaves only the owner's claim", async () => {
    await redis.hset(cellKey(CELL), 'fence', String(CLAIMED.fence));
    await load(0, 0, 1);
    await run([item({ requestId: 'r' })]);
    const keys = (await redis.keys('*')).filter((key) => key !== cellKey(CELL));
    expect(keys.length).toBeGreaterThan(4);
    await cell().clear(owner(7n));
    expect(await redis.keys('*')).toEqual([cellKey(CELL)]);
    expect(await redis.hgetall(cellKey(CELL))).toEqual({ fence: '7' });
    await expect(run([item()])).rejects.toThrow(EpochError);
  });
});

describe('the monitor of this file for the Redis calls of Lua operations', () => {
  test('the monitor of Lua operations finds a read after a write', async () => {
    const dir = watchedLua();
    writeFileSync(
      join(dir, 'countFailure.lua'),
      "-- include: library\ncall('SET', KEYS[1], 1, 'EX', 9)\nreturn call('GET', KEYS[1])",
    );
    const own = await openNodes(stores.redisUrl, dir);
    const wrong = new Scripts(own.nodes, { outboxMax: OUTBOX_MAX });
    await expect(wrong.countFailure('an address', 5)).rejects.toThrow('GET is called after a write');
    own.close();
    rmSync(dir, { recursive: true });
  });
});
