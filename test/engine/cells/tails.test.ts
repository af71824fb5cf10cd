/** Tests the tail of a reply, which follows its CORE. Tails of any length are bound, replayed and stored. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { CommunalRules } from '../../../src/domain/communal.js';
import { CORE } from '../../../src/domain/layouts.js';
import { readTail } from '../../../src/domain/spinTail.js';
import { BatchReply } from '../../../src/engine/cells/batchReply.js';
import { readOutbox, readPlayer, writePlayer } from '../../../src/engine/redis/cellRecords.js';
import {
  placeWaitingShares,
  readPot,
  writeRules,
  writeState,
  writeWaitingShare,
} from '../../../src/engine/redis/communalRecords.js';
import {
  cellKey,
  communalKey,
  outboxKey,
  playersKey,
  waitingSharesKey,
} from '../../../src/engine/redis/keys.js';
import { Scripts } from '../../../src/engine/redis/scripts.js';
import { SPIN_STATUS } from '../../../src/engine/redis/statuses.js';
import { CELL, GAME_ID, game, item, OUTBOX_MAX, partner, watchedLua } from '../../support/dealing.js';
import { openNodes } from '../../support/redis.js';
import { openedCell } from './openedCell.js';

const opened = openedCell();

/** Flags of a player's record, without a meaning and longer than the flags that exist today. */
const TAIL = Buffer.from('\x80 and more', 'latin1');

const boundOf = async (playerId: string): Promise<Buffer> => {
  const period = (await opened.redis.keys(`{c${CELL}}:idem:*`))[0]!;
  const values = await opened.redis.hvalsBuffer(period);
  return values.find((value) => value.includes(playerId))!;
};

/** Runs scripts that give each spin a tail of `length` characters, which contains the outcome's index. */
async function withTails<T>(length: number, use: () => Promise<T>): Promise<T> {
  const dir = watchedLua();
  const file = join(dir, 'include', 'dealSpin.lua');
  const parts = readFileSync(file, 'utf8').split("tail = ''");
  expect(parts).toHaveLength(2);
  writeFileSync(file, parts.join(`tail = 'tail of ' .. index; tail = tail .. rep('.', ${length} - #tail)`));
  const before = opened.scripts;
  const own = await openNodes(opened.stores.redisUrl, dir);
  opened.scripts = new Scripts(own.nodes, { outboxMax: OUTBOX_MAX });
  try {
    return await use();
  } finally {
    opened.scripts = before;
    own.close();
    rmSync(dir, { recursive: true });
  }
}
const tail = (index: number, length: number): string => `tail of ${index}`.padEnd(length, '.');

test.each([9, 1000, 60_000])(
  'a reply tail of %i bytes is bound and repeated by replays and by the stored reply',
  async (length) => {
    await opened.load(0, 1, 2, 0);
    const dealing = [item({ requestId: 'a' }), item({ requestId: 'a' }), item()];
    const first = await withTails(length, async () => {
      const dealt = await opened.run(dealing, { operation: 500 });
      expect((await opened.run(dealing, { operation: 500 })).buffer).toEqual(dealt.buffer);
      return dealt;
    });
    expect(first.statuses).toEqual([SPIN_STATUS.dealt, SPIN_STATUS.replay, SPIN_STATUS.dealt]);
    expect(first.tails).toEqual([tail(0, length), tail(0, length), tail(1, length)]);
    // The current operation also repeats bound tails, but gives its own spins no tail.
    const later = await opened.run(
      [item(), item({ requestId: 'a' }), item({ requestId: 'a', playerId: 'bob' })],
      {
        operation: 501,
      },
    );
    expect(later.statuses).toEqual([SPIN_STATUS.dealt, SPIN_STATUS.replay, SPIN_STATUS.conflict]);
    expect(later.tails).toEqual([undefined, tail(0, length), undefined]);
    expect(later.cores[1]).toEqual(first.cores[0]);
    expect((await boundOf('tail of 0')).length).toBe(28 + length);
  },
);

test('a reply without a tail has no additional byte', async () => {
  await opened.load(0, 1);
  const { buffer, tails } = await opened.run([item({ requestId: 'a' })]);
  expect(buffer.length).toBe(6 + 8 + 1 + CORE.bytes);
  expect(tails).toEqual([undefined]);
});

test('a player record keeps its tail through spins, whatever its length', async () => {
  await opened.load(0, 1, 2, 0);
  await opened.run([item()]);
  const record = (await opened.redis.hgetBuffer(playersKey(CELL), '7:alice'))!;
  expect(record).toHaveLength(28);
  await opened.redis.hset(playersKey(CELL), '7:alice', Buffer.concat([record, TAIL]));
  expect((await opened.run([item()])).statuses).toEqual([SPIN_STATUS.dealt]);
  const after = (await opened.redis.hgetBuffer(playersKey(CELL), '7:alice'))!;
  expect(after.subarray(28)).toEqual(TAIL);
  expect(readPlayer(after)).toMatchObject({ entries: 3 });
});

