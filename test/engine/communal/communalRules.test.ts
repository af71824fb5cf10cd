/**
 * Tests communal rules whose change was not confirmed: neither a rebuild nor a move may put them into force.
 */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { type CommunalBody, readRules } from '../../../src/domain/communalRules.js';
import { Communal } from '../../../src/engine/communal/communal.store.js';
import { COMMUNAL_FUND } from '../../../src/engine/communal/communalFundOperation.js';
import { COMMUNAL_SET } from '../../../src/engine/communal/communalSetOperation.js';
import { requestSegments } from '../../../src/engine/redis/requestSegments.js';
import { Scripts } from '../../../src/engine/redis/scripts.js';
import { SPIN_STATUS } from '../../../src/engine/redis/statuses.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { world } from '../../setup/world.js';
import { commandOnce } from '../../support/cellCommands.js';
import type { TestPartner } from '../../support/client.js';
import { auditFindings, RULES, setUp } from '../../support/communal.js';
import { movePartner } from '../../support/moves.js';
import { type Cable, proxy } from '../../support/proxy.js';
import { openNodes } from '../../support/redis.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;

/** Delay in ms that is longer than any test. */
const HELD_MS = 600_000;
const NEW_RULES = { ...RULES, triggerInterval: 25 };

const { stores, sql, redis } = world();
let cable: Cable;
/**
 * The service deals and commits spins. The front end `front` connects to Redis through the proxy and has a
 * short deadline.
 */
let service: Service;
let front: Service;
let partner: TestPartner;
let gameId: number;

beforeAll(async () => {
  cable = await proxy(stores.redisUrl);
  service = await startService(stores, { CELLS: '2' });
  const through = { ...stores, redisUrl: cable.url };
  front = await startService(through, { CELLS: '2', ROLES: 'http', SPIN_DEADLINE_MS: '1500' });
});
afterAll(async () => {
  await front?.stop();
  await cable?.close();
  await service?.stop();
});
beforeEach(async () => {
  partner = await service.newPartner({ openingBalanceUsd: 1000 });
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  await setUp(service, gameId);
});

const put = (from: Service) => from.operator('PUT', `/games/${gameId}/communal`, NEW_RULES);
const shown = async () => (await service.operator('GET', `/games/${gameId}/communal`)).body;
const versions = async () =>
  (await sql`SELECT version FROM communal_rules WHERE game_id = ${gameId} ORDER BY version`).map(
    ({ version }) => version,
  );
const withdrawals = async () => [
  ...(await sql`SELECT before FROM audit_log WHERE subject = ${`game:${gameId}`} AND action = 'communal.set.refused'`),
];
const cellOfPartner = async (): Promise<number> =>
  (await sql`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`)[0]!.cell as number;

async function rebuilt(cell: number, lose: () => Promise<unknown>): Promise<void> {
  const rebuilds = async (): Promise<number> =>
    (await sql`SELECT 1 FROM recoveries WHERE cell = ${cell} AND finished_at IS NOT NULL`).length;
  const before = await rebuilds();
  await lose();
  await until(async () => (await rebuilds()) > before, 'the cell is rebuilt');
}

/** Records rules in Postgres while the network holds back their call to Redis. */
async function leaveUnconfirmed(): Promise<void> {
  await until(async () => (await front.request('GET', '/statusz')).status === 200, 'the front end is ready');
  cable.delayMs = () => HELD_MS;
  const answer = await put(front);
  expect([answer.status, answer.body.errorCode]).toEqual([500, 'KS-4606']);
  expect(await versions()).toEqual([1, 2]);
  expect(await shown()).toMatchObject({ version: 1, triggerInterval: RULES.triggerInterval });
}

async function expectWithdrawn(): Promise<void> {
  expect(await shown()).toMatchObject({ version: 1, triggerInterval: RULES.triggerInterval });
  expect(await versions()).toEqual([1]);
  expect(await withdrawals()).toEqual([{ before: { version: 2 } }]);
  cable.delayMs = () => 0;
  cable.cut();
  await until(async () => (await put(service)).status === 200, 'the same rules are taken');
  expect((await shown()).triggerInterval).toBe(NEW_RULES.triggerInterval);
}

test('a rebuild withdraws communal rules that were never confirmed and records that in the audit log', async () => {
  await leaveUnconfirmed();
  await rebuilt(await cellOfPartner(), () => redis.flushdb());
  await until(
    async () => (await service.operator('GET', `/games/${gameId}/communal`)).status === 200,
    'it is shown',
  );
  await expectWithdrawn();
});

test('a move of the partner withdraws communal rules that were never confirmed and records that in the audit log', async () => {
  await leaveUnconfirmed();
  await movePartner(service, partner.partnerId, 1 - (await cellOfPartner()));
  await expectWithdrawn();
});

test('communal rules that a response reported as in force hold after a rebuild, although Redis lost their note', async () => {
  const cell = await cellOfPartner();
  await service.stop();
  const alone = await startService(stores, { CELLS: '2', ROLES: 'http' });
  await until(async () => (await put(alone)).status === 200, 'the rules are in force');
  expect(
    (await sql`SELECT in_force_from FROM communal_rules WHERE game_id = ${gameId} AND version = 2`)[0],
  ).toEqual({
    in_force_from: null,
  });
  await alone.stop();
  await rebuilt(cell, async () => {
    await redis.flushdb();
    service = await startService(stores, { CELLS: '2' });
  });
  await until(async () => (await shown()).version === 2, 'the rules hold');
  expect(await withdrawals()).toEqual([]);
});

