/**
 * Tests a Redis that has lost its data or has other data: how it is recovered, and that nothing is dealt from
 * it before.
 */
import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkpointPlayers } from '../../../src/engine/recovery/recoveries.store.js';
import { cellKey, gamesKey } from '../../../src/engine/redis/keys.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import { booksHold } from '../../support/books.js';
import type { Answer, TestPartner } from '../../support/client.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;

const WAGER = 0.25;
const WAGER_MICROS = 250_000n;
const ends: (() => Promise<unknown>)[] = [];
let stores: TestStores | OwnStores;
let sql: postgres.Sql<{ bigint: bigint }>;
let redis: Redis;
let service: Service;
let partner: TestPartner;
let gameId: number;

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function begin(own: boolean): Promise<void> {
  stores = own ? await ownStores() : await freshStores();
  ends.push(() => stores.drop());
  sql = postgres(stores.databaseUrl, {
    max: 2,
    types: { bigint: postgres.BigInt },
    onnotice: () => {},
  });
  ends.push(() => sql.end());
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  redis.on('error', () => {});
  ends.push(async () => redis.disconnect());
  service = await startService(stores);
  ends.push(() => service.stop());
  partner = await service.newPartner({ openingBalanceUsd: 50 });
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
}

const spin = (requestId: string, playerId = 'p0') =>
  service.spin(partner.key, { gameId, playerId, wagerUsd: WAGER, requestId });

const booked = async (): Promise<number> =>
  Number((await sql`SELECT count(*) AS count FROM ledger WHERE kind = 1`)[0]!.count);

interface Spun {
  readonly requestId: string;
  readonly playerId: string;
  readonly text: string;
}

async function spinAndBook(name: string, count: number): Promise<Spun[]> {
  const spun = await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const requestId = `${name}-${i}`;
      const playerId = `p${i % 5}`;
      const answer = await spin(requestId, playerId);
      expect(answer.status, answer.text).toBe(200);
      return { requestId, playerId, text: answer.text };
    }),
  );
  const those = async () => sql`SELECT 1 FROM ledger WHERE request_id LIKE ${`${name}-%`}`;
  await until(async () => (await those()).length === count, 'the spins are booked');
  return spun;
}

/** Waits until a new spin is dealt. Until then every response must be KS-5002 or KS-4203. */
async function dealtAgain(requestId: string): Promise<Answer> {
  let answer = await spin(requestId);
  await until(async () => {
    if (answer.status === 200) return true;
    expect([answer.status, ['KS-5002', 'KS-4203'].includes(String(answer.body.errorCode))]).toEqual([
      503,
      true,
    ]);
    answer = await spin(requestId);
    return answer.status === 200;
  }, 'spins are dealt again');
  return answer;
}

async function replaysHold(spun: readonly Spun[], all: number): Promise<void> {
  await until(async () => (await booked()) === all, 'all is booked');
  const before = await sql`SELECT count(*) AS count FROM ledger`;
  for (const { requestId, playerId, text } of spun) {
    const again = await spin(requestId, playerId);
    expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([text, 'true']);
  }
  const { requestId, playerId } = spun[0]!;
  const other = await spin(requestId, `${playerId}-other`);
  expect([other.status, other.body.errorCode]).toEqual([409, 'KS-4111']);
  expect(await sql`SELECT count(*) AS count FROM ledger`).toEqual(before);
}

const micros = (usd: unknown): bigint => BigInt(Math.round((usd as number) * 1e6));
const balanceOf = (text: string): bigint => micros(JSON.parse(text).balance.balanceUsd);
const payoutOf = (text: string): bigint => micros(JSON.parse(text).outcome.payoutUsd);
const statusz = () => service.request<{ unserved?: string[] }>('GET', '/statusz');
const isReady = async (): Promise<boolean> => (await statusz()).status === 200;
const metrics = async (): Promise<string> =>
  (await fetch(`http://127.0.0.1:${service.running.metricsPort}/metrics`)).text();