test('rejects a reply that is cut off within its tail', async () => {
  await opened.load(0, 1);
  const { buffer } = await withTails(40, () => opened.run([item()]));
  expect(() => new BatchReply(buffer.subarray(0, -1), 1, 1)).toThrow('ends in the middle of a tail');
  expect(() => new BatchReply(buffer.subarray(0, 20), 1, 1)).toThrow('at least 33 were expected');
});

const RULES: CommunalRules = {
  enabled: true,
  triggerInterval: 10,
  triggerSplit: 4000,
  tiers: [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountMicros: 1_000_003 }],
  windowMinutes: 60,
  communitySize: 10,
  emptyCommunity: 'TO_TRIGGER',
  onShortBudget: 'SKIP',
};
const BUDGET_MICROS = 10_000_000;
/** Highest balance to which the largest share can still be added, in micro-USD. */
const ROOM_MICROS = 9e15 - 1e12;

/** Writes a player as a rebuild does, with pending shares. */
async function newPlayer(playerId: string, balanceMicros: number, waitingShares: number): Promise<void> {
  const name = `${partner.partnerId}:${playerId}`;
  const shares = Array.from({ length: waitingShares }, (_, i) =>
    writeWaitingShare({
      entryId: BigInt(i + 2),
      eventId: 1n,
      tierLevel: 1,
      tierName: 'Mini',
      paidMicros: 2,
      shareMicros: 1,
      isTrigger: false,
    }),
  );
  const { behindPlayer, listed } = placeWaitingShares(shares);
  const untold = waitingShares === 0 ? undefined : { shares: behindPlayer, hasListed: listed.length > 0 };
  const entry = { entryId: 1n, outcomeCode: 0, entryNumber: 1, firstId: 1n };
  await opened.redis.hset(playersKey(CELL), name, writePlayer({ ...entry, balanceMicros, untold }));
  if (listed.length > 0) await opened.redis.rpush(waitingSharesKey(CELL, name), ...listed);
}

/** Returns the shares in the outbox, grouped by event. */
async function sharesPaid(): Promise<string[][]> {
  const calls = (await opened.redis.xrangeBuffer(outboxKey(CELL), '-', '+')) as [Buffer, Buffer[]][];
  return calls
    .map(([, fields]) => readOutbox(fields[1]!).filter(({ kind }) => kind === 'communalShare'))
    .filter((shares) => shares.length > 0)
    .map((shares) => shares.map(({ playerId, creditMicros }) => `${playerId} ${creditMicros}`));
}

test('a community skips players with 10,000 pending shares or a full balance, and pays the whole amount to the others', async () => {
  await opened.load(0, ...new Array<number>(20).fill(0));
  const state = { version: 1, remembersPlayers: true, progress: 4, budgetMicros: BUDGET_MICROS };
  const pot = Buffer.concat([writeState(state), writeRules(partner.partnerId, RULES)]);
  await opened.redis.hset(communalKey(CELL), String(GAME_ID), pot);
  await opened.redis.hset(cellKey(CELL), 'communal', '1');
  const { wagerMicros } = game;
  // A spin notifies its player of one share and deducts the wager.
  await newPlayer('full', wagerMicros, 10_001);
  await newPlayer('almost', wagerMicros, 10_000);
  await newPlayer('rich', ROOM_MICROS + 1 + wagerMicros, 0);
  await newPlayer('roomy', ROOM_MICROS + wagerMicros, 0);
  await newPlayer('low', -9e15 + wagerMicros, 0);
  const spun = async (...players: string[]) => {
    const { statuses, reply } = await opened.run(players.map((playerId) => item({ playerId })));
    expect(statuses).toEqual(players.map(() => SPIN_STATUS.dealt));
    return reply;
  };
  const first = await spun('full', 'almost');
  expect([0, 1].map((place) => readTail(first.tail(place)).notice!.isTrigger)).toEqual([false, false]);
  await spun('rich', 'roomy', 'low', 'alice');
  expect(await sharesPaid()).toEqual([['alice 400001', 'low 200001', 'roomy 200001', 'almost 200000']]);

  // A player who was notified of one share can get another share. A player with 10,000 pending shares can't,
  // nor can a player whose balance has grown beyond the limit.
  for (let i = 0; i < 8; i++) await spun('alice');
  await spun('full');
  await spun('alice');
  expect((await sharesPaid())[1]).toEqual(['alice 400001', 'full 300001', 'low 300001']);
  const balanceOf = async (playerId: string) =>
    readPlayer((await opened.redis.hgetBuffer(playersKey(CELL), `${partner.partnerId}:${playerId}`))!)
      .balanceMicros;
  const balances = await Promise.all(['full', 'almost', 'rich', 'roomy', 'low'].map(balanceOf));
  expect(balances).toEqual([
    300_001 - wagerMicros,
    200_000,
    ROOM_MICROS + 1,
    ROOM_MICROS + 200_001,
    -9e15 + 500_002,
  ]);
  const { budgetMicros, progress } = readPot(
    (await opened.redis.hgetBuffer(communalKey(CELL), String(GAME_ID)))!,
  );
  expect([budgetMicros, progress]).toEqual([BUDGET_MICROS - 2 * 1_000_003, 20]);
});
