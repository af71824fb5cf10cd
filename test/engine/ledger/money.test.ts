/**
 * Tests that no amount of money stops the ledger. Sums of any size are exact, and data that Postgres refuses
 * halts only one cell, with an alarm.
 */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OUTBOX } from '../../../src/engine/redis/cellRecords.js';
import { cellKey, gamesKey, outboxKey, partnersKey, playersKey } from '../../../src/engine/redis/keys.js';
import { freshStores } from '../../setup/freshStores.js';
import { OPERATOR_KEY, type TestPartner } from '../../support/client.js';
import { type LoggedService, startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const WAGER_USD = 1_000_000_000;
const INT8_MAX = 9_223_372_036_854_775_807n;

/** PAR sheet of a coin toss: half of the spins pay twice the wager. */
const COIN = {
  gameTitle: 'Coin',
  manufacturer: '',
  numReels: 1,
  virtualStopsPerReel: [2],
  certifiedRtp: 1,
  denominationUsd: 1,
  symbols: [
    { name: 'H', display: 'H' },
    { name: 'T', display: 'T' },
  ],
  tiers: [
    { tierId: 0, name: 'none', probability: 0.5, payMultiplier: 0 },
    { tierId: 1, name: 'win', probability: 0.5, payMultiplier: 2 },
  ],
  combinations: [
    {
      reelSymbols: ['H'],
      comboString: 'H',
      payMultiplier: 2,
      comboProbability: 0.5,
      tierId: 1,
      displayWeight: 0,
    },
    {
      reelSymbols: ['T'],
      comboString: 'T',
      payMultiplier: 0,
      comboProbability: 0.5,
      tierId: 0,
      displayWeight: 0,
    },
  ],
};

let stores: TestStores;
let sql: postgres.Sql;
let redis: Redis;
let service: LoggedService;

beforeEach(async () => {
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  service = await startLogged(stores);
});
afterEach(async () => {
  await service.running.stop();
  redis.disconnect();
  await sql.end();
  await stores.drop();
});

const numberOf = (text: string, member: string): string =>
  new RegExp(`"${member}":(-?[0-9.]+)`).exec(text)?.[1] ?? 'absent';
const usdOf = (micros: bigint): string => `${micros / 1_000_000n}`;
const bookedSpins = async (gameId: number): Promise<number> =>
  Number((await sql`SELECT count(*) FROM ledger WHERE kind = 1 AND game_id = ${gameId}`)[0]!.count);
const cellOf = async (partnerId: number): Promise<number> =>
  (await sql`SELECT cell FROM partners WHERE partner_id = ${partnerId}`)[0]!.cell as number;
const loseCell = (cell: number) =>
  redis.del(cellKey(cell), gamesKey(cell), partnersKey(cell), playersKey(cell));

/** Makes a game with a wager of one billion USD, on a PAR sheet that only an earlier version would accept. */
async function hugeGame(partner: TestPartner): Promise<number> {
  const sheetId = await service.api.addSheet(partner.key, COIN);
  const micros = String(WAGER_USD * 1e6);
  await sql`
    UPDATE par_sheets SET sheet = (sheet::jsonb || jsonb_build_object('denominationUsd', ${WAGER_USD}::bigint,
      'denominationMicros', ${micros}::bigint))::json WHERE par_sheet_id = ${sheetId}`;
  const gameId = await service.api.addGame(partner.key, sheetId, 'huge');
  await until(async () => (await spinOnce(partner, gameId, 'first')).status === 200, 'the game can be spun');
  return gameId;
}

const spinOnce = (partner: TestPartner, gameId: number, playerId: string, wagerUsd = WAGER_USD) =>
  service.spin(partner.key, { gameId, playerId, wagerUsd });

test('sums beyond a double and beyond 8 bytes are exact in commits, responses, settlement reports and rebuilds', async () => {
  const partner = await service.newPartner({ openingBalanceUsd: 4_000_000_000 });
  const gameId = await hugeGame(partner);
  for (let i = 1; i < 20; i++) expect((await spinOnce(partner, gameId, `p${i}`)).status).toBe(200);
  await until(async () => (await bookedSpins(gameId)) === 20, 'the spins are booked');
  // The sums are set so close to the limit of an 8-byte integer that a single spin exceeds it.
  await sql`
    UPDATE game_days SET wagered_micros = ${String(INT8_MAX - 7n)}, paid_micros = ${String(INT8_MAX - 5n)}
    WHERE game_id = ${gameId}`;
  await sql`UPDATE opening_days SET opened_micros = ${String(INT8_MAX)} WHERE partner_id = ${partner.partnerId}`;
  const last = await spinOnce(partner, gameId, 'last');
  expect(last.status).toBe(200);
  await until(async () => (await bookedSpins(gameId)) === 21, 'the spin is booked');

  const wagered = INT8_MAX - 7n + BigInt(WAGER_USD) * 1_000_000n;
  const { outcome } = last.body as { outcome: { payoutUsd: number } };
  const paid = INT8_MAX - 5n + BigInt(outcome.payoutUsd) * 1_000_000n;
  const shown = (micros: bigint): string =>
    `${usdOf(micros)}.${String(micros % 1_000_000n).padStart(6, '0')}`.replace(/\.?0+$/, '');
  const game = await service.operator('GET', `/games/${gameId}`);
  expect(game.status, game.text).toBe(200);
  expect(numberOf(game.text, 'wageredUsd')).toBe(shown(wagered));
  expect(numberOf(game.text, 'paidOutUsd')).toBe(shown(paid));

  const today = new Date().toISOString().slice(0, 10);
  const made = await service.operator('POST', `/partners/${partner.partnerId}/settlements/${today}`);
  expect(made.status, made.text).toBe(201);
  expect(numberOf(made.text, 'totalWageredUsd')).toBe(shown(wagered));
  const read = await service.partner('GET', `/settlements/${today}`, partner.key);
  expect(numberOf(read.text, 'totalPaidOutUsd')).toBe(shown(paid));
  expect((await service.metric('spindle_booked_wagered_usd_total')) * 1e6).toBeGreaterThan(9.2e18);

  const cell = await cellOf(partner.partnerId);
  await loseCell(cell);
  await until(
    async () =>
      (await sql`SELECT 1 FROM recoveries WHERE cell = ${cell} AND finished_at IS NOT NULL`).length > 0,
    'the cell is rebuilt',
  );
  await until(async () => (await spinOnce(partner, gameId, 'after')).status === 200, 'the game deals again');
});

test('halts a cell whose data Postgres refuses, with an alarm, while cells of the same flush are committed', async () => {
  const partners: TestPartner[] = [];
  const games: number[] = [];
  const cells: number[] = [];
  for (let made = 0; made < 4; made++) {
    const partner = await service.newPartner();
    partners.push(partner);
    games.push(await service.newGame(partner.key, parSheet('classic-3-reel')));
    cells.push(await cellOf(partner.partnerId));
  }
  expect(new Set(cells).size).toBe(4);
  const spin = async (place: number): Promise<void> => {
    expect((await spinOnce(partners[place]!, games[place]!, 'p', 0.25)).status).toBe(200);
  };
  /**
   * Sends spins to the first three cells while a flush of the last cell waits for a lock, so that one read
   * returns the entries of all three cells.
   */
  const spinTogether = () =>
    sql.begin(async (tx) => {
      await tx`LOCK TABLE game_progress IN EXCLUSIVE MODE`;
      await spin(3);
      await until(async () => {
        const waiting = await sql`
          SELECT 1 FROM pg_locks WHERE relation = 'game_progress'::regclass AND NOT granted
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
        return waiting.length > 0;
      }, 'a flush waits');
      for (const place of [0, 1, 2]) await spin(place);
    });
  await spinTogether();
  const first = games.slice(0, 3);
  await until(
    async () => (await Promise.all(first.map(bookedSpins))).every((spins) => spins === 1),
    'all are booked',
  );
  expect(
    await sql`SELECT DISTINCT xmin::text FROM ledger WHERE kind = 1 AND game_id = ANY(${first})`,
  ).toHaveLength(1);
  const [cell] = cells as [number];
  await sql`ALTER TABLE game_days ADD CONSTRAINT refused CHECK (game_id <> ${sql.unsafe(String(games[0]))}) NOT VALID`;
  await spinTogether();
  await until(
    async () => (await sql`SELECT 1 FROM cells WHERE halted IS NOT NULL`).length === 1,
    'a cell is halted',
  );
  // The first attempt flushed all cells together and failed.
  const failed = service.lines.filter(({ msg }) => msg === 'flush failed, will retry');
  expect(failed.some((line) => !('cell' in line))).toBe(true);
  const ready = () => service.request<object>('GET', '/statusz', { key: OPERATOR_KEY });
  await until(async () => (await ready()).text.includes(`Cell ${cell} is halted`), 'statusz names the cell');
  // The front end stays ready, because a load balancer that removed it would stop the other cells as well.
  expect((await service.request('GET', '/readyz')).body).toEqual({ status: 'ready', missing: [] });
  expect(await ready()).toMatchObject({
    status: 503,
    body: { status: 'degraded', missing: [], unserved: { length: 1 }, waiting: [] },
  });
  await until(
    async () => (await service.metric(`spindle_cell_halted{cell="${cell}"}`)) === 1,
    'the metrics say that it is halted',
  );
  expect(service.lines.filter(({ level, msg }) => level === 60 && msg === 'cell halted')).toMatchObject([
    { cell },
  ]);
  for (let i = 0; i < 20; i++) for (const place of [1, 2]) await spin(place);
  for (const place of [1, 2])
    await until(async () => (await bookedSpins(games[place]!)) === 22, 'the neighbours are booked');
  expect(await bookedSpins(games[0]!)).toBe(1);
});

test('an outbox entry that can not be read halts its cell with an alarm', async () => {
  const partner = await service.newPartner();
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const cell = await cellOf(partner.partnerId);
  const spin = async (): Promise<void> => {
    expect((await spinOnce(partner, gameId, 'p', 0.25)).status).toBe(200);
  };
  const stream = outboxKey(cell);
  await sql.begin(async (tx) => {
    await tx`LOCK TABLE game_progress IN EXCLUSIVE MODE`;
    await spin();
    await until(async () => {
      const waiting = await sql`
        SELECT 1 FROM pg_locks WHERE relation = 'game_progress'::regclass AND NOT granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;
      return waiting.length > 0;
    }, 'a flush waits');
    await spin();
    const [[id, fields]] = (await redis.xrevrangeBuffer(stream, '+', '-', 'COUNT', 1)) as [
      [Buffer, Buffer[]],
    ];
    fields[1]![OUTBOX.kind] = 250;
    const [ms, sequence] = id.toString().split('-');
    await redis.xdel(stream, id);
    await redis.xadd(stream, `${ms}-${Number(sequence) + 1}`, ...fields);
  });
  await until(
    async () => (await sql`SELECT 1 FROM cells WHERE halted LIKE '%can''t be read%'`).length === 1,
    'the cell is halted',
  );
  expect(await bookedSpins(gameId)).toBe(1);
  expect(service.lines.filter(({ level, msg }) => level === 60 && msg === 'cell halted')).toMatchObject([
    { cell },
  ]);
});

test('waits longer after each failed attempt to rebuild a cell', async () => {
  const partner = await service.newPartner();
  const gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  expect((await spinOnce(partner, gameId, 'p', 0.25)).status).toBe(200);
  await until(async () => (await bookedSpins(gameId)) === 1, 'the spin is booked');
  const cell = await cellOf(partner.partnerId);
  // No record in Redis has room for this outcome code, so every rebuild fails.
  await sql`
    INSERT INTO player_checkpoints (partner_id, player_id, entry_id, entry_number, outcome_code, balance_micros, first_id)
    VALUES (${partner.partnerId}, 'impossible', 1, 1, 70000, 0, 1)`;
  await loseCell(cell);
  const attempts = () =>
    sql<{ at: Date }[]>`SELECT started_at AS at FROM recoveries WHERE cell = ${cell} ORDER BY epoch`;
  await until(async () => (await attempts()).length >= 5, 'the rebuild was tried five times');
  const [first, , , , fifth] = await attempts();
  expect(fifth!.at.getTime() - first!.at.getTime()).toBeGreaterThan(6000);
  await sql`DELETE FROM player_checkpoints WHERE player_id = 'impossible'`;
  await until(
    async () => (await spinOnce(partner, gameId, 'p', 0.25)).status === 200,
    'the cell is rebuilt once it can be',
  );
});