test('communal rules that a rebuild withdrew before their response come into force again under a new number', async () => {
  const cell = await cellOfPartner();
  const through = { ...stores, redisUrl: cable.url };
  const patient = await startService(through, { CELLS: '2', ROLES: 'http' });
  onTestFinished(() => patient.stop());
  await service.stop();
  cable.hold();
  const answer = put(patient);
  const inRedis = async () => (await redis.hgetBuffer(`{c${cell}}:communal`, String(gameId)))!;
  const before = await inRedis();
  await until(async () => !(await inRedis()).equals(before), 'Redis has the rules');
  await rebuilt(cell, async () => {
    await redis.flushdb();
    service = await startService(stores, { CELLS: '2' });
  });
  expect(await versions()).toEqual([1]);
  cable.release();
  const { status, body, text } = await answer;
  expect(status, text).toBe(200);
  await until(async () => (await shown()).version === 3, 'the rules are in force');
  expect(body).toMatchObject({ version: 3, triggerInterval: NEW_RULES.triggerInterval });
  expect(await shown()).toMatchObject({ triggerInterval: NEW_RULES.triggerInterval });
  expect(await versions()).toEqual([1, 3]);
  expect(await withdrawals()).toEqual([{ before: { version: 2 } }]);
  expect(await auditFindings(stores)).toEqual([]);
});

test('communal rules that a later version overtakes come into force after it, with their reset of the counter', async () => {
  const cell = await cellOfPartner();
  for (let i = 0; i < 3; i++)
    expect((await service.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25 })).status).toBe(200);
  await until(async () => (await shown()).progress === 3, 'the spins are counted');
  const ownSql = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  const open = await openNodes(stores.redisUrl);
  onTestFinished(async () => {
    open.close();
    await ownSql.end();
  });
  const scripts = new Scripts(open.nodes, { outboxMax: { entries: 1000, bytes: 1_000_000 } });
  let answer: ReturnType<typeof put> | undefined;
  await sql.begin(async (tx) => {
    // The service can't take a number while the sequence is being changed, so its call to Redis waits.
    await tx`ALTER SEQUENCE communal_fundings_funding_id_seq NO CYCLE`;
    answer = service.operator('PUT', `/games/${gameId}/communal`, { ...NEW_RULES, resetProgress: true });
    const newest = async () =>
      (await tx`SELECT max(version) AS version FROM communal_rules WHERE game_id = ${gameId}`)[0]!.version;
    await until(async () => (await newest()) === 2, 'the rules are recorded');
    const checked = { ...RULES, communitySize: 7 };
    const rules = readRules(checked as CommunalBody);
    const later = await new Communal(ownSql).recordRules('operator', gameId, rules, {
      resetsProgress: false,
    });
    const call = { ...later, gameId, partnerId: partner.partnerId, rules, resetsProgress: false };
    const reach = (await requestSegments(open.nodes, cell))!.releasedId;
    const reply = await commandOnce(scripts, COMMUNAL_SET, { ...call, intentId: 1_000_000 }, reach);
    expect(reply.status).toBe(SPIN_STATUS.dealt);
  });
  const { status, body, text } = await answer!;
  expect(status, text).toBe(200);
  expect(body).toMatchObject({ version: 4, triggerInterval: NEW_RULES.triggerInterval });
  await until(async () => (await shown()).version === 4, 'the rules are committed');
  expect(await shown()).toMatchObject({ triggerInterval: NEW_RULES.triggerInterval, progress: 0 });
  expect(await auditFindings(stores)).toEqual([]);
});

test('commits a funding of a communal pot that is not on record from its note, with an audit log entry and without a halt', async () => {
  const cell = await cellOfPartner();
  const open = await openNodes(stores.redisUrl);
  onTestFinished(() => open.close());
  const scripts = new Scripts(open.nodes, { outboxMax: { entries: 1000, bytes: 1_000_000 } });
  const [row] =
    await sql`SELECT dataset_id || ':' || epoch AS epoch FROM cells, installation WHERE cell = ${cell}`;
  const call = {
    cell,
    newestMove: 1_000_000,
    epoch: String(row!.epoch),
    partnerId: partner.partnerId,
    gameId,
    fundingId: 1_000_000,
    requestId: 'forgotten',
    amountMicros: 5_000_000,
  };
  const reach = (await requestSegments(open.nodes, cell))!.releasedId;
  expect((await commandOnce(scripts, COMMUNAL_FUND, call, reach)).status).toBe(SPIN_STATUS.dealt);
  await until(async () => (await shown()).budgetUsd === '100005.00', 'the funding is booked');
  expect((await sql`SELECT halted FROM cells WHERE cell = ${cell}`)[0]).toEqual({ halted: null });
  const late = await sql`SELECT after FROM audit_log WHERE action = 'communal.fund.late'`;
  expect([...late]).toEqual([
    {
      after: {
        requestId: 'late:1000000',
        amountMicros: 5_000_000,
        reason: 'Took effect after it had been refused',
      },
    },
  ]);
  expect(await auditFindings(stores)).toEqual([]);
});
