/**
 * Tests the blocks of a game's queue in Redis. The blocks of a suspended game are freed, and are loaded again
 * when the game resumes, without a gap or a repetition. The blocks of a game in demand are replaced as soon
 * as they are dealt out.
 */
import { execFile } from 'node:child_process';
import { rmSync } from 'node:fs';
import { promisify } from 'node:util';
import autocannon from 'autocannon';
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { cellToken, readGame } from '../../../src/engine/redis/cellRecords.js';
import { blockKey, cellKey, dealtChannel, gamesKey } from '../../../src/engine/redis/keys.js';
import { EpochError, GapError, OutrunError } from '../../../src/engine/redis/scriptErrors.js';
import { Scripts } from '../../../src/engine/redis/scripts.js';
import { SPIN_STATUS } from '../../../src/engine/redis/statuses.js';
import { freshStores } from '../../setup/freshStores.js';
import { world } from '../../setup/world.js';
import { CELL, dealOnce, GAME_ID, item, OUTBOX_MAX, watchedLua } from '../../support/dealing.js';
import { type OpenNodes, openNodes, rawRedis } from '../../support/redis.js';
import { openedAt } from '../../support/requestSegments.js';
import { cliOf, ROOT } from '../../support/root.js';
import { deal, newTable } from '../../support/rounds.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const { stores, redis } = world();