describe('a Redis that is emptied', () => {
  beforeEach(() => begin(false));

  test('/statusz is not well after a rebuild until the games have outcomes to deal', async () => {
    await sql.unsafe(`
      CREATE FUNCTION no_blocks() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no blocks'; END $$;
      CREATE TRIGGER no_blocks BEFORE INSERT ON blocks FOR EACH ROW EXECUTE FUNCTION no_blocks()`);
    await redis.flushdb();
    await until(
      async () => (await sql`SELECT 1 FROM recoveries WHERE finished_at IS NOT NULL`).length > 0,
      'a cell is rebuilt',
    );
    await until(async () => (await spin('dry')).body.errorCode === 'KS-4203', 'the cell is open again');
    expect((await statusz()).status).toBe(503);
    await until(async () => (await statusz()).text.includes('Games without outcomes'), 'the game is named');
    await sql.unsafe('DROP FUNCTION no_blocks CASCADE');
    await until(isReady, 'the service is ready');
    expect((await spin('dealt')).status).toBe(200);
  });

  test('a Redis emptied while the service runs is rebuilt with all balances, request ids and counters', async () => {
    // The spins are sent one at a time, so that the last response has a player's newest balance.
    const spun: Spun[] = [];
    for (let i = 0; i < 20; i++) {
      const answer = await spin(`one-${i}`, `p${i % 5}`);
      spun.push({ requestId: `one-${i}`, playerId: `p${i % 5}`, text: answer.text });
    }
    spun.push(...(await spinAndBook('many', 30)));
    await until(async () => (await booked()) === 50, 'all is booked');
    const balance = (await service.partner('GET', '/players/p0', partner.key)).text;
    await redis.flushdb();
    const first = await dealtAgain('after');
    await until(isReady, 'the service is ready');
    expect((await service.partner('GET', '/players/p1', partner.key)).body.balanceUsd).toBe(
      Number(
        (
          await sql`SELECT balance_micros FROM ledger WHERE player_id = 'p1' ORDER BY entry_number DESC LIMIT 1`
        )[0]!.balance_micros,
      ) / 1e6,
    );
    expect(balanceOf(first.text)).toBe(
      micros(JSON.parse(balance).balanceUsd) - WAGER_MICROS + payoutOf(first.text),
    );
    expect((await service.partner('GET', '/players/p0', partner.key)).body.createdAt).toBe(
      JSON.parse(balance).createdAt,
    );
    await until(async () => (await booked()) === 51, 'the new spin is booked');
    const [{ lease_end: leaseEnd }] = (await sql`
      SELECT max(to_index) AS lease_end FROM blocks WHERE epoch = 1`) as unknown as [{ lease_end: bigint }];
    expect([...(await sql`SELECT from_index, to_index, epoch FROM voids`)]).toEqual([
      { from_index: 50n, to_index: leaseEnd, epoch: 2n },
    ]);
    expect((await sql`SELECT max(outcome_index) AS max FROM ledger`)[0]!.max).toBe(leaseEnd);
    await replaysHold(spun, 51);
    await booksHold(sql);
    const recoveries = await sql`SELECT cell, epoch, voided, players, requests, finished_at FROM recoveries`;
    expect([...recoveries]).toEqual([
      {
        cell: 0,
        epoch: 2n,
        voided: leaseEnd - 50n,
        players: 5n,
        requests: 50n,
        finished_at: expect.any(Date),
      },
    ]);
    const log = await service.operator<{ entries: { action: string; subject: string }[] }>(
      'GET',
      '/audit-log',
    );
    expect(log.body.entries).toContainEqual(
      expect.objectContaining({ action: 'cell.recover', subject: 'cell:0', actor: 'worker' }),
    );
    expect(await metrics()).toMatch(/^spindle_recovery_seconds_count 1$/m);
  });

  test('an emptied Redis is rebuilt in all cells, a few cells at a time', async () => {
    const others = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const other = await service.newPartner({ openingBalanceUsd: 5 });
        const game = await service.newGame(other.key, parSheet('classic-3-reel'));
        const body = { gameId: game, playerId: 'p', wagerUsd: WAGER, requestId: 'r' };
        const { status, text } = await service.spin(other.key, body);
        expect(status).toBe(200);
        return { key: other.key, body, text };
      }),
    );
    await until(async () => (await booked()) === others.length, 'all is booked');
    expect((await sql`SELECT DISTINCT cell FROM partners JOIN ledger USING (partner_id)`).length).toBe(4);
    await redis.flushdb();
    const rebuilt = () => sql`SELECT DISTINCT cell FROM recoveries WHERE finished_at IS NOT NULL`;
    await until(async () => (await rebuilt()).length === 4, 'each cell is rebuilt');
    await until(isReady, 'the service is ready');
    for (const { key, body, text } of others) {
      await until(async () => (await service.spin(key, body)).text === text, 'the replay is answered');
    }
    expect(await booked()).toBe(others.length);
    await booksHold(sql);
  });

  test('a Redis that was emptied while the service was down is rebuilt at the start', async () => {
    const spun = await spinAndBook('one', 30);
    await service.stop();
    await redis.flushdb();
    service = await startService(stores);
    await dealtAgain('after');
    await replaysHold(spun, 31);
    await booksHold(sql);
  });

  test('each time Redis is emptied, the leased outcomes are voided, each of them once', async () => {
    const spun: Spun[] = [];
    for (let round = 0; round < 4; round++) {
      spun.push(...(await spinAndBook(`round-${round}`, 10)));
      await redis.flushdb();
      const { text } = await dealtAgain(`after-${round}`);
      spun.push({ requestId: `after-${round}`, playerId: 'p0', text });
      await until(async () => (await booked()) === (round + 1) * 11, 'the new spin is booked');
    }
    await replaysHold(spun, 44);
    await booksHold(sql);
    expect((await sql`SELECT count(*)::int AS count FROM voids`)[0]!.count).toBe(4);
  });

  test('an emptied Redis is rebuilt from the checkpoint of its players and the entries committed since', async () => {
    const service = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
    ends.push(() => service.end());
    const first = await spinAndBook('first', 20);
    expect(await checkpointPlayers(service, 0)).toBe(5);
    const second = await spinAndBook('second', 3);
    const checkpoint = () => sql`
      SELECT entry_id, entry_number, outcome_code, balance_micros, first_id FROM player_checkpoints ORDER BY player_id`;
    const newest = (isAll: boolean) => sql`
      SELECT DISTINCT ON (player_id) entry_id, entry_number, outcome_code, balance_micros,
        min(entry_id) OVER (PARTITION BY player_id) AS first_id
      FROM ledger WHERE ${isAll} OR request_id IS NULL OR request_id LIKE 'first-%' ORDER BY player_id, entry_number DESC`;
    expect([...(await checkpoint())]).toEqual([...(await newest(false))]);
    await redis.flushdb();
    await dealtAgain('after');
    await replaysHold([...first, ...second], 24);
    await booksHold(sql);
    expect(await checkpointPlayers(service, 0)).toBe(3);
    expect([...(await checkpoint())]).toEqual([...(await newest(true))]);
    expect(await checkpointPlayers(service, 0)).toBeUndefined();
    // The checkpoint has the newest state of every player now, so the ledger is not read for players.
    await redis.flushdb();
    await dealtAgain('last');
    await until(async () => (await booked()) === 25, 'the new spin is booked');
    await booksHold(sql);
  });

  test('after Redis was emptied before the first commit, games start at the end of the leased outcomes', async () => {
    await redis.flushdb();
    await dealtAgain('first');
    await until(async () => (await booked()) === 1, 'the spin is booked');
    await booksHold(sql);
    expect([...(await sql`SELECT outcome_index AS at FROM ledger WHERE kind = 1`)]).toEqual([
      ...(await sql`SELECT to_index AS at FROM voids WHERE from_index = 0 AND to_index > 0`),
    ]);
  });

  test('after a rebuild of Redis, the remaining funding of a partner is that of the ledger', async () => {
    // The largest payout of the PAR sheet is far above the cost of one spin.
    const largest = Math.max(
      ...(parSheet('classic-3-reel').combinations as { payMultiplier: number }[]).map(
        (combination) => combination.payMultiplier * WAGER,
      ),
    );
    // Each spin of a partner is funded until the winnings exceed the wagers, so the test searches for a
    // partner that wins early.
    let game = 0;
    let ask = (): Promise<Answer> => Promise.reject(new Error('No partner yet'));
    let net = 0n;
    for (let tries = 0; tries < 60 && net <= 0n; tries++) {
      const poor = await service.newPartner({ openingBalanceUsd: 50, fundingUsd: largest });
      game = await service.newGame(poor.key, parSheet('classic-3-reel'));
      ask = () => service.spin(poor.key, { gameId: game, playerId: 'p', wagerUsd: WAGER });
      net = 0n;
      for (let spins = 0; spins < 4 && net <= 0n; spins++) {
        const answer = await ask();
        expect(answer.status).toBe(200);
        net += payoutOf(answer.text) - WAGER_MICROS;
      }
    }
    expect(net > 0n).toBe(true);
    const answer = await ask();
    expect([answer.status, answer.body.errorCode]).toEqual([503, 'KS-5011']);
    await until(
      async () =>
        (await sql`SELECT 1 FROM game_days WHERE game_id = ${game} AND paid_micros > wagered_micros`)
          .length === 1,
      'the win is booked',
    );
    await redis.flushdb();
    await until(async () => (await ask()).body.errorCode === 'KS-5011', 'the cell is back in service');
  });
});

