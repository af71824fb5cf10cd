/**
 * Tests a restore of Postgres to an older state: no outcome that was revealed after that state is dealt
 * again.
 */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { recover } from '../../../src/cli/recover.js';
import type { RestoredState } from '../../../src/engine/recovery/positions.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { openNodes } from '../../support/redis.js';
import {
  act,
  deal,
  dealUntil,
  expectClean,
  newTable,
  playOut,
  type RoundAnswer,
} from '../../support/rounds.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

const SETTINGS = { CELLS: '1' };

let stores: TestStores;
/** Stores whose Postgres is restored to the older state. */
let restored: TestStores;
let service: Awaited<ReturnType<typeof startService>>;
let partner: TestPartner;
let slot: number;
let table: number;
let raffle: number;
/** A round that is open in the older state but was finished after it. */
let open: RoundAnswer;

interface Shown {
  game_id: number;
  outcome_index: string;
}

async function withSql<T>(databaseUrl: string, use: (sql: postgres.Sql) => Promise<T>): Promise<T> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  try {
    return await use(sql);
  } finally {
    await sql.end();
  }
}

const shownIn = ({ databaseUrl }: TestStores): Promise<Shown[]> =>
  withSql(databaseUrl, async (sql) => [
    ...(await sql<Shown[]>`SELECT game_id, outcome_index FROM ledger WHERE kind IN (1, 6) ORDER BY entry_id`),
  ]);

let asked = 0;
const buy = () =>
  service.spin(partner.key, {
    gameId: raffle,
    playerId: 'alice',
    wagerUsd: 0.5,
    requestId: `ticket-${++asked}`,
  });

/** Plays every kind of game and waits until all entries are committed. */
async function playSome(withRaffle: boolean): Promise<void> {
  for (let i = 0; i < 3; i++) {
    const spun = await service.spin(partner.key, {
      gameId: slot,
      playerId: 'alice',
      wagerUsd: 0.25,
      requestId: `spin-${++asked}`,
    });
    expect(spun.status, spun.text).toBe(200);
    expect((await deal(service, partner.key, table, `player-${++asked}`)).status).toBe(201);
    if (withRaffle) expect((await buy()).status).toBe(200);
  }
}

/** Copies the database, which must have no connections. */
async function copyOf(from: TestStores): Promise<TestStores> {
  const name = `restored_${randomBytes(6).toString('hex')}`;
  const url = new URL(from.databaseUrl);
  const source = url.pathname.slice(1);
  url.pathname = '/postgres';
  const server = url.href;
  await withSql(server, (sql) => sql.unsafe(`CREATE DATABASE ${name} TEMPLATE ${source}`));
  url.pathname = `/${name}`;
  return {
    redisUrl: from.redisUrl,
    databaseUrl: url.href,
    drop: () => withSql(server, async (sql) => void (await sql.unsafe(`DROP DATABASE ${name} WITH (FORCE)`))),
  };
}

async function recoverRestored(options: {
  isToReplace?: boolean;
  restored?: RestoredState;
}): Promise<string[]> {
  const sql = connectPostgres(restored.databaseUrl, { max: 4, name: 'test', onError: () => {} });
  const { nodes, close } = await openNodes(restored.redisUrl);
  try {
    const states = await recover(sql, nodes, {
      isCheck: false,
      isToReplace: false,
      isVolatileAllowed: true,
      clocks: { now: Date.now, skewMaxMs: 60_000 },
      resume: [],
      progress: () => {},
      ...options,
    });
    return states.map(({ state, note }) => (state === 'rebuilt' ? state : `${state}: ${note}`));
  } finally {
    close();
    await sql.end();
  }
}