describe('the scripts that load and free the blocks of a queue', () => {
  const BLOCKS: readonly (readonly number[])[] = [
    [0, 1, 2, 1],
    [2, 0],
    [1, 1, 0],
  ];
  const OWNER = { fence: 2n, token: '1' };
  const ALL = BLOCKS.flat();
  const starts = BLOCKS.map((_, i) => BLOCKS.slice(0, i).flat().length);
  let luaDir: string;
  let nodes: OpenNodes;
  let scripts: Scripts;

  beforeAll(async () => {
    luaDir = watchedLua();
    nodes = await openNodes(stores.redisUrl, luaDir);
    scripts = new Scripts(nodes.nodes, { outboxMax: OUTBOX_MAX });
  });
  beforeEach(async () => {
    await redis.flushdb();
    await redis.hset(cellKey(CELL), openedAt(cellToken('1', nodes.node.serverId!)));
    await cell().claim(OWNER);
    for (const i of starts.keys()) await load(i);
  });
  afterAll(() => {
    nodes.close();
    rmSync(luaDir, { recursive: true });
  });

  const cell = () => nodes.nodes.cell(CELL);
  const load = (i: number) =>
    cell().loadBlock(OWNER, GAME_ID, starts[i]!, Buffer.from(Uint16Array.from(BLOCKS[i]!).buffer));
  const record = async () => readGame((await redis.hgetBuffer(gamesKey(CELL), String(GAME_ID)))!);
  const blocks = () => redis.keys(`${blockKey(CELL, GAME_ID, 0).slice(0, -1)}*`);
  const deal = (count: number) =>
    dealOnce(
      scripts,
      Array.from({ length: count }, () => item()),
    );
  const codes = async (count: number): Promise<number[]> => {
    if (count === 0) return [];
    const { statuses, cores } = await deal(count);
    expect(statuses).toEqual(Array.from({ length: count }, () => SPIN_STATUS.dealt));
    return cores.map((core) => core.readUInt16LE(8));
  };

  test('a queue that is freed at any position continues with the same outcomes at that position', async () => {
    for (let dealt = 0; dealt <= ALL.length; dealt++) {
      await redis.del(gamesKey(CELL), ...starts.map((start) => blockKey(CELL, GAME_ID, start)));
      for (const i of starts.keys()) await load(i);
      expect(await codes(dealt)).toEqual(ALL.slice(0, dealt));
      expect(await cell().freeBlocks(OWNER, GAME_ID, ALL.length, starts)).toBe(true);
      expect(await blocks()).toEqual([]);
      expect(await record()).toMatchObject({ nextIndex: dealt, queueEnd: dealt, readyBlocks: 0 });
      expect((await deal(1)).statuses).toEqual([
        dealt === 0 ? SPIN_STATUS.noBlock : SPIN_STATUS.queueExhausted,
      ]);
      expect(await cell().freeBlocks(OWNER, GAME_ID, dealt, starts)).toBe(true);
      const open = [...starts.keys()].filter((i) => starts[i]! + BLOCKS[i]!.length > dealt);
      if (open.length > 1) await expect(load(open[1]!)).rejects.toThrow(GapError);
      for (const i of open) await load(i);
      for (const i of open) await load(i);
      expect(await record()).toMatchObject({ queueEnd: ALL.length, readyBlocks: open.length });
      expect(await codes(ALL.length - dealt)).toEqual(ALL.slice(dealt));
    }
  });

  test('a block is loaded only once, and only at the end of its queue', async () => {
    const before = await record();
    for (const i of starts.keys()) await load(i);
    expect(await record()).toEqual(before);
    const beyond = cell().loadBlock(OWNER, GAME_ID, ALL.length + 1, Buffer.alloc(2));
    await expect(beyond).rejects.toThrow(GapError);
    expect(await record()).toEqual(before);
  });

  test('refuses to load a block for an owner once a newer owner has claimed the cell', async () => {
    const before = await record();
    await cell().claim({ ...OWNER, fence: OWNER.fence + 1n });
    const end = ALL.length;
    const late = cell().loadBlock(OWNER, GAME_ID, end, Buffer.from(Uint16Array.from([0]).buffer));
    await expect(late).rejects.toThrow(OutrunError);
    expect(await record()).toEqual(before);
  });

  test('frees no blocks if the queue has grown, the epoch has changed, or another owner has claimed the cell', async () => {
    const before = await record();
    expect(await cell().freeBlocks(OWNER, GAME_ID, ALL.length - 1, starts)).toBe(false);
    await expect(cell().freeBlocks({ ...OWNER, token: '2' }, GAME_ID, ALL.length, starts)).rejects.toThrow(
      EpochError,
    );
    expect(await cell().freeBlocks(OWNER, GAME_ID + 1, 0, [])).toBe(false);
    const free = (fence: bigint) => cell().freeBlocks({ ...OWNER, fence }, GAME_ID, ALL.length, starts);
    await expect(free(1n)).rejects.toThrow(OutrunError);
    await expect(free(3n)).rejects.toThrow(OutrunError);
    expect(await record()).toEqual(before);
    expect(await blocks()).toHaveLength(BLOCKS.length);
  });

  test('announces at once that a block is dealt out, with the next index', async () => {
    const subscriber = redis.duplicate();
    const told: string[] = [];
    subscriber.on('smessage', (_channel: string, message: string) => told.push(message));
    try {
      await subscriber.ssubscribe(dealtChannel(CELL));
      for (const spins of [3, 2, 3]) await deal(spins);
      const token = cellToken('1', nodes.node.serverId!);
      const expected = [5, 8].map((nextIndex) => `${CELL} ${token} ${GAME_ID} ${nextIndex}`);
      await until(async () => told.length >= expected.length, 'both blocks are told');
      expect(told).toEqual(expected);
    } finally {
      subscriber.disconnect();
    }
  });

  test('deals across the end of a block even if the Redis user may not publish the announcement', async () => {
    const user = `untold-${process.pid}`;
    await redis.call('ACL', 'SETUSER', user, 'on', '>secret', '~*', '+@all', 'resetchannels');
    const url = new URL(stores.redisUrl);
    url.username = user;
    url.password = 'secret';
    const restricted = await openNodes(url.href, luaDir);
    try {
      const silent = new Scripts(restricted.nodes, { outboxMax: OUTBOX_MAX });
      const { statuses } = await dealOnce(
        silent,
        Array.from({ length: 5 }, () => item()),
      );
      expect(statuses).toEqual(Array.from({ length: 5 }, () => SPIN_STATUS.dealt));
      expect(await record()).toMatchObject({ nextIndex: 5, readyBlocks: 2 });
    } finally {
      restricted.close();
      await redis.call('ACL', 'DELUSER', user);
    }
  });
});

