/**
 * Tests blocked players: their spins are refused, also after a rebuild of Redis, while their earlier requests
 * are still answered.
 */
import { beforeAll, expect, test } from 'vitest';
import { audit } from '../../../src/books/audit/audit.js';
import { SET_PLAYER_STATUS } from '../../../src/engine/cells/setPlayerStatus.js';
import { cellKey, outboxKey, playersKey, waitingSharesKey } from '../../../src/engine/redis/keys.js';
import { Scripts } from '../../../src/engine/redis/scripts.js';
import { world } from '../../setup/world.js';
import { RULES, setUp } from '../../support/communal.js';
import { OUTBOX_MAX } from '../../support/dealing.js';
import { deal, newTable, playOut } from '../../support/rounds.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const { service, ownSql, redis, nodes, partner, sql } = world({ CELLS: '1' });
let gameId: number;

beforeAll(async () => {
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
});
const spin = (playerId: string, requestId?: string) =>
  service.spin(partner.key, { gameId, playerId, wagerUsd: 0.25, requestId });
const setStatus = (playerId: string, body: object, partnerId = partner.partnerId) =>
  service.operator('PATCH', `/partners/${partnerId}/players/${playerId}`, body);
const block = (playerId: string) => setStatus(playerId, { status: 'BLOCKED', reason: 'a complaint' });
const statusOf = async (playerId: string): Promise<unknown> =>
  (await service.partner('GET', `/players/${playerId}`, partner.key)).body.status;
const refused = { status: 403, body: { status: 'error', errorCode: 'KS-4115' } };
const fieldOf = (playerId: string): string => `${partner.partnerId}:${playerId}`;

async function audited(): Promise<string[]> {
  await until(async () => (await redis.xlen(outboxKey(0))) === 0, 'all is booked');
  const report = await audit(ownSql, nodes.nodes, { limit: 9, onProgress: () => {} });
  expect(report.interrupted).toBeUndefined();
  return report.checks.flatMap(({ name, listed }) => listed.map(({ problem }) => `${name}: ${problem}`));
}

test("a blocked player can't spin, gets responses to earlier request ids, and can spin again once unblocked", async () => {
  const first = await spin('alice', 'before');
  expect([first.status, await statusOf('alice')]).toEqual([200, 'ACTIVE']);
  expect(await block('alice')).toMatchObject({ status: 200, body: { playerId: 'alice', status: 'BLOCKED' } });
  for (const requestId of ['after', undefined]) expect(await spin('alice', requestId)).toMatchObject(refused);
  const replay = await spin('alice', 'before');
  expect([replay.status, replay.text, replay.headers.get('idempotent-replayed')]).toEqual([
    200,
    first.text,
    'true',
  ]);
  expect(await statusOf('alice')).toBe('BLOCKED');
  expect((await spin('bob')).status).toBe(200);
  const unblocked = await setStatus('alice', { status: 'ACTIVE', reason: 'it was a mistake' });
  expect(unblocked).toMatchObject({ status: 200, body: { status: 'ACTIVE' } });
  // The refused requestId was not bound.
  expect((await spin('alice', 'after')).status).toBe(200);
  expect(await audited()).toEqual([]);
});