beforeEach(async () => {
  stores = await freshStores();
  service = await startService(stores, SETTINGS);
  partner = await service.newPartner();
  slot = await service.newGame(partner.key, parSheet('classic-3-reel'));
  table = await newTable(service, partner.partnerId);
  const made = await service.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partner.partnerId}/raffles`,
    {
      displayName: 'A raffle',
      configName: 'RAFFLE',
      ticketPriceUsd: 0.5,
      poolSize: 40,
      prizes: [{ prizeName: 'Car', prizeTier: 6, valueUsd: 50, count: 1 }],
    },
  );
  raffle = made.body.gameConfigId;
  await until(
    async () => (await service.partner('GET', `/games/${raffle}/pool`, partner.key)).body.status === 'ACTIVE',
    'the raffle is open',
  );
  await playSome(true);
  open = await dealUntil(service, partner.key, table, 'open', ({ status }) => status === 'OPEN');
  await service.stop();
  restored = await copyOf(stores);
  service = await startService(stores, SETTINGS);
  await playSome(true);
  expect((await playOut(service, partner.key, open)).status).toBe('SETTLED');
  await service.stop();
});

afterEach(async () => {
  await service.stop();
  await restored.drop();
  await stores.drop();
});

const openRounds = (): Promise<{ deal_id: string }[]> =>
  withSql(restored.databaseUrl, async (sql) => [
    ...(await sql<{ deal_id: string }[]>`SELECT deal_id FROM rounds WHERE status = 'OPEN' ORDER BY deal_id`),
  ]);

/**
 * Checks the rounds that are open in the older state: the stakes of each are refunded by one entry, and the
 * audit log has each once.
 */
async function voidedOnce(wereOpen: readonly { deal_id: string }[]): Promise<void> {
  const [rounds, voids, logged] = await withSql(restored.databaseUrl, async (sql) => [
    await sql`
      SELECT deal_id FROM rounds WHERE status = 'VOIDED' AND payout_micros = 0 AND cardinality(moves) = 0
        AND (SELECT sum(wager) FROM unnest(wagers_micros) AS t(wager)) = 0 ORDER BY deal_id`,
    await sql`SELECT 1 FROM ledger WHERE kind = 8`,
    await sql`SELECT DISTINCT subject, actor, after ->> 'reason' AS reason FROM audit_log WHERE action = 'round.void'`,
  ]);
  expect(rounds).toEqual(wereOpen);
  expect(voids!.length).toBe(wereOpen.length);
  expect(logged!.length).toBe(wereOpen.length);
  expect(logged).toContainEqual({ subject: `round:${open.roundId}`, actor: 'worker', reason: 'RESTORED' });
}

/**
 * Checks that reports count the sealed outcomes that the recoveries voided, but not the skipped indices after
 * them.
 */
async function gapIsNotCounted(): Promise<void> {
  const [recovered, voided] = await withSql(restored.databaseUrl, async (sql) => [
    await sql`SELECT sum(voided)::int AS outcomes FROM recoveries`,
    await sql`SELECT sum(to_index - from_index)::bigint AS indices FROM voids`,
  ]);
  const { outcomes } = recovered![0]!;
  expect(outcomes).toBeGreaterThan(0);
  expect(Number(voided![0]!.indices)).toBeGreaterThan(outcomes);
  const { body } = await service.operator<{ totals: object }>('GET', '/reports/games?interval=LTD');
  expect(body.totals).toMatchObject({ voidedOutcomes: outcomes });
}

/**
 * Checks that the indices of new outcomes differ from all that were revealed, and that the raffle waits for
 * the operator.
 */
async function nothingIsShownAgain(least: (gameId: number) => number): Promise<void> {
  const shown = await shownIn(stores);
  const known = (await shownIn(restored)).length;
  const wereOpen = await openRounds();
  const wasOpen = new Set(wereOpen.map(({ deal_id }) => deal_id));
  expect(wasOpen.size).toBeGreaterThan(0);
  service = await startService(restored, SETTINGS);
  await until(
    async () =>
      (await service.spin(partner.key, { gameId: slot, playerId: 'bob', wagerUsd: 0.25 })).status === 200,
    'spins are dealt',
  );
  await until(
    async () => (await deal(service, partner.key, table, `p-${++asked}`)).status === 201,
    'rounds are dealt',
  );
  await until(
    async () => (await openRounds()).every(({ deal_id }) => !wasOpen.has(deal_id)),
    'they are voided',
  );
  await playSome(false);
  const refused = await buy();
  expect([refused.status, refused.body.errorCode]).toEqual([400, 'KS-4202']);
  const listed = await service.partner<{ games: Record<string, unknown>[] }>('GET', '/games', partner.key);
  expect(listed.body.games.find(({ gameConfigId }) => gameConfigId === raffle)).toMatchObject({
    status: 'SUSPENDED',
    statusReason: 'RESTORED',
  });
  const patched = await service.operator<Record<string, unknown>>('PATCH', `/games/${raffle}`, {
    status: 'ACTIVE',
  });
  expect(patched.body.status).toBe('ACTIVE');
  expect(patched.body).not.toHaveProperty('statusReason');
  await gapIsNotCounted();
  await until(async () => (await buy()).status === 200, 'tickets are sold once it is active');
  await service.stop();
  const before = new Set(shown.map(({ game_id, outcome_index }) => `${game_id}/${outcome_index}`));
  const all = await shownIn(restored);
  const later = all.slice(known).filter(({ game_id }) => game_id !== raffle);
  expect(later.length).toBeGreaterThanOrEqual(8);
  for (const { game_id, outcome_index } of later) {
    expect(before).not.toContain(`${game_id}/${outcome_index}`);
    expect(Number(outcome_index)).toBeGreaterThanOrEqual(least(game_id));
  }
  await voidedOnce(wereOpen);
  const bigints = postgres(restored.databaseUrl, { max: 1, types: { bigint: postgres.BigInt } });
  await expectClean(restored, bigints).finally(() => bigints.end());
  await withSql(restored.databaseUrl, async (sql) => {
    const [block] =
      await sql`SELECT min(from_index) AS from_index FROM blocks WHERE game_id = ${table} AND from_index >= ${least(table)}`;
    expect(block!.from_index).not.toBeNull();
  });
}

/**
 * Sends an action of a round to Redis before a worker has voided the round. The caller has read the round
 * before the restore. If the action is accepted, {@link voidedOnce} fails.
 */
async function actBeforeVoid(): Promise<void> {
  service = await startService(restored, { ...SETTINGS, ROLES: 'http', SPIN_DEADLINE_MS: '1000' });
  const [{ action }] = open.legalActions as [{ action: string }];
  const refused = await act(service, partner.key, open.roundId, action, 1);
  expect([refused.status, refused.body.errorCode]).toEqual([503, 'KS-5002']);
  await service.stop();
}

describe('a restore of Postgres to an older state', () => {
  test('after a restore with an empty Redis, games continue above all loaded indices and raffles are suspended', async () => {
    const redis = new Redis(stores.redisUrl, { protocol: 2 });
    await redis.flushdb();
    redis.disconnect();
    expect(await recoverRestored({ restored: { floors: new Map() } })).toEqual(['rebuilt']);
    await actBeforeVoid();
    await nothingIsShownAgain(() => 2 ** 32);
  });

  test('after a restore, games continue at the lowest indices that the operator gives', async () => {
    const floors = new Map([
      [slot, 1_000_000],
      [table, 2_000_000],
    ]);
    expect(await recoverRestored({ restored: { floors } })).toEqual(['rebuilt']);
    await nothingIsShownAgain((gameId) => floors.get(gameId)!);
  });

  test('after a restore, if a Redis that is ahead of Postgres is replaced, its counters stay lower limits for new indices', async () => {
    expect((await recoverRestored({}))[0]).toMatch(/^failed: .*Postgres was restored from an older copy/);
    expect(await recoverRestored({ isToReplace: true })).toEqual(['rebuilt']);
    await nothingIsShownAgain(() => 2 ** 32);
  });
});
