/**
 * Tests calls that the network delayed until the same request was refused to another caller. Such a call must
 * change nothing, even after Redis has released its requestId.
 */
import { expect, test } from 'vitest';
import { readRules } from '../../../src/domain/communalRules.js';
import { ADJUST } from '../../../src/engine/cells/adjustOperation.js';
import { COMMUNAL_FUND } from '../../../src/engine/communal/communalFundOperation.js';
import { COMMUNAL_SET } from '../../../src/engine/communal/communalSetOperation.js';
import { playersKey } from '../../../src/engine/redis/keys.js';
import { removePartner, setAway } from '../../../src/engine/redis/partnerOfCell.js';
import { closeSegment, releaseSegment, requestSegments } from '../../../src/engine/redis/requestSegments.js';
import { OutrunError } from '../../../src/engine/redis/scriptErrors.js';
import { Scripts } from '../../../src/engine/redis/scripts.js';
import { SPIN_STATUS } from '../../../src/engine/redis/statuses.js';
import { commandOnce } from '../../support/cellCommands.js';
import { RULES } from '../../support/communal.js';
import { CELL } from '../../support/dealing.js';
import { CLAIMED } from '../../support/requestSegments.js';
import { openedCell } from './openedCell.js';

const opened = openedCell();
const { dealt, lapsed, insufficientBalance, shortBudget, outboxFull } = SPIN_STATUS;
const PARTNER = { cell: CELL, newestMove: undefined, epoch: '1', partnerId: 1 };
const GAME = { ...PARTNER, gameId: 5 };

/**
 * Closes and releases all segments of the cell's request ids, as its owner does once every entry is
 * committed.
 * @returns the newest entry whose request id is released
 */
async function releaseAll(): Promise<bigint> {
  const owner = { cell: CELL, fence: CLAIMED.fence };
  const segments = async () => (await requestSegments(opened.nodes.nodes, CELL))!;
  await closeSegment(opened.nodes.nodes, owner, await segments());
  const { releasedId, closed } = await releaseSegment(opened.nodes.nodes, owner, await segments());
  expect(closed).toEqual([]);
  return releasedId;
}

/** Scripts that treat the outbox of the cell as full, so that they write no entry. */
const full = () => new Scripts(opened.nodes.nodes, { outboxMax: { entries: 0, bytes: 0 } });

test("a late call of a refused adjustment changes nothing after the refusal's request ids were released from Redis", async () => {
  const debit = {
    ...PARTNER,
    intentId: 7,
    playerId: 'p',
    requestId: 'r',
    amountMicros: -50,
    openingBalanceMicros: 0,
    enforcesBalance: true,
  };
  const run = (more: object, reachId: bigint) =>
    commandOnce(opened.scripts, ADJUST, { ...debit, ...more }, reachId);
  expect((await run({}, 0n)).status).toBe(insufficientBalance);
  const credit = { intentId: 8, requestId: 'credit', amountMicros: 100 };
  expect(await run(credit, 0n)).toMatchObject({ status: dealt, afterMicros: 100 });
  const reachId = await releaseAll();
  expect((await run({}, reachId)).status).toBe(lapsed);
  // An intent with a lower number than the refused intent lapses. It succeeds once it has a new number.
  expect((await run({ intentId: 6, requestId: 'other', amountMicros: 1 }, reachId)).status).toBe(lapsed);
  expect(await run({ intentId: 9 }, reachId)).toMatchObject({ status: dealt, afterMicros: 50 });
});

test("a late call of a refused pot funding changes nothing after the refusal's request ids were released from Redis", async () => {
  const set = { ...GAME, version: 1, rules: readRules(RULES), resetsProgress: false, intentId: 1 };
  expect((await commandOnce(opened.scripts, COMMUNAL_SET, set)).status).toBe(dealt);
  const fund = (fundingId: number, requestId: string, amountMicros: number, reachId = 0n) =>
    commandOnce(opened.scripts, COMMUNAL_FUND, { ...GAME, fundingId, requestId, amountMicros }, reachId);
  expect((await fund(2, 'r', -50)).status).toBe(shortBudget);
  expect(await fund(3, 'more', 100)).toMatchObject({ status: dealt, afterMicros: 100 });
  const reachId = await releaseAll();
  expect((await fund(2, 'r', -50, reachId)).status).toBe(lapsed);
  expect(await fund(4, 'r', -50, reachId)).toMatchObject({ status: dealt, afterMicros: 50 });
});

test('a late call of refused communal rules does not put them into force', async () => {
  const rules = readRules(RULES);
  const set = { ...GAME, version: 1, rules, resetsProgress: false, intentId: 5 };
  expect((await commandOnce(full(), COMMUNAL_SET, set)).status).toBe(outboxFull);
  for (const intentId of [5, 4]) {
    const late = await commandOnce(opened.scripts, COMMUNAL_SET, { ...set, intentId });
    expect(late.status).toBe(lapsed);
  }
  expect((await commandOnce(opened.scripts, COMMUNAL_SET, { ...set, intentId: 6 })).status).toBe(dealt);
  // The rules in force do not change, whichever intent puts the same version into force again.
  expect((await commandOnce(opened.scripts, COMMUNAL_SET, { ...set, intentId: 5 })).status).toBe(dealt);
});

test('a late call that stops the spins of a moving partner has no effect once they were resumed, and a late call that resumes them has none either', async () => {
  const store = opened.nodes.nodes.cell(CELL);
  const step = (number: bigint) => ({ partnerId: 7, number });
  const isAway = async () => (await store.isTurnedAway(7, 99)) as boolean;
  await setAway(store, CLAIMED, step(1n), 'away');
  await setAway(store, CLAIMED, step(2n), 0);
  await expect(setAway(store, CLAIMED, step(1n), 'away')).rejects.toThrow(OutrunError);
  expect(await isAway()).toBe(false);
  await setAway(store, CLAIMED, step(4n), 'away');
  await expect(setAway(store, CLAIMED, step(3n), 0)).rejects.toThrow(OutrunError);
  expect(await isAway()).toBe(true);
  // Steps of another partner's move are counted separately.
  await setAway(store, CLAIMED, { partnerId: 8, number: 1n }, 'away');
});

test('a late write or removal of a partner move changes nothing once a later step of the move was taken', async () => {
  const store = opened.nodes.nodes.cell(CELL);
  const copying = { partnerId: 7, number: 1n };
  const writer = { fence: CLAIMED.fence, step: copying };
  const players = playersKey(CELL);
  await setAway(store, CLAIMED, copying, 'keep');
  await store.fencedSet(writer, players, ['7:alice', 'as it was copied']);
  await setAway(store, CLAIMED, { partnerId: 7, number: 2n }, 0);
  await store.fencedSet(CLAIMED, players, ['7:alice', 'as it is now']);
  await expect(store.fencedSet(writer, players, ['7:alice', 'as it was copied'])).rejects.toThrow(
    OutrunError,
  );
  await expect(removePartner(store, writer, 7, [])).rejects.toThrow(OutrunError);
  expect(await opened.redis.hgetall(players)).toEqual({ '7:alice': 'as it is now' });
});
