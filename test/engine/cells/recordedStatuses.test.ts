/**
 * Tests that a recorded change of a player or a game comes into force whatever fails after the record, and
 * that its response says what is true.
 */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { audit } from '../../../src/books/audit/audit.js';
import { PlayerStatuses } from '../../../src/engine/cells/playerStatuses.store.js';
import { readPlayer } from '../../../src/engine/redis/cellRecords.js';
import { outboxKey, playersKey } from '../../../src/engine/redis/keys.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import type { TestPartner } from '../../support/client.js';
import { Random } from '../../support/random.js';
import { type OpenNodes, openNodes, rawRedis } from '../../support/redis.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { type OwnStores, ownStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

let stores: OwnStores;
let service: Awaited<ReturnType<typeof startService>>;
let redis: Redis;
let nodes: OpenNodes;
let sql: Sql;
let partner: TestPartner;
let gameId: number;

beforeAll(async () => {
  stores = await ownStores();
  service = await startService(stores, { CELLS: '2', SPIN_DEADLINE_MS: '2000' });
  redis = rawRedis(stores.redisUrl);
  nodes = await openNodes(stores.redisUrl);
  sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
  partner = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});
afterAll(async () => {
  await service.stop();
  redis.disconnect();
  nodes.close();
  await sql.end();
  await stores.drop();
});

afterEach(() => acceptWrites());

type Status = 'ACTIVE' | 'BLOCKED';

const spin = (playerId: string) => service.spin(partner.key, { gameId, playerId, wagerUsd: 0.25 });
const setStatus = (playerId: string, status: Status, reason: string) =>
  service.operator('PATCH', `/partners/${partner.partnerId}/players/${playerId}`, { status, reason });
const statusOf = async (playerId: string): Promise<unknown> =>
  (await service.partner('GET', `/players/${playerId}`, partner.key)).body.status;
async function inRedis(playerId: string): Promise<Status> {
  const { cell } = (await new PlayerStatuses(sql).newest({ partnerId: partner.partnerId, playerId }))!;
  const record = await redis.hgetBuffer(playersKey(cell), `${partner.partnerId}:${playerId}`);
  return readPlayer(record!).status;
}
const recordedOf = async (playerId: string): Promise<Status> => {
  const [row] = await sql<{ status: Status }[]>`
    SELECT status FROM player_statuses WHERE player_id = ${playerId}`;
  return row?.status ?? 'ACTIVE';
};
const hasIntents = async (): Promise<boolean> =>
  (await sql`SELECT 1 FROM player_status_intents LIMIT 1`).length > 0;
/** Redis refuses every write and still answers reads. */
const refuseWrites = () => redis.config('SET', 'maxmemory', '1');
const acceptWrites = () => redis.config('SET', 'maxmemory', '0');

async function players(prefix: string, count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, i) => `${prefix}${i}`);
  for (const name of names) expect((await spin(name)).status).toBe(200);
  return names;
}

async function expectClean(): Promise<void> {
  await until(async () => !(await hasIntents()), 'all changes are carried out');
  for (const cell of [0, 1])
    await until(async () => (await redis.xlen(outboxKey(cell))) === 0, 'all is booked');
  const report = await audit(sql, nodes.nodes, { limit: 9, onProgress: () => {} });
  expect(report.checks.flatMap(({ listed }) => listed)).toEqual([]);
}

test('a block that Redis refuses is answered as recorded, and comes into force once Redis accepts writes', async () => {
  const names = await players('refused', 12);
  await refuseWrites();
  const answers = await Promise.all(names.map((name) => setStatus(name, 'BLOCKED', 'limit')));
  for (const [i, { status, body }] of answers.entries())
    expect({ status, body }).toEqual({
      status: 202,
      body: { playerId: names[i], status: 'BLOCKED', isInForce: false },
    });
  expect(await Promise.all(names.map(inRedis))).toEqual(names.map(() => 'ACTIVE'));
  await acceptWrites();
  await until(
    async () => (await Promise.all(names.map(statusOf))).every((status) => status === 'BLOCKED'),
    'all players are blocked',
  );
  expect((await setStatus(names[0]!, 'BLOCKED', 'limit')).body).toEqual({
    playerId: names[0],
    status: 'BLOCKED',
    isInForce: true,
  });
  await expectClean();
});

test('a worker carries out a block whose process died after the record', async () => {
  const [name] = await players('orphan', 1);
  const change = { partnerId: partner.partnerId, playerId: name!, status: 'BLOCKED', reason: 'r' } as const;
  await new PlayerStatuses(sql).record('operator', change);
  await until(async () => (await statusOf(name!)) === 'BLOCKED', 'the player is blocked');
  await expectClean();
});

test('a block that Redis dies under is answered with what becomes true', async () => {
  const names = await players('dying', 40);
  const answers = names.map((name) => setStatus(name, 'BLOCKED', 'Redis dies'));
  await Promise.race(answers);
  await stores.redis.kill();
  const given = await Promise.all(answers);
  await until(async () => (await spin('other')).status === 200, 'the cells deal again');
  await until(async () => !(await hasIntents()), 'all changes are carried out');
  for (const [i, { status, body }] of given.entries()) {
    expect([200, 202, 503], JSON.stringify(body)).toContain(status);
    const expected = status === 503 ? 'ACTIVE' : 'BLOCKED';
    expect([await recordedOf(names[i]!), await statusOf(names[i]!)], names[i]).toEqual([expected, expected]);
  }
  await expectClean();
});

test('Postgres, Redis, the API and the audit agree after blocks and unblocks while Redis refuses writes by turns', async () => {
  const names = await players('mixed', 16);
  const choices = new Random('statuses');
  const answered = new Map<string, Status>();
  const change = async (name: string, round: number): Promise<void> => {
    const status = choices.whole(0, 1) === 0 ? 'ACTIVE' : 'BLOCKED';
    const answer = await setStatus(name, status, `round ${round}`);
    expect([200, 202], answer.text).toContain(answer.status);
    answered.set(name, status);
  };
  for (let round = 0; round < 8; round++) {
    const changes = names.map((name) => change(name, round));
    await (round % 2 === 0 ? refuseWrites() : acceptWrites());
    await Promise.all(changes);
  }
  await acceptWrites();
  await expectClean();
  for (const name of names)
    expect([await recordedOf(name), await statusOf(name)], name).toEqual([
      answered.get(name),
      answered.get(name),
    ]);
});

test('withdrawing a change keeps a later change of the player', async () => {
  const [name] = await players('later', 1);
  const statuses = new PlayerStatuses(sql);
  const of = { partnerId: partner.partnerId, playerId: name! };
  const first = await statuses.record('operator', { ...of, status: 'BLOCKED', reason: 'first' });
  await statuses.record('operator', { ...of, status: 'BLOCKED', reason: 'second' });
  await statuses.withdraw('operator', first, 'the player does not exist');
  await until(async () => (await statusOf(name!)) === 'BLOCKED', 'the player is blocked');
  await expectClean();
});

test('a game is suspended while Redis does not respond, and the response says so', async () => {
  await stores.redis.freeze();
  const answer = await service.operator('PATCH', `/games/${gameId}`, { status: 'SUSPENDED' });
  stores.redis.thaw();
  expect(answer, answer.text).toMatchObject({ status: 200, body: { status: 'SUSPENDED', queue: null } });
  const active = await service.operator('PATCH', `/games/${gameId}`, { status: 'ACTIVE' });
  expect(active.body).toMatchObject({ status: 'ACTIVE', queue: { consumed: expect.any(Number) } });
});