test('refuses spins and deals of a blocked player with more pending shares than a player record can hold', async () => {
  const table = await newTable(service, partner.partnerId);
  const game = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const tiers = [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '0.01' }];
  await setUp(service, game, { ...RULES, tiers });
  const spun = (playerId: string) => service.spin(partner.key, { gameId: game, playerId, wagerUsd: 0.25 });
  expect((await spun('owed')).status).toBe(200);
  for (let i = 0; i < 60; i++)
    await Promise.all(Array.from({ length: 12 }, (_, player) => spun(`busy${player % 2}`)));
  const listed = () => redis.llen(waitingSharesKey(0, fieldOf('owed')));
  expect(await listed()).toBeGreaterThan(0);
  const dealt = await deal(service, partner.key, table, 'owed', 'before the block');
  expect(dealt.status, dealt.text).toBe(201);
  for (const playerId of ['owed', 'busy0']) await block(playerId);
  for (const playerId of ['owed', 'busy0']) {
    expect(await spin(playerId)).toMatchObject(refused);
    expect(await deal(service, partner.key, table, playerId, `after ${playerId}`)).toMatchObject(refused);
  }
  // Repetitions of earlier requests are still answered, and an open round may be finished.
  expect((await deal(service, partner.key, table, 'owed', 'before the block')).text).toBe(dealt.text);
  const ended = await playOut(service, partner.key, dealt.body);
  expect(ended.status).toBe('SETTLED');
  expect(await statusOf('owed')).toBe('BLOCKED');
  // When a player is blocked or unblocked, Redis keeps the list of shares that the player has not been
  // notified of.
  const before = await listed();
  await setStatus('owed', { status: 'ACTIVE', reason: 'it was a mistake' });
  expect([await statusOf('owed'), await listed()]).toEqual(['ACTIVE', before]);
  expect((await deal(service, partner.key, table, 'owed', 'again')).status).toBe(201);
  expect(await audited()).toEqual([]);
});

test("the audit log has each change of a player's status once, however often the change is requested", async () => {
  await spin('logged');
  await block('logged');
  await block('logged');
  const subject = `player:${fieldOf('logged')}`;
  const log = await sql`SELECT actor, action, after FROM audit_log WHERE subject = ${subject}`;
  expect([...log]).toEqual([
    { actor: 'operator', action: 'player.status', after: { status: 'BLOCKED', reason: 'a complaint' } },
  ]);
});

test('a player stays blocked through adjustments and through a rebuild of Redis', async () => {
  await spin('stays');
  await spin('plays');
  await block('stays');
  const adjusting = { amountUsd: 1, reason: 'goodwill', requestId: 'adjusted' };
  const path = `/partners/${partner.partnerId}/players/stays/adjustments`;
  expect((await service.operator('POST', path, adjusting)).status).toBe(200);
  expect(await spin('stays')).toMatchObject(refused);
  expect(await audited()).toEqual([]);
  await redis.flushdb();
  await until(async () => (await spin('plays')).status === 200, 'Redis is rebuilt');
  expect([await statusOf('stays'), await statusOf('plays')]).toEqual(['BLOCKED', 'ACTIVE']);
  expect(await spin('stays')).toMatchObject(refused);
  expect(await audited()).toEqual([]);
});

test('a late call of a status change does not undo a newer change', async () => {
  await spin('late');
  await block('late');
  await setStatus('late', { status: 'ACTIVE', reason: 'over' });
  const scripts = new Scripts(nodes.nodes, { outboxMax: OUTBOX_MAX });
  const epoch = (await redis.hget(cellKey(0), 'epoch'))!.split(':').slice(0, 2).join(':');
  const { encode } = SET_PLAYER_STATUS.codec();
  const late = { partnerId: partner.partnerId, playerId: 'late', status: 'BLOCKED' as const, change: 1 };
  await scripts.command(SET_PLAYER_STATUS.name, {
    cell: 0,
    epoch,
    operationField: '',
    operationId: Buffer.alloc(0),
    args: encode([{ ...late, cell: 0, newestMove: undefined, waitsForLedger: false }]),
  });
  expect(await statusOf('late')).toBe('ACTIVE');
});

test('the audit finds players who are blocked only in Redis or only in the ledger', async () => {
  for (const playerId of ['freed', 'held']) await spin(playerId);
  await block('freed');
  const key = playersKey(0);
  const blocked = (await redis.hgetBuffer(key, fieldOf('freed')))!;
  const active = (await redis.hgetBuffer(key, fieldOf('held')))!;
  await redis.hset(key, fieldOf('freed'), blocked.subarray(0, 28));
  await redis.hset(key, fieldOf('held'), Buffer.concat([active, blocked.subarray(28)]));
  const problem = 'statuses: the status of the player in Redis differs from Postgres';
  expect(await audited()).toEqual([problem, problem]);
});