describe('a service with suspended games', () => {
  const SPINS = 7;
  test('a game that is suspended and resumed repeatedly has no gap in its indexes, and the audit finds no fault', async () => {
    await redis.flushdb();
    const service = await startService(stores, { CELLS: '1' });
    const books = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
    try {
      const { key } = await service.newPartner();
      const gameId = await service.newGame(key, parSheet('classic-3-reel'));
      const setStatus = (status: string) => service.operator('PATCH', `/games/${gameId}`, { status });
      const spin = () => service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
      const blocks = () => redis.keys(`${blockKey(0, gameId, 0).slice(0, -1)}*`);
      for (let round = 1; round <= 2; round++) {
        await until(async () => (await spin()).status === 200, 'the game goes on');
        for (let i = 1; i < SPINS; i++) expect((await spin()).status).toBe(200);
        expect((await setStatus('SUSPENDED')).status).toBe(200);
        await until(async () => (await blocks()).length === 0, 'its blocks are freed');
        expect((await spin()).body).toMatchObject({ errorCode: 'KS-4202' });
        const booked = () => books<{ n: string; last: string }[]>`
          SELECT count(*) AS n, max(outcome_index) AS last FROM ledger WHERE game_id = ${gameId}`;
        await until(async () => Number((await booked())[0]!.n) === round * SPINS, 'all is booked');
        expect(Number((await booked())[0]!.last)).toBe(round * SPINS - 1);
        // The audit runs in a child process because the service runs in this process and must not be blocked
        // by it.
        await promisify(execFile)(process.execPath, [cliOf(ROOT), 'audit'], {
          env: { PATH: process.env.PATH, REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl },
        });
        expect((await setStatus('ACTIVE')).status).toBe(200);
      }
      const [{ n }] =
        (await books`SELECT count(*) AS n FROM blocks WHERE game_id = ${gameId}`) as unknown as [
          { n: string },
        ];
      // Freed blocks are loaded again, so no new block was made in their place.
      expect(Number(n)).toBe(3);
    } finally {
      await service.stop();
      await books.end();
    }
  });
});

test("replaces a block that is dealt out while the ledger can't be written", async () => {
  const BLOCK = 2048;
  const books = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const service = await startService(stores, { CELLS: '1' });
  try {
    const { key } = await service.newPartner();
    const gameId = await service.newGame(key, parSheet('classic-3-reel'));
    const queueEnd = async () => {
      const record = await redis.hgetBuffer(gamesKey(0), String(gameId));
      return record === null ? 0 : readGame(record).queueEnd;
    };
    await until(async () => (await queueEnd()) === 3 * BLOCK, 'the game has its first blocks');
    await books.begin(async (tx) => {
      await tx`LOCK TABLE game_progress IN EXCLUSIVE MODE`;
      const { '2xx': spins } = await autocannon({
        url: `${service.base}/api/partner/v1/spin`,
        method: 'POST',
        headers: { 'X-API-Key': key },
        body: JSON.stringify({ gameId, playerId: 'p', wagerUsd: 0.25 }),
        amount: BLOCK,
        connections: 16,
      });
      expect(spins).toBe(BLOCK);
      await until(async () => (await queueEnd()) > 3 * BLOCK, 'the block is replaced');
      const [progress] = await tx`SELECT next_index FROM game_progress WHERE game_id = ${gameId}`;
      expect(progress, 'nothing is booked').toBeUndefined();
    });
  } finally {
    await service.stop();
    await books.end();
  }
});

test('after a wipe of Redis, a table with some shoes of its first block played continues at its next shoe', async () => {
  const SHOES = 256;
  const own = await freshStores();
  const redis = rawRedis(own.redisUrl);
  const service = await startService(own, { CELLS: '1' });
  try {
    const { key, partnerId } = await service.newPartner();
    const table = await newTable(service, partnerId);
    const indexes: number[] = [];
    for (let from = 0; from < SHOES + 40; from += 16) {
      const dealt = await Promise.all(
        Array.from({ length: 16 }, (_, i) => deal(service, key, table, `p${from + i}`, `r${from + i}`)),
      );
      for (const { status, body } of dealt) {
        expect(status).toBe(201);
        indexes.push(body.shoe.index);
      }
    }
    await redis.flushdb();
    let again = await deal(service, key, table, 'after', 'after');
    await until(async () => {
      if (again.status !== 201) again = await deal(service, key, table, 'after', 'after');
      return again.status === 201;
    }, 'the table goes on');
    indexes.push(again.body.shoe.index);
    expect(indexes.sort((a, b) => a - b)).toEqual(indexes.map((_, i) => i));
  } finally {
    redis.disconnect();
    await service.stop();
    await own.drop();
  }
});
