/**
 * Tests the rotation of a game: outcomes that were sealed but not dealt before the rotation are never dealt,
 * and nothing else is lost.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { LOG_ENTRY_KINDS } from '../../../src/domain/publicLog/openings.js';
import { Rotations } from '../../../src/engine/blocks/rotations.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { world } from '../../setup/world.js';
import { cliOf, ROOT } from '../../support/root.js';
import { newTable } from '../../support/rounds.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const BLOCK = 2048;

const { stores, service, redis, sql: books } = world({ CELLS: '1', SPIN_DEADLINE_MS: '3000' });
const rotate = (gameId: number, body: object = { reason: 'seen' }) =>
  service.operator('POST', `/games/${gameId}/rotate`, body);
const voidsOf = (gameId: number) => books<{ from: number; to: number; reason: string }[]>`
  SELECT from_index::int AS from, to_index::int AS to, reason FROM voids WHERE game_id = ${gameId} ORDER BY from_index`;
const dealtOf = async (gameId: number): Promise<number[]> => {
  const rows = await books<{ index: number }[]>`
    SELECT outcome_index::int AS index FROM ledger WHERE game_id = ${gameId} ORDER BY outcome_index`;
  return rows.map(({ index }) => index);
};
/** Checks that every index below the newest index is either dealt or voided, and no index is both. */
async function expectNoGap(gameId: number): Promise<void> {
  const dealt = new Set(await dealtOf(gameId));
  const voids = await voidsOf(gameId);
  const end = Math.max(...dealt, ...voids.map(({ to }) => to - 1)) + 1;
  for (let index = 0; index < end; index++) {
    const isVoided = voids.some(({ from, to }) => from <= index && index < to);
    if (dealt.has(index) === isVoided)
      expect.fail(`index ${index}: dealt ${dealt.has(index)}, voided ${isVoided}`);
  }
}
const audit = () =>
  promisify(execFile)(process.execPath, [cliOf(ROOT), 'audit'], {
    env: { PATH: process.env.PATH, REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl },
  });
/** Checks that the public log has each void before the blocks that the game gets after the void. */
async function expectVoidsInOrder(gameId: number): Promise<void> {
  await until(async () => {
    const [left] =
      await books`SELECT 1 FROM log_entries WHERE game_id = ${gameId} AND log_index IS NULL LIMIT 1`;
    return left === undefined;
  }, 'all is logged');
  const entries = await books<{ number: number; kind: number; from: number; to: number }[]>`
    SELECT number::int, kind, from_index::int AS from, to_index::int AS to FROM log_entries
    WHERE game_id = ${gameId} ORDER BY log_index`;
  expect(entries.map(({ number }) => number)).toEqual(entries.map((_, at) => at));
  for (const { number, to } of entries.filter(({ kind }) => kind === LOG_ENTRY_KINDS.void))
    expect(entries.slice(0, number).filter(({ from }) => from >= to)).toEqual([]);
}
async function newGame() {
  const { key, partnerId } = await service.newPartner();
  const gameId = await service.newGame(key, parSheet('classic-3-reel'));
  const spin = (playerId = 'p') => service.spin(key, { gameId, playerId, wagerUsd: 0.25 });
  await until(async () => (await spin()).status === 200, 'the game deals');
  return { key, partnerId, gameId, spin };
}

test('a slot game that is rotated during spins and block making deals no outcome that was sealed before', async () => {
  const { gameId, spin } = await newGame();
  let isOver = false;
  const answers = { dealt: 0, exhausted: 0 };
  const players = Array.from({ length: 4 }, async (_, i) => {
    while (!isOver) {
      const { status, body } = await spin(`p${i}`);
      if (status === 200) answers.dealt++;
      else {
        expect(body).toMatchObject({ errorCode: 'KS-4203' });
        answers.exhausted++;
      }
    }
  });
  const ranges: { voidedFrom: number; voidedTo: number }[] = [];
  for (let i = 0; i < 8; i++) {
    const dealtBefore = answers.dealt;
    await until(async () => answers.dealt > dealtBefore + 20, 'it is spun');
    if (i % 2 === 0) await service.operator('POST', `/games/${gameId}/blocks`, { count: 3 });
    const { status, body } = await rotate(gameId);
    expect(status).toBe(200);
    const range = body as unknown as { voidedFrom: number; voidedTo: number };
    expect(body).toEqual({
      gameConfigId: gameId,
      number: expect.any(Number),
      voidedFrom: expect.any(Number),
      voidedTo: expect.any(Number),
      isInForce: true,
    });
    expect(range.voidedTo).toBeGreaterThan(range.voidedFrom);
    expect(range.voidedTo % BLOCK).toBe(0);
    // When the response to the rotation arrives, the void is already committed.
    expect(await voidsOf(gameId)).toContainEqual({
      from: body.voidedFrom,
      to: body.voidedTo,
      reason: 'rotated',
    });
    const [entry] = await books`
      SELECT from_index::int AS "voidedFrom", to_index::int AS "voidedTo" FROM log_entries
      WHERE game_id = ${gameId} AND number = ${body.number as number} AND kind = ${LOG_ENTRY_KINDS.void}`;
    expect(entry).toEqual({ voidedFrom: range.voidedFrom, voidedTo: range.voidedTo });
    ranges.push(range);
  }
  const dealtBefore = answers.dealt;
  await until(async () => answers.dealt > dealtBefore + 20, 'it goes on');
  isOver = true;
  await Promise.all(players);
  await until(async () => (await dealtOf(gameId)).length === answers.dealt + 1, 'all is booked');
  expect(await voidsOf(gameId)).toHaveLength(ranges.length);
  await expectNoGap(gameId);
  await expectVoidsInOrder(gameId);
  const { body } = await service.operator('GET', `/audit-log?limit=20`);
  const entries = (body.entries as { action: string }[]).filter(({ action }) => action === 'game.rotate');
  expect(entries).toHaveLength(ranges.length);
  expect(entries[0]).toMatchObject({ subject: `game:${gameId}`, after: { reason: 'seen' } });
  await audit();
});