describe('a Redis that is restored from an older copy', () => {
  beforeEach(() => begin(true));

  test('a Redis restored from an older copy is rebuilt before it deals, even if the copy has the current epoch', async () => {
    const own = stores as OwnStores;
    const files = join(own.dataDir, 'redis', 'appendonlydir');
    const copy = join(own.dataDir, 'copy');
    const spun = await spinAndBook('before', 20);
    await own.redis.stop();
    await cp(files, copy, { recursive: true });
    await own.redis.start();
    await dealtAgain('between');
    spun.push(...(await spinAndBook('after', 30)));

    for (const round of [1, 2]) {
      await own.redis.stop();
      await rm(files, { recursive: true });
      await cp(copy, files, { recursive: true });
      await own.redis.start();
      await dealtAgain(`again-${round}`);
      await replaysHold(spun, 51 + round);
      await booksHold(sql);
      const [recovery] =
        await sql`SELECT epoch, reason, finished_at FROM recoveries ORDER BY epoch DESC LIMIT 1`;
      expect(recovery).toEqual({
        epoch: BigInt(round + 1),
        reason: expect.stringMatching(round === 1 ? /older copy/ : /before an earlier rebuild/),
        finished_at: expect.any(Date),
      });
    }
    expect((await sql`SELECT count(*)::int AS count FROM cells WHERE halted IS NOT NULL`)[0]!.count).toBe(0);
  });

  test('a restarted Redis that is as new as the ledger is dealt from without a recovery', async () => {
    const own = stores as OwnStores;
    const spun = await spinAndBook('before', 20);
    await own.redis.stop();
    await own.redis.start();
    await dealtAgain('after');
    await replaysHold(spun, 21);
    expect([...(await sql`SELECT * FROM recoveries`)]).toEqual([]);
    expect([...(await sql`SELECT * FROM voids`)]).toEqual([]);
  });
});

