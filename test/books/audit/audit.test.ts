import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import postgres from 'postgres';
import { afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { audit } from '../../../src/books/audit/audit.js';
import type { AuditReport, CheckName } from '../../../src/books/audit/report.js';
import {
  newestEntryId,
  OUTBOX,
  readGame,
  readOutbox,
  totalsOfLast,
  writeBooked,
} from '../../../src/engine/redis/cellRecords.js';
import { blockKey, cellKey, gamesKey, outboxKey, playersKey } from '../../../src/engine/redis/keys.js';
import { readSegments, writeSegments } from '../../../src/engine/redis/segmentRecords.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { world } from '../../setup/world.js';
import type { Client } from '../../support/client.js';
import { load, portOf, spinRequest } from '../../support/load.js';
import { openNodes } from '../../support/redis.js';
import { boundKey as boundKeyIn } from '../../support/requestSegments.js';
import { cliOf, ROOT } from '../../support/root.js';
import { environment, startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

/**
 * Numbers of spins: before the outcomes of a game are voided, committed in total (more than one block of each
 * game), and left in the outboxes.
 */
const BEFORE = 7000;
const BOOKED = 8000;
const UNBOOKED = 25;

/**
 * Stores of a service that stopped with its last spins in the outbox. Each test gets a copy of these stores.
 */
const { stores, redis } = world();
let saved: [key: string, dump: Buffer][];
let sql: postgres.Sql;
let databaseUrl: string;
let games: { key: string; gameId: number; cell: number; wagerUsd: number }[];
/** Partner of the first game. */
let partnerId: number;
let gameId: number;
let cell: number;

/**
 * Spins the games in turn.
 * @returns the number of responses with a status other than 200
 */
async function play(client: Client, from: number, to: number, connections = 16): Promise<number> {
  let sent = from;
  let refused = 0;
  await load({
    port: portOf(client.base),
    connections,
    next: () => {
      if (sent >= to) return undefined;
      const spin = sent++;
      const { key, gameId, wagerUsd } = games[spin % games.length]!;
      // The outboxes have no entry of this player.
      const playerId = spin % 17 === 0 && spin < BOOKED ? 'Ünïcode 🎰' : `p${spin % 11}`;
      const requestId = spin % 2 === 0 ? { requestId: `r-${spin}-ß` } : {};
      return spinRequest(key, JSON.stringify({ gameId, playerId, wagerUsd, ...requestId }));
    },
    onAnswer: ({ status }) => {
      if (status !== 200) refused++;
    },
  });
  return refused;
}

interface Ended {
  status: number | null;
  out: string;
  error: string;
}

async function cli(env: NodeJS.ProcessEnv, ...args: string[]): Promise<Ended> {
  const child = spawn(process.execPath, [cliOf(ROOT), 'audit', ...args], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let error = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    error += chunk;
  });
  const status = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { status, out, error };
}

/**
 * Does what a recovery does to a game whose Redis data was lost: voids all leased outcomes that were not
 * dealt.
 */
async function voidRest(source: postgres.Sql, game: { gameId: number; cell: number }): Promise<void> {
  const [{ next, end }] = (await source`
    SELECT next_index::int AS next, (SELECT max(to_index)::int FROM blocks WHERE game_id = ${game.gameId}) AS end
    FROM game_progress WHERE game_id = ${game.gameId}`) as unknown as [{ next: number; end: number }];
  await source`INSERT INTO voids (game_id, from_index, to_index, epoch, reason)
    VALUES (${game.gameId}, ${next}, ${end}, 1, 'test')`;
  await source`UPDATE game_progress SET next_index = ${end} WHERE game_id = ${game.gameId}`;
  const record = Buffer.alloc(28);
  for (const at of [0, 6, 12, 18]) record.writeUIntLE(end, at, 6);
  await redis.hset(gamesKey(game.cell), String(game.gameId), record);
  await redis.del(await redis.keys(`{c${game.cell}}:block:${game.gameId}:*`));
}

beforeAll(async () => {
  const service = await startService(stores);
  games = [];
  for (const sheets of [['classic-3-reel', 'double-strike'], ['penny-sub-cent']]) {
    const partner = await service.newPartner({ openingBalanceUsd: 12.345678 });
    for (const name of sheets) {
      const sheet = parSheet(name);
      const own = await service.newGame(partner.key, sheet, BOOKED / 2);
      games.push({
        key: partner.key,
        gameId: own,
        cell: 0,
        wagerUsd: sheet.denominationUsd as number,
      });
    }
  }

  // The audit runs while spins continue, so blocks are made and used up, and the ledger is written meanwhile.
  for (const part of [0, 1]) {
    const playing = play(service, (part * BEFORE) / 2, ((part + 1) * BEFORE) / 2, 4);
    const beside = await cli(environment(stores));
    expect(beside.out).toContain('CLEAN');
    expect(beside.status).toBe(0);
    expect(await playing).toBe(0);
  }
  await service.stop();

  const source = postgres(stores.databaseUrl, { max: 1, types: { bigint: postgres.BigInt } });
  for (const game of games) {
    const [row] = await source`
      SELECT cell FROM games JOIN partners USING (partner_id) WHERE game_id = ${game.gameId}`;
    game.cell = row!.cell as number;
  }
  [{ partner_id: partnerId, game_id: gameId, cell }] = (await source`
    SELECT partner_id, game_id, cell FROM games JOIN partners USING (partner_id) ORDER BY game_id LIMIT 1`) as unknown as [
    { partner_id: number; game_id: number; cell: number },
  ];
  await voidRest(source, games[2]!);
  await source.end();
  const again = await startService(stores);
  const { gameId: voided, cell: voidedCell } = games[2]!;
  await until(async () => {
    const game = readGame((await redis.hgetBuffer(gamesKey(voidedCell), String(voided)))!);
    return game.readyBlocks > 2;
  }, 'the game has new blocks');
  expect(await play(again, BEFORE, BOOKED)).toBe(0);
  await again.stop();

  // Without a worker, new spins remain in the outbox.
  const front = await startService(stores, { ROLES: 'http' });
  expect(await play(front, BOOKED, BOOKED + UNBOOKED, 1)).toBe(0);
  await front.stop();

  saved = [];
  for (const key of await redis.keys('*')) saved.push([key, (await redis.dumpBuffer(key))!]);
});

const server = async (run: (server: postgres.Sql) => Promise<unknown>): Promise<void> => {
  const own = postgres(inject('databaseUrl'), { max: 1, onnotice: () => {} });
  await run(own);
  await own.end();
};

beforeEach(async () => {
  const template = new URL(stores.databaseUrl).pathname.slice(1);
  const copy = `${template}_copy`;
  await server(async (own) => {
    await own.unsafe(`DROP DATABASE IF EXISTS ${copy} WITH (FORCE)`);
    await own.unsafe(`CREATE DATABASE ${copy} TEMPLATE ${template}`);
  });
  const url = new URL(stores.databaseUrl);
  url.pathname = `/${copy}`;
  databaseUrl = url.href;
  sql = postgres(databaseUrl, { max: 2, onnotice: () => {}, types: { bigint: postgres.BigInt } });
  await redis.flushdb();
  for (const [key, dump] of saved) await redis.restore(key, 0, dump);
});

afterEach(async () => {
  await sql.end();
  await server((own) => own.unsafe(`DROP DATABASE ${new URL(databaseUrl).pathname.slice(1)} WITH (FORCE)`));
});

async function audited(options: { limit?: number; redraw?: boolean } = {}): Promise<AuditReport> {
  const redis = await openNodes(stores.redisUrl);
  const ownSql = connectPostgres(databaseUrl, { max: 2, name: 'audit-test', onError: () => {} });
  try {
    return await audit(ownSql, redis.nodes, {
      limit: options.limit ?? 100,
      redraw: options.redraw === true,
      onProgress: () => {},
    });
  } finally {
    redis.close();
    await ownSql.end();
  }
}

/** Returns the violations that each check found, each kind once. */
function problems(report: AuditReport): Partial<Record<CheckName, string[]>> {
  expect(report.interrupted).toBe(undefined);
  return Object.fromEntries(
    report.checks
      .filter((check) => check.violations > 0)
      .map((check) => [check.name, [...new Set(check.listed.map(({ problem }) => problem))].sort()]),
  );
}

const firstOf = (report: AuditReport, name: CheckName) =>
  report.checks.find((check) => check.name === name)!.listed[0]!;

interface Row {
  entry_id: bigint;
  previous_id: bigint;
  balance_micros: bigint;
  credit_micros: bigint;
  outcome_index: bigint;
  outcome_code: number;
  entry_number: number;
  player_id: string;
  request_id: string | null;
}

/** Returns a spin with a requestId from the middle of its player's entries. */
async function someSpin(): Promise<Row> {
  const [row] = await sql<Row[]>`
    SELECT * FROM ledger WHERE game_id = ${gameId} AND request_id IS NOT NULL AND entry_number > 20
    ORDER BY entry_id LIMIT 1`;
  return row!;
}

const requestField = (owner: number, requestId: string): Buffer =>
  createHash('sha256').update(`${owner}:${requestId}`).digest().subarray(0, 16);

const boundKey = (field: Buffer): Promise<string> => boundKeyIn(redis, cell, field);

/** Changes a record of a Redis hash in place. */
async function change(key: string, field: string | Buffer, edit: (record: Buffer) => void): Promise<void> {
  const record = (await redis.hgetBuffer(key, field))!;
  edit(record);
  await redis.hset(key, field, record);
}

function idBytes(id: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(id);
  return bytes;
}

/** Returns a function that adds a number to a little-endian integer in a record. */
const add = (bytes: number, at: number, by: number) => (record: Buffer) => {
  record.writeUIntLE(record.readUIntLE(at, bytes) + by, at, bytes);
};

/** Bytes of a game's record without the outcomes that were read ahead. */
const GAME_BYTES = 28;

describe('audit of untampered stores', () => {
  test('the audit finds untampered stores clean, and every check examines all its data', async () => {
    const report = await audited({ redraw: true });
    expect(problems(report)).toEqual({});
    const looked = Object.fromEntries(report.checks.map((check) => [check.name, check.looked]));
    const [{ rows, spins, players, requests, blocks }] = (await sql`
      SELECT count(*)::int AS rows, count(*) FILTER (WHERE kind = 1)::int AS spins, count(request_id)::int AS requests,
        count(*) FILTER (WHERE kind = 2)::int AS players, (SELECT count(*)::int FROM blocks) AS blocks
      FROM ledger`) as unknown as [Record<string, number>];
    expect(spins).toBe(BOOKED);
    expect(looked).toMatchObject({
      balances: { 'ledger rows': rows, 'players in the ledger': players, 'players in Redis': players },
      indices: {
        'outcomes dealt': BOOKED,
        'outcomes voided': expect.toSatisfy((count: number) => count > 0),
        'counters in Redis': 3,
      },
      outcomes: { spins: BOOKED, 'PAR sheets': 3 },
      blocks: { blocks },
      'double-entry': { 'entries with their postings': rows },
      requests: { 'requestIds in the ledger': requests },
      cursors: { cells: 4, 'entries in the outboxes': UNBOOKED },
    });
    expect(looked.requests!['requestIds bound in Redis']).toBe(requests! + Math.ceil(UNBOOKED / 2));
    expect(looked.blocks!['blocks in Redis']).toBeGreaterThan(0);
    expect(report.rows).toBe(rows);
  });

  test('the audit reports exactly one tampered row while the stores are in use', async () => {
    const service = await startService({ redisUrl: stores.redisUrl, databaseUrl });
    try {
      const row = await someSpin();
      await sql`UPDATE ledger SET balance_micros = balance_micros - 1 WHERE entry_id = ${String(row.entry_id)}`;
      let isPlaying = true;
      const playing = play(service, BOOKED + UNBOOKED, BOOKED + 3000).finally(() => {
        isPlaying = false;
      });
      do {
        expect(problems(await audited())).toEqual({
          balances: ['the balance does not follow from the previous balance'],
          requests: ['the bound balance differs from the entry'],
        });
      } while (isPlaying);
      expect(await playing).toBe(0);
    } finally {
      await service.stop();
    }
  });
});

describe('audit of balances', () => {
  test('the audit detects a changed balance in the ledger', async () => {
    const row = await someSpin();
    await sql`UPDATE ledger SET balance_micros = balance_micros + 1 WHERE entry_id = ${String(row.entry_id)}`;
    const report = await audited();
    expect(problems(report)).toEqual({
      balances: ['the balance does not follow from the previous balance'],
      requests: ['the bound balance differs from the entry'],
    });
    expect(firstOf(report, 'balances')).toMatchObject({
      at: {
        entry: String(row.entry_id),
        spin: expect.stringMatching(/^[0-9a-f]{32}$/),
        partner: partnerId,
        player: row.player_id,
        game: gameId,
        index: Number(row.outcome_index),
        request: row.request_id,
      },
      expected: String(row.balance_micros),
      found: String(row.balance_micros + 1n),
    });
    // Both the changed entry and the next entry, whose balance depends on it, are reported.
    expect(report.checks[0]!.violations).toBe(2);
  });

  test('the audit detects a missing ledger row', async () => {
    const row = await someSpin();
    await sql`DELETE FROM ledger WHERE entry_id = ${String(row.entry_id)}`;
    const report = await audited();
    expect(problems(report)).toEqual({
      balances: ["the numbers of the player's entries are not consecutive"],
      indices: ['indices were neither dealt nor voided'],
      'double-entry': [
        'game_days.paid_micros is not their sum in the ledger',
        'game_days.spins is not the number of spins in the ledger',
        'game_days.wagered_micros is not their sum in the ledger',
      ].filter((problem) => row.credit_micros > 0n || !problem.includes('paid')),
      requests: ['a requestId is bound to an entry that is neither in the ledger nor in the outbox'],
    });
    expect(firstOf(report, 'indices').at).toEqual({
      game: gameId,
      partner: partnerId,
      index: Number(row.outcome_index),
      upTo: Number(row.outcome_index),
    });
  });

  test('the audit detects that the newest ledger row of a player is missing', async () => {
    const rows = await sql<(Row & { partner_id: number })[]>`
      SELECT DISTINCT ON (partner_id, player_id) * FROM ledger WHERE partner_id = ${partnerId}
      ORDER BY partner_id, player_id, entry_id DESC`;
    const records = await redis.hmgetBuffer(
      playersKey(cell),
      ...rows.map((row) => `${partnerId}:${row.player_id}`),
    );
    // The outbox has no entry of this player.
    const row = rows.find((candidate, i) => records[i]!.readBigUInt64LE(0) === candidate.entry_id);
    await sql`DELETE FROM ledger WHERE entry_id = ${String(row!.entry_id)}`;
    expect(problems(await audited()).balances).toEqual([
      "the player's newest entry in Redis is neither in the ledger nor in the outbox",
    ]);
  });

  test("the audit detects each changed field of a player's record in Redis", async () => {
    const [row] = await sql<Row[]>`
      SELECT * FROM ledger WHERE partner_id = ${partnerId} AND entry_number = 1 ORDER BY entry_id LIMIT 1`;
    const field = `${partnerId}:${row!.player_id}`;
    const key = playersKey(cell);
    const before = (await redis.hgetBuffer(key, field))!;
    const cases: [edit: (record: Buffer) => void, problem: string][] = [
      [add(6, 10, 1), "the balance in Redis differs from the player's newest entry"],
      [add(4, 18, 1), "the number of the player's entries in Redis is wrong"],
      [add(2, 8, 1), "the outcome code in Redis differs from the player's newest entry"],
      [add(6, 22, 1), "the time of the player's first entry in Redis is wrong"],
      [
        (record) => record.writeBigUInt64LE(before.readBigUInt64LE(0) + 4_000_000_000n, 0),
        "the player's newest entry in Redis is neither in the ledger nor in the outbox",
      ],
      [(record) => record.writeBigUInt64LE(row!.entry_id, 0), 'the ledger is ahead of Redis'],
    ];
    for (const [edit, problem] of cases) {
      const record = Buffer.from(before);
      edit(record);
      await redis.hset(key, field, record);
      const report = await audited();
      expect(problems(report)).toEqual({ balances: [problem] });
      expect(firstOf(report, 'balances').at).toMatchObject({
        cell,
        partner: partnerId,
        player: row!.player_id,
      });
    }
    await redis.hset(key, field, before.subarray(1));
    expect(problems(await audited()).balances).toContain("the record of the player in Redis can't be read");
    await redis.hdel(key, field);
    const report = await audited();
    expect(problems(report)).toEqual({ balances: ['a player of the ledger is missing in Redis'] });
    expect(firstOf(report, 'balances').at).toMatchObject({ partner: partnerId, player: row!.player_id });
  });

  test('the audit detects a changed player record whose newest entry is still in the outbox', async () => {
    const [, values] = (await redis.xrangeBuffer(outboxKey(cell), '-', '+', 'COUNT', 1))[0]!;
    const record = readOutbox((values as Buffer[])[1]!)[0]!;
    await change(playersKey(cell), `${partnerId}:${record.playerId}`, add(6, 10, 1));
    expect(problems(await audited())).toEqual({
      balances: ["the balance in Redis differs from the player's newest entry"],
    });
  });
});

describe('audit of outcome indices', () => {
  test('the audit detects a wrong next index of a game in Postgres', async () => {
    for (const by of [1, -2]) {
      await sql`UPDATE game_progress SET next_index = next_index + ${by} WHERE game_id = ${gameId}`;
      const found = problems(await audited());
      expect(found.indices).toContain(
        'game_progress.next_index is not the index after the last dealt or voided outcome',
      );
    }
  });

  test('the audit detects a wrong next index of a game in Redis', async () => {
    const before = (await redis.hgetBuffer(gamesKey(cell), String(gameId)))!;
    for (const [by, problem] of [
      [1, 'the counter in Redis is ahead of the ledger and the outbox'],
      [-1, 'the counter in Redis is behind the ledger and the outbox'],
    ] as const) {
      // This test writes the record without the outcomes that were read ahead.
      const record = Buffer.from(before.subarray(0, GAME_BYTES));
      add(6, 0, by)(record);
      await redis.hset(gamesKey(cell), String(gameId), record);
      const report = await audited();
      expect(problems(report)).toEqual({ indices: [problem] });
      expect(firstOf(report, 'indices')).toEqual({
        problem,
        at: { cell, game: gameId },
        expected: String(readGame(before).nextIndex),
        found: String(readGame(before).nextIndex + by),
      });
    }
  });
});

describe('audit of outcomes', () => {
  test('the audit detects a changed outcome code, credit or wager in the ledger', async () => {
    const row = await someSpin();
    const id = String(row.entry_id);
    await sql`UPDATE ledger SET outcome_code = (outcome_code + 1) % 3 WHERE entry_id = ${id}`;
    const changed = await audited();
    expect(problems(changed).outcomes).toContain('the outcome differs from the sealed outcome');
    // The audit may also report that the changed outcome code pays a different amount.
    expect(changed.checks.find(({ name }) => name === 'outcomes')!.listed).toContainEqual(
      expect.objectContaining({
        problem: 'the outcome differs from the sealed outcome',
        at: expect.objectContaining({ entry: id, game: gameId, index: Number(row.outcome_index) }),
        expected: String(row.outcome_code),
      }),
    );
    await sql`UPDATE ledger SET outcome_code = ${row.outcome_code}, credit_micros = credit_micros + 1
      WHERE entry_id = ${id}`;
    const paid = await audited();
    expect(problems(paid)).toEqual({
      balances: ['the balance does not follow from the previous balance'],
      outcomes: ['the credit differs from the payout of the PAR sheet or prize table'],
      'double-entry': ['game_days.paid_micros is not their sum in the ledger'],
    });
    expect(firstOf(paid, 'outcomes')).toMatchObject({
      at: { entry: id },
      expected: String(row.credit_micros),
      found: String(row.credit_micros + 1n),
    });
    await sql`UPDATE ledger SET credit_micros = credit_micros - 1, wager_micros = wager_micros - 1
      WHERE entry_id = ${id}`;
    expect(problems(await audited()).outcomes).toEqual([
      'the wager is neither the denomination of the sheet nor the ticket price',
    ]);
  });

  test('the audit detects a changed payout in a PAR sheet', async () => {
    await sql`
      UPDATE par_sheets SET sheet = jsonb_set(sheet::jsonb, '{combinations,0,payMultiplier}', '77.5')::json
      WHERE par_sheet_id = (SELECT par_sheet_id FROM games WHERE game_id = ${gameId})`;
    const found = problems(await audited());
    const [{ dealt }] = (await sql`
      SELECT count(*)::int AS dealt FROM ledger WHERE game_id = ${gameId} AND kind = 1 AND outcome_code = 0`) as unknown as [
      { dealt: number },
    ];
    expect(found).toEqual(
      dealt === 0 ? {} : { outcomes: ['the credit differs from the payout of the PAR sheet or prize table'] },
    );
  });
});

describe('audit of sealed blocks', () => {
  test('the audit detects changed outcomes among those that a game has read ahead', async () => {
    const key = gamesKey(cell);
    const before = (await redis.hgetBuffer(key, String(gameId)))!;
    const { nextIndex, blockFrom } = readGame(before);
    const at = 2 * (nextIndex - blockFrom);
    const sealed = await redis.getrangeBuffer(blockKey(cell, gameId, blockFrom), at, at + 5);
    const put = (ahead: Buffer) =>
      redis.hset(key, String(gameId), Buffer.concat([before.subarray(0, GAME_BYTES), ahead]));
    await put(sealed);
    expect(problems(await audited())).toEqual({});
    const changed = Buffer.from(sealed);
    changed[4]! ^= 1;
    await put(changed);
    const report = await audited();
    expect(problems(report)).toEqual({
      blocks: ['the next outcomes of the game in Redis differ from its block'],
    });
    expect(firstOf(report, 'blocks')).toMatchObject({
      at: { cell, game: gameId, index: nextIndex },
      expected: sealed.toString('hex'),
      found: changed.toString('hex'),
    });
  });

  test('the audit detects a changed byte of a sealed block', async () => {
    await sql`
      UPDATE blocks SET outcomes = set_byte(outcomes, 40, get_byte(outcomes, 40) # 1)
      WHERE game_id = ${gameId} AND from_index = 0`;
    const report = await audited();
    expect(problems(report)).toEqual({
      blocks: ['the commitment does not match the block'],
      outcomes: ['the outcome differs from the sealed outcome'],
    });
    expect(firstOf(report, 'blocks').at).toMatchObject({ game: gameId, from: 0 });
    expect(firstOf(report, 'outcomes').at).toMatchObject({ game: gameId, index: 20 });
  });

  test('the audit detects a changed commitment, nonce, position or length of a sealed block', async () => {
    const at = sql`game_id = ${gameId} AND from_index = 0`;
    await sql`UPDATE blocks SET commitment = set_byte(commitment, 0, get_byte(commitment, 0) # 1) WHERE ${at}`;
    expect(problems(await audited())).toEqual({ blocks: ['the commitment does not match the block'] });
    await sql`UPDATE blocks SET commitment = set_byte(commitment, 0, get_byte(commitment, 0) # 1) WHERE ${at}`;
    await sql`UPDATE blocks SET nonce = set_byte(nonce, 31, get_byte(nonce, 31) # 128) WHERE ${at}`;
    expect(problems(await audited())).toEqual({
      blocks: ['the commitment does not match the block'],
      log: ['the opening of an entry does not match the log'],
    });
    await sql`UPDATE blocks SET nonce = set_byte(nonce, 31, get_byte(nonce, 31) # 128) WHERE ${at}`;
    await sql`UPDATE blocks SET outcomes = substring(outcomes FROM 1 FOR length(outcomes) - 2) WHERE ${at}`;
    expect(problems(await audited()).blocks).toEqual([
      'the commitment does not match the block',
      'the size of the block in bytes is wrong',
    ]);
    await sql`DELETE FROM blocks WHERE ${at}`;
    const report = await audited();
    expect(problems(report).blocks).toContain('the block does not begin at the end of the previous block');
    expect(problems(report).outcomes).toEqual(['no sealed block has an outcome of this index']);
  });

  test('the audit detects a changed seed of a block, by the public log and by redrawing the block', async () => {
    await sql`
      UPDATE blocks SET seed = set_byte(seed, 0, get_byte(seed, 0) # 1) WHERE game_id = ${gameId} AND from_index = 0`;
    const log = ['the opening of an entry does not match the log'];
    expect(problems(await audited())).toEqual({ log });
    const report = await audited({ redraw: true });
    expect(problems(report)).toEqual({
      log,
      blocks: [
        expect.stringMatching(/^the block differs from the outcomes drawn from its seed, first at place \d+/),
      ],
    });
  });

  test('the audit detects a changed or missing block in Redis', async () => {
    const { nextIndex, queueEnd } = readGame((await redis.hgetBuffer(gamesKey(cell), String(gameId)))!);
    // Later blocks may still be waiting for the public log.
    const [last] = await sql`
      SELECT from_index, to_index FROM blocks WHERE game_id = ${gameId} AND to_index <= ${queueEnd}
      ORDER BY from_index DESC LIMIT 1`;
    const from = Number(last!.from_index);
    expect(from).toBeGreaterThan(nextIndex);
    const key = blockKey(cell, gameId, from);
    const bytes = (await redis.getBuffer(key))!;
    const changed = Buffer.from(bytes);
    changed[100]! ^= 1;
    await redis.set(key, changed);
    const report = await audited();
    expect(problems(report)).toEqual({ blocks: ['the block in Redis differs from the sealed block'] });
    expect(firstOf(report, 'blocks')).toMatchObject({
      at: { cell, game: gameId, from, index: from + 50 },
      expected: `byte 100: ${bytes[100]}`,
      found: `byte 100: ${changed[100]}`,
    });
    await redis.set(key, Buffer.concat([bytes, Buffer.alloc(2)]));
    expect(problems(await audited())).toEqual({
      blocks: ['the block in Redis differs from the sealed block'],
    });
    await redis.del(key);
    expect(problems(await audited())).toEqual({ blocks: ['a block of the queue is missing in Redis'] });
    await redis.set(key, bytes);
    await redis.set(blockKey(cell, gameId, from + 1), bytes);
    expect(problems(await audited())).toEqual({ blocks: ['Redis has a block that was never sealed'] });
    await redis.del(blockKey(cell, gameId, from + 1));
    await change(gamesKey(cell), String(gameId), add(4, 24, 1));
    expect(problems(await audited())).toEqual({ blocks: ['the number of ready blocks in Redis is wrong'] });
    await change(gamesKey(cell), String(gameId), add(4, 24, -1));
    await change(gamesKey(cell), String(gameId), add(6, 6, 1));
    expect(problems(await audited())).toEqual({
      blocks: ['the queue in Redis does not end at the end of a sealed block'],
    });
  });
});

describe('audit of double entry', () => {
  test('the audit detects changed daily totals of games and of openings', async () => {
    for (const column of ['spins', 'wagered_micros', 'paid_micros']) {
      await sql`UPDATE game_days SET ${sql(column)} = ${sql(column)} + 1 WHERE game_id = ${gameId}`;
      const report = await audited();
      const [problem] = problems(report)['double-entry']!;
      expect(problem).toMatch(new RegExp(`^game_days.${column} `));
      expect(firstOf(report, 'double-entry').at).toMatchObject({ game: gameId });
      await sql`UPDATE game_days SET ${sql(column)} = ${sql(column)} - 1 WHERE game_id = ${gameId}`;
    }
    await sql`UPDATE opening_days SET opened_micros = opened_micros - 1 WHERE partner_id = ${partnerId}`;
    expect(problems(await audited())).toEqual({
      'double-entry': [
        'opening_days.opened_micros is not their sum in the ledger',
        'the sum of all balances is not openings − wagers + payouts + adjustments + shares',
      ],
    });
    await sql`UPDATE opening_days SET opened_micros = opened_micros + 1, players = players + 1 WHERE partner_id = ${partnerId}`;
    expect(problems(await audited())).toEqual({
      'double-entry': ['opening_days.players is not the number of openings in the ledger'],
    });
    await sql`UPDATE opening_days SET players = players - 1 WHERE partner_id = ${partnerId}`;
    await sql`UPDATE game_days SET day = day - 1 WHERE game_id = ${gameId}`;
    expect(problems(await audited())).toEqual({
      'double-entry': [
        'game_days has a day without entries in the ledger',
        'game_days.spins is not the number of spins in the ledger',
      ],
    });
  });

  test("the audit detects postings that don't sum to zero and a ledger entry of an unknown kind", async () => {
    const { entry_id: id } = await someSpin();
    const [view] = await sql`SELECT pg_get_viewdef('postings') AS definition`;
    const definition = (view!.definition as string).replace(/;$/, '');
    await sql.unsafe(
      `CREATE OR REPLACE VIEW postings AS ${definition} UNION ALL SELECT ${id}::bigint, 'nobody', 1::bigint`,
    );
    const report = await audited();
    expect(problems(report)).toEqual({
      'double-entry': ['the postings of the entry do not sum to zero'],
    });
    expect(firstOf(report, 'double-entry')).toMatchObject({
      at: { entry: String(id) },
      found: '1 of 3 postings',
    });
    await sql`UPDATE ledger SET kind = 10 WHERE entry_id = ${String(id)}`;
    expect(problems(await audited())['double-entry']).toContain('the kind of the entry is unknown');
  });
});

describe('audit of request ids', () => {
  test('the audit detects a requestId that is not bound, or is bound to another entry', async () => {
    const row = await someSpin();
    const field = requestField(partnerId, row.request_id!);
    const key = await boundKey(field);
    const before = (await redis.hgetBuffer(key, field))!;
    await redis.hdel(key, field);
    const unbound = await audited();
    expect(problems(unbound)).toEqual({ requests: ['a requestId of the ledger is not bound in Redis'] });
    expect(firstOf(unbound, 'requests').at).toMatchObject({
      entry: String(row.entry_id),
      request: row.request_id,
    });
    const cases: [edit: (record: Buffer) => void, found: string[]][] = [
      [add(6, 10, 1), ['the bound balance differs from the entry']],
      [add(2, 8, 1), ['the bound outcome code differs from the entry']],
      [add(4, 18, 1), ['the bound fingerprint does not match the request']],
      [add(2, 26, row.entry_id % 2n === 0n ? 1 : -1), ['the bound fingerprint does not match the request']],
      [
        (record) => record.writeBigUInt64LE(row.previous_id, 0),
        ['a requestId of the ledger is not bound in Redis', 'the bound entry has another requestId'],
      ],
      [
        (record) => record.writeBigUInt64LE(row.entry_id + 7_000_000n, 0),
        [
          'a requestId is bound to an entry that is neither in the ledger nor in the outbox',
          'a requestId of the ledger is not bound in Redis',
        ],
      ],
    ];
    for (const [edit, found] of cases) {
      const record = Buffer.from(before);
      edit(record);
      await redis.hset(key, field, record);
      expect(problems(await audited())).toEqual({ requests: found });
    }
  });

  test('the audit detects a bound requestId that was never requested', async () => {
    const { request_id: requestId } = await someSpin();
    const key = await boundKey(requestField(partnerId, requestId!));
    const record = (await redis.hgetBuffer(key, requestField(partnerId, requestId!)))!;
    record.writeBigUInt64LE(123_456_789n, 0);
    await redis.hset(key, requestField(partnerId, 'never'), record);
    const report = await audited();
    expect(problems(report)).toEqual({
      requests: ['a requestId is bound to an entry that is neither in the ledger nor in the outbox'],
    });
    expect(firstOf(report, 'requests').at).toMatchObject({
      field: requestField(partnerId, 'never').toString('hex'),
      entry: '123456789',
    });
  });

  test('the audit detects a requestId in a segment that was closed before its entry', async () => {
    const { entry_id: id } = await someSpin();
    const segments = readSegments((await redis.hgetBuffer(cellKey(cell), 'segments'))!);
    // If the segment were closed here, request ids bound later in this segment would be released with it.
    const closed = [id - 1n, ...segments.closed.slice(1)];
    await redis.hset(cellKey(cell), 'segments', writeSegments({ ...segments, closed }));
    const { requests } = problems(await audited());
    expect(new Set(requests)).toEqual(
      new Set(['the requestId is bound in a segment that was closed before its entry']),
    );
  });
});

describe('audit of cursors', () => {
  test('the audit detects a cursor that is too low or too high', async () => {
    await sql`UPDATE cells SET cursor_id = cursor_id - 1 WHERE cell = ${cell}`;
    expect(problems(await audited())).toEqual({
      cursors: [
        'Redis records an entry above the cursor as committed',
        'the ledger has entries above the cursor',
      ],
    });
    await sql`UPDATE cells SET cursor_id = cursor_id + 2 WHERE cell = ${cell}`;
    const report = await audited();
    expect(problems(report)).toEqual({ cursors: ['the cursor is above the newest entry of the ledger'] });
    expect(firstOf(report, 'cursors').at).toEqual({ cell });
  });

  test('the audit detects a wrong epoch, a halted cell and an unfinished recovery', async () => {
    const epoch = (await redis.hget(cellKey(cell), 'epoch'))!;
    await redis.hset(cellKey(cell), 'epoch', epoch.replace(/:.*/, ':2'));
    expect(problems(await audited())).toEqual({
      cursors: ['the epoch in Redis differs from the epoch of the cell'],
    });
    for (const run of ['of-an-earlier-run', 'none']) {
      await redis.hset(cellKey(cell), 'epoch', epoch.replace(/\w+$/, run));
      expect(problems(await audited())).toEqual({
        cursors: ['no worker has prepared the cell since the last start of Redis'],
      });
    }
    await redis.hdel(cellKey(cell), 'epoch');
    expect(problems(await audited())).toEqual({
      cursors: ['the epoch in Redis differs from the epoch of the cell'],
    });
    await redis.hset(cellKey(cell), 'epoch', epoch);
    await sql`UPDATE cells SET halted = 'for a test' WHERE cell = 3`;
    const report = await audited();
    expect(problems(report)).toEqual({ cursors: ['the cell is halted: for a test'] });
    expect(firstOf(report, 'cursors').at).toEqual({ cell: 3 });
    await sql`UPDATE cells SET halted = NULL`;
    await sql`INSERT INTO recoveries (cell, epoch, reason, step) VALUES (${cell}, 1, 'test', 'players')`;
    expect(problems(await audited()).cursors).toEqual([
      expect.stringMatching(/^a recovery of the cell began at /),
    ]);
  });

  test('the audit detects a Redis whose newest entry is below the cursor', async () => {
    await change(cellKey(cell), 'last', (last) => last.writeUIntLE(last.readUIntLE(0, 6) - 600_000, 0, 6));
    expect(problems(await audited())).toEqual({ cursors: ['the newest entry in Redis is below the cursor'] });
  });

  test('the audit detects different totals of added and of committed entries although the outbox is empty', async () => {
    const last = (await redis.hgetBuffer(cellKey(cell), 'last'))!;
    const id = newestEntryId(last, cell);
    const booked = writeBooked({ id, totals: totalsOfLast(last) });
    await redis.hset(cellKey(cell), 'booked', booked);
    expect(problems(await audited())).toEqual({
      cursors: ['Redis records an entry above the cursor as committed'],
    });
    await sql`UPDATE cells SET cursor_id = ${String(id)} WHERE cell = ${cell}`;
    const differ = 'everything is committed, but the totals of added and committed entries in Redis differ';
    expect(problems(await audited()).cursors).not.toContain(differ);
    add(6, 8, 1)(booked);
    await redis.hset(cellKey(cell), 'booked', booked);
    expect(problems(await audited()).cursors).toContain(differ);
  });

  test('the audit detects an outbox with missing entries, wrong totals or unreadable data', async () => {
    const stream = (await redis.xrangeBuffer(outboxKey(cell), '-', '+')) as [Buffer, Buffer[]][];
    expect(stream.length).toBeGreaterThan(2);
    /** Rewrites the stream with its second entry changed. */
    const write = async (edit: (fields: Buffer[]) => void): Promise<void> => {
      await redis.del(outboxKey(cell));
      for (const [place, [id, fields]] of stream.entries()) {
        const changed = fields.map((field) => Buffer.from(field));
        if (place === 1) edit(changed);
        await redis.xadd(outboxKey(cell), id.toString(), ...changed);
      }
    };
    const found = async () => problems(await audited()).cursors;
    await write(() => {});
    expect(await found()).toBe(undefined);
    await write((fields) => add(6, 0, 1)(fields[3]!));
    expect(await found()).toEqual([
      'the totals of an outbox entry do not follow from the previous outbox entry',
    ]);
    await write((fields) => fields.splice(1, 1, fields[1]!.subarray(0, 40)));
    expect(await found()).toContain("an outbox entry can't be read");
    await write((fields) => add(6, OUTBOX.outcomeIndex, 1)(fields[1]!));
    expect(await found()).toContain('an index in the outbox does not follow the ledger');
    await write((fields) => {
      const last = readOutbox(fields[1]!).at(-1)!.id;
      fields[1]!.writeBigUInt64LE(last + 1n, fields[1]!.lastIndexOf(idBytes(last)));
    });
    expect(await found()).toContain('the id of an outbox entry differs from its last ledger entry');
    await write(() => {});
    await redis.xdel(outboxKey(cell), stream[0]![0].toString());
    const report = await audited();
    expect(problems(report).cursors).toEqual([
      'an index in the outbox does not follow the ledger',
      'the totals of an outbox entry do not follow from the previous outbox entry',
    ]);
    expect(firstOf(report, 'cursors').at).toMatchObject({ cell });
  });

  test('the audit detects a deleted outbox', async () => {
    await redis.del(outboxKey(cell));
    const found = problems(await audited());
    expect(found.indices).toEqual(['the counter in Redis is ahead of the ledger and the outbox']);
    expect(found.balances).toEqual([
      "the player's newest entry in Redis is neither in the ledger nor in the outbox",
    ]);
    expect(found.requests).toEqual([
      'a requestId is bound to an entry that is neither in the ledger nor in the outbox',
    ]);
  });
});

describe('the command spindle audit', () => {
  const env = () => environment({ redisUrl: stores.redisUrl, databaseUrl });

  test('spindle audit prints CLEAN and exits with 0 if it finds nothing', async () => {
    const { status, out } = await cli(env(), '--redraw');
    expect(status).toBe(0);
    expect(out).toMatch(/^ok {5}balances/);
    expect(out).toMatch(/\nCLEAN: [\d,]+ ledger rows/);
  });

  test('spindle audit lists violations up to a limit and exits with 1', async () => {
    await sql`UPDATE ledger SET credit_micros = credit_micros + 1 WHERE game_id = ${gameId}`;
    const { status, out } = await cli(env(), '--limit', '3');
    expect(status).toBe(1);
    expect(out).toContain('WRONG  outcomes');
    expect(out).toMatch(/\n {2}… and [\d,]+ more\n/);
    expect(out.match(/the credit differs from the payout of the PAR sheet or prize table/g)).toHaveLength(3);
    expect(out).toMatch(
      /\n {4}entry \d+ {2}at \S+ {2}spin [0-9a-f]{32} {2}partner \d+ {2}player "[^\n]+" {2}number \d+ {2}game \d+ {2}index \d+/,
    );
    expect(out).toMatch(/NOT CLEAN: [\d,]+ violations/);
    const json = await cli(env(), '--json', '--limit', '2');
    const report = JSON.parse(json.out) as AuditReport;
    expect(json.status).toBe(1);
    expect(report.checks.map((check) => check.listed.length)).toEqual([2, 0, 2, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    expect(report.violations).toBeGreaterThan(1000);
  });

  test('spindle audit names the store that does not respond, and exits with 1 without a verdict', async () => {
    const noRedis = await cli({ ...env(), REDIS_URL: 'redis://127.0.0.1:1' });
    expect([noRedis.status, noRedis.out]).toEqual([1, '']);
    expect(noRedis.error).toContain('Redis is not responding');
    const noPostgres = await cli({ ...env(), DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' });
    expect(noPostgres.status).toBe(1);
    expect(noPostgres.out).toContain('NOT FINISHED: Postgres does not respond');
    expect(noPostgres.out).not.toMatch(/^ok|CLEAN/m);
  });

  test('spindle audit rejects unknown arguments and exits with 2', async () => {
    for (const args of [['everything'], ['--limit', 'x'], ['--unknown']]) {
      const { status, out, error } = await cli(env(), ...args);
      expect([status, out]).toEqual([2, '']);
      expect(error).toMatch(/^spindle: /);
    }
  });
});