test('a suspended game that is rotated deals new outcomes once resumed, and rotating it again voids nothing', async () => {
  const { gameId, spin } = await newGame();
  await service.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED' });
  await until(async () => (await redis.keys(`*:block:${gameId}:*`)).length === 0, 'its blocks are freed');
  const { body: first } = await rotate(gameId);
  expect(first).toEqual({
    gameConfigId: gameId,
    number: 3,
    voidedFrom: 1,
    voidedTo: 3 * BLOCK,
    isInForce: true,
  });
  const { body: second } = await rotate(gameId);
  const nothing = { number: null, voidedFrom: 3 * BLOCK, voidedTo: 3 * BLOCK, isInForce: true };
  expect(second).toEqual({ gameConfigId: gameId, ...nothing });
  await service.operator('PATCH', `/games/${gameId}`, { status: 'ACTIVE' });
  await until(async () => (await spin()).status === 200, 'it goes on');
  await until(async () => (await dealtOf(gameId)).length === 2, 'both spins are booked');
  expect(await dealtOf(gameId)).toEqual([0, 3 * BLOCK]);
  await audit();
});

test("a rotation that the ledger can't commit yet is answered as recorded, and later it is committed or voided with a rebuild", async () => {
  const { gameId, spin } = await newGame();
  await until(async () => (await dealtOf(gameId)).length === 1, 'the spin is booked');
  await books.begin(async (tx) => {
    await tx`LOCK TABLE game_progress IN EXCLUSIVE MODE`;
    expect(await rotate(gameId)).toMatchObject({ status: 202, body: { number: null, isInForce: false } });
  });
  await until(async () => (await voidsOf(gameId)).length === 1, 'it is booked');
  await until(async () => (await spin()).status === 200, 'it goes on');
  await until(async () => (await dealtOf(gameId)).length === 2, 'the spin is booked');
  await books.begin(async (tx) => {
    await tx`LOCK TABLE game_progress IN EXCLUSIVE MODE`;
    expect(await rotate(gameId)).toMatchObject({ status: 202, body: { number: null, isInForce: false } });
    await redis.flushdb();
  });
  await until(async () => (await spin()).status === 200, 'it goes on after a rebuild');
  await until(async () => (await dealtOf(gameId)).length === 3, 'the spin is booked');
  await expectNoGap(gameId);
  await audit();
});

test('a rotation that never reached the cell is carried out before the next block is sealed', async () => {
  const { gameId, spin } = await newGame();
  await until(async () => (await dealtOf(gameId)).length === 1, 'the spin is booked');
  // The recorded intent is in the state in which a front end leaves it if the front end dies before its call
  // to Redis.
  const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  const { sealedTo } = await new Rotations(sql).record('operator', gameId, 'seen');
  await sql.end();
  await service.operator('POST', `/games/${gameId}/blocks`, { count: 1 });
  await until(async () => (await voidsOf(gameId)).length === 1, 'it is carried out');
  expect(await voidsOf(gameId)).toEqual([{ from: 1, to: sealedTo, reason: 'rotated' }]);
  await until(async () => (await spin()).status === 200, 'it goes on');
  await until(async () => (await dealtOf(gameId)).length === 2, 'the spin is booked');
  expect(await dealtOf(gameId)).toEqual([0, sealedTo]);
  await expectVoidsInOrder(gameId);
  await audit();
});

test('refuses to rotate a blackjack table', async () => {
  const { partnerId } = await newGame();
  const table = await newTable(service, partnerId);
  expect((await rotate(table)).body).toMatchObject({ errorCode: 'KS-4216' });
});