describe('stores that only an engineer may repair', () => {
  beforeEach(() => begin(false));

  const refusal = async (reason: RegExp): Promise<void> => {
    let lines: string[] = [];
    await until(async () => {
      const answer = await statusz();
      lines = answer.body.unserved ?? [];
      return answer.status === 503 && lines.join().includes('cells 0');
    }, 'the service is not ready, and says which cell is not');
    const answer = await spin('refused');
    expect([answer.status, answer.body.errorCode]).toEqual([503, 'KS-5002']);
    await until(async () => (await metrics()).includes('spindle_cell_halted{cell="0"} 1'), String(reason));
  };

  test('the Redis data of another database is neither dealt from nor changed', async () => {
    await spinAndBook('one', 10);
    await service.stop();
    const epoch = (await redis.hget(cellKey(0), 'epoch'))!;
    await redis.hset(cellKey(0), 'epoch', `00000000-0000-0000-0000-000000000000:1:${epoch.split(':')[2]}`);
    const held = async () => [
      await redis.hgetall(cellKey(0)),
      await redis.hgetall(gamesKey(0)),
      (await redis.keys('{c0}:*')).sort(),
    ];
    const before = await held();
    service = await startService(stores);
    await refusal(/another database/);
    expect(await held()).toEqual(before);
    expect([...(await sql`SELECT * FROM recoveries`)]).toEqual([]);
    await redis.hset(cellKey(0), 'epoch', epoch);
    await dealtAgain('after');
  });

  test('deals nothing if Postgres is older than the commits that Redis has on record', async () => {
    await spinAndBook('one', 10);
    const saved = await sql`SELECT cursor_id FROM cells WHERE cell = 0`;
    await spinAndBook('two', 10);
    await until(async () => (await redis.xlen('{c0}:outbox')) === 0, 'the outbox is trimmed');
    const newest = await sql`SELECT cursor_id FROM cells WHERE cell = 0`;
    await service.stop();
    await sql`UPDATE cells SET cursor_id = ${saved[0]!.cursor_id} WHERE cell = 0`;
    service = await startService(stores);
    await refusal(/older copy/);
    expect([...(await sql`SELECT * FROM recoveries`)]).toEqual([]);
    // The cursor in Postgres is set to its old value, so the cell continues without intervention.
    await sql`UPDATE cells SET cursor_id = ${newest[0]!.cursor_id} WHERE cell = 0`;
    await dealtAgain('after');
    await until(async () => (await booked()) === 21, 'the new spin is booked');
    await booksHold(sql);
  });
});
