/**
 * Tests forced outcomes, which testers choose on sandbox accounts. A forced outcome is dealt once, is marked,
 * and changes the balance but no totals.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { audit } from '../../../src/books/audit/audit.js';
import { FORCED_MAX } from '../../../src/engine/cells/forceOutcome.js';
import { forcedKey, idempotencyKey, outboxKey, playerAtGame } from '../../../src/engine/redis/keys.js';
import { world } from '../../setup/world.js';
import type { Answer, TestPartner } from '../../support/client.js';
import { type LoggedService, startLogged } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

/** Last combination of the PAR sheet classic-3-reel. It pays 38.5 times the wager of 0.25 USD. */
const JACKPOT = 13;
const JACKPOT_USD = 9.625;
const CHERRIES = 10;
const CHERRIES_USD = 1;
const WAGER_USD = 0.25;

const { stores, ownSql: sql, redis, nodes } = world();
let service: LoggedService;
let partner: TestPartner;
let production: TestPartner;
let gameId: number;
let productionGame: number;
let raffleId: number;

beforeAll(async () => {
  service = await startLogged(stores, { CELLS: '1' });
  partner = await service.newPartner({ largeWinThresholdUsd: 1 });
  production = await service.newPartner({ environment: 'production' });
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  productionGame = await service.newGame(production.key, parSheet('classic-3-reel'));
  const prizes = [{ prizeName: 'Cup', prizeTier: 1, valueUsd: 1, count: 1 }];
  raffleId = await service.api.newRaffle(partner.partnerId, 'cup', {
    ticketPriceUsd: 1,
    poolSize: 2,
    prizes,
  });
});
afterAll(async () => {
  await service.running.stop();
});

const choose = (body: unknown, key = partner.key) =>
  service.partner('POST', '/sandbox/next-outcome', key, body);
const chosen = async (playerId: string, combinationIndex = JACKPOT): Promise<Answer> => {
  const answer = await choose({ gameId, playerId, combinationIndex });
  expect(answer.status, answer.text).toBe(200);
  return answer;
};
const spin = (playerId: string, requestId?: string) =>
  service.spin<Spin>(partner.key, { gameId, playerId, wagerUsd: WAGER_USD, requestId });
const forced = { sandbox: { forced: true } };
const queue = async () => (await service.operator<Operated>('GET', `/games/${gameId}`)).body;

interface Spin {
  spinId: string;
  outcome: { prizeTier: number; payoutUsd: number };
  presentation: { comboString: string };
  balance: { balanceUsd: number };
  sandbox?: { forced: boolean };
}
interface Operated {
  queue: { consumed: number };
  totals: { spins: number; wageredUsd: number; paidOutUsd: number };
}

async function audited(): Promise<string[]> {
  await until(async () => (await redis.xlen(outboxKey(0))) === 0, 'all is booked');
  const report = await audit(sql, nodes.nodes, { limit: 9, onProgress: () => {} });
  expect(report.interrupted).toBeUndefined();
  return report.checks.flatMap(({ name, listed }) => listed.map(({ problem }) => `${name}: ${problem}`));
}

/** Makes today's settlement report (UTC) of the partner and returns its totals. */
async function settledToday() {
  const date = new Date().toISOString().slice(0, 10);
  const answer = await service.operator('POST', `/partners/${partner.partnerId}/settlements/${date}`);
  expect(answer.status, answer.text).toBeLessThan(300);
  const { totalSpins, totalWageredUsd, totalPaidOutUsd } = answer.body;
  return { totalSpins, totalWageredUsd, totalPaidOutUsd };
}

test('deals a forced outcome once on the next spin, and marks it in every answer about that spin', async () => {
  expect((await chosen('alice', CHERRIES)).body).toMatchObject({
    gameId,
    playerId: 'alice',
    combinationIndex: CHERRIES,
    outcome: { prizeTier: 3, payoutUsd: CHERRIES_USD, isBonusTrigger: false },
    expiresAt: expect.stringMatching(/Z$/),
  });
  // A newer choice for the same player and game replaces the older choice. It does not affect other players
  // or other games.
  await chosen('alice', JACKPOT);
  expect((await spin('bob')).body.sandbox).toBeUndefined();
  const first = await spin('alice', 'once');
  expect(first).toMatchObject({
    status: 200,
    body: {
      ...forced,
      presentation: { comboString: '7|7|7' },
      outcome: { prizeTier: 6, payoutUsd: JACKPOT_USD },
      balance: { balanceUsd: 1000 - WAGER_USD + JACKPOT_USD },
    },
  });
  const replay = await spin('alice', 'once');
  expect([replay.text, replay.headers.get('idempotent-replayed')]).toEqual([first.text, 'true']);
  const drawn = await spin('alice');
  expect(drawn.body.sandbox).toBeUndefined();

  const of = (path: string) => service.partner<{ spins: Spin[] }>('GET', path, partner.key);
  const { spinId } = first.body;
  expect((await of(`/spins/${spinId}`)).body).toMatchObject({ ...first.body, playerId: 'alice' });
  const [newest, before] = (await of('/players/alice/spins')).body.spins;
  expect([newest!.sandbox, before]).toMatchObject([undefined, first.body]);
  const feed = (await of('/spins?playerId=alice')).body.spins;
  expect(feed.map(({ sandbox }) => sandbox)).toEqual([{ forced: true }, undefined]);
  const headers = { Accept: 'text/csv' };
  const csv = await service.request('GET', '/api/partner/v1/spins?playerId=alice', {
    key: partner.key,
    headers,
  });
  const lines = csv.text.trim().split('\r\n');
  expect(lines.map((line) => line.split(',').slice(-2))).toEqual([
    ['sandbox', 'outcomeIndex'],
    ['forced', ''],
    ['', expect.stringMatching(/^\d+$/)],
  ]);
  type Told = { data: { spinId: string } };
  let told: Told[] = [];
  // The event feed lists an event only after all earlier transactions have ended. A randomly drawn spin may
  // have been a large win too.
  await until(async () => {
    const { body } = await service.partner<{ events: Told[] }>('GET', '/events', partner.key);
    told = body.events.filter(({ data }) => data.spinId === spinId);
    return told.length > 0;
  }, 'the feed has the large win');
  expect(told).toEqual([
    expect.objectContaining({
      event: 'spin.large_win',
      data: expect.objectContaining({ spinId, payoutUsd: JACKPOT_USD, requestId: 'once', ...forced }),
    }),
  ]);
  expect(await audited()).toEqual([]);
});

test('a forced spin consumes no queued outcome and counts in no total, RTP, settlement or spin metric', async () => {
  await until(async () => (await redis.xlen(outboxKey(0))) === 0, 'all is booked');
  const before = { game: await queue(), settled: await settledToday() };
  const metrics = async () => ({
    dealt: await service.metric('spindle_spins_total'),
    paid: await service.metric('spindle_paid_usd_total'),
    booked: await service.metric(`spindle_game_spins_total{game="${gameId}"}`),
  });
  const counted = await metrics();
  const forcedBefore = await service.metric('spindle_sandbox_forced_spins_total');
  for (const playerId of ['alice', 'carol', 'dora']) {
    await chosen(playerId);
    expect((await spin(playerId)).body).toMatchObject(forced);
  }
  await until(async () => (await redis.xlen(outboxKey(0))) === 0, 'all is booked');
  expect({ game: await queue(), settled: await settledToday() }).toEqual(before);
  expect(await metrics()).toEqual(counted);
  expect(await service.metric('spindle_sandbox_forced_spins_total')).toBe(forcedBefore + 3);
  expect(await audited()).toEqual([]);
});

test('the spins of one batch use a forced outcome once, and a refused spin does not use it', async () => {
  await chosen('batched', CHERRIES);
  const wrong = { gameId, playerId: 'batched', wagerUsd: 1 };
  expect((await service.spin(partner.key, wrong)).body.errorCode).toBe('KS-4103');
  const spins = await Promise.all(Array.from({ length: 20 }, (_, i) => spin('batched', `b-${i % 10}`)));
  const marked = spins.filter(({ body }) => body.sandbox?.forced === true);
  // Two responses have the mark of a forced outcome: the response to the dealt spin, and its replay.
  expect(new Set(marked.map(({ text }) => text)).size).toBe(1);
  expect(marked).toHaveLength(2);
  expect(marked[0]!.body.outcome.payoutUsd).toBe(CHERRIES_USD);
});

test('refuses an invalid forced outcome in the documented order of checks, and stores nothing', async () => {
  const right = { gameId, playerId: 'refused', combinationIndex: JACKPOT };
  const codeOf = async (body: unknown, key: string) => {
    const answer = await choose(body, key);
    const { errorCode, details } = answer.body as { errorCode: string; details?: { path: string }[] };
    return [answer.status, errorCode, details?.map(({ path }) => path).join(' ') ?? ''];
  };
  expect(await codeOf('{', 'no such key')).toEqual([401, 'KS-4002', '']);
  const limited = await service.newPartner({ environment: 'production', apiRateLimit: 1 });
  await until(
    async () => (await choose('{', limited.key)).body.errorCode === 'KS-4292',
    'the window is full',
  );
  // A production account has no such path, so every request gets the same answer as an unknown path.
  const unknown = await service.partner('POST', '/sandbox/nothing', production.key, right);
  const ofProduction = { gameId: productionGame, playerId: 'refused', combinationIndex: JACKPOT };
  for (const body of [ofProduction, right, '{', {}]) {
    const { status, body: refusal } = await choose(body, production.key);
    expect([status, { ...refusal, requestId: '' }]).toEqual([404, { ...unknown.body, requestId: '' }]);
  }
  const wrong: [body: unknown, ...expected: unknown[]][] = [
    [{ ...right, gameId: productionGame }, 403, 'KS-4006', ''],
    [{ ...right, gameId: raffleId, combinationIndex: 99 }, 400, 'KS-4101', '/gameId'],
    [{ ...right, combinationIndex: JACKPOT + 1 }, 400, 'KS-4101', '/combinationIndex'],
    [{ ...right, combinationIndex: 70_000 }, 400, 'KS-4101', '/combinationIndex'],
  ];
  for (const [body, ...expected] of wrong)
    expect(await codeOf(body, partner.key), JSON.stringify(body)).toEqual(expected);
  for (const combinationIndex of [JACKPOT + 1, 100_000]) {
    const { body } = await choose({ ...right, combinationIndex }, partner.key);
    const message = `must be at most ${JACKPOT}, the index of the last combination of the PAR sheet`;
    expect(body).toMatchObject({ details: [{ path: '/combinationIndex', message }] });
  }
  expect((await spin('refused')).body.sandbox).toBeUndefined();
});

test('bounds the number of forced outcomes that wait in an account; an expired one no longer counts and is not dealt', async () => {
  const key = forcedKey(0, partner.partnerId);
  await redis.del(key);
  await chosen('expired');
  const field = (playerId: string): string => playerAtGame(gameId, partner.partnerId, playerId);
  const standing = (await redis.hgetBuffer(key, field('expired')))!;
  expect(await redis.pttl(key)).toBeGreaterThan(0);
  const old = Buffer.from(standing);
  old.writeUIntLE(Date.now() - 1000, 2, 6);
  await redis.hset(key, field('expired'), old);
  expect((await spin('expired')).body.sandbox).toBeUndefined();
  expect(await redis.hexists(key, field('expired'))).toBe(0);

  for (let i = 0; i < FORCED_MAX; i++) await redis.hset(key, field(`waits-${i}`), standing);
  const more = { gameId, playerId: 'more', combinationIndex: 0 };
  expect(await choose(more)).toMatchObject({ status: 409, body: { errorCode: 'KS-4114' } });
  expect((await choose({ ...more, playerId: 'waits-7' })).status).toBe(200);
  await redis.hset(key, field('waits-3'), old);
  expect((await choose(more)).status).toBe(200);
  expect(await redis.hlen(key)).toBe(FORCED_MAX);
  await redis.del(key);
});

test('deals a production player from the queue even if Redis holds a forced outcome for that player', async () => {
  await redis.set('{c0}:forced', '1');
  const key = forcedKey(0, production.partnerId);
  const choice = Buffer.alloc(8);
  choice.writeUInt16LE(JACKPOT, 0);
  choice.writeUIntLE(Date.now() + 3_600_000, 2, 6);
  await redis.hset(key, playerAtGame(productionGame, production.partnerId, 'real'), choice);
  const body = { gameId: productionGame, playerId: 'real', wagerUsd: WAGER_USD };
  const answer = await service.spin<Spin>(production.key, body);
  expect([answer.status, answer.body.sandbox]).toEqual([200, undefined]);
  expect(await redis.hlen(key)).toBe(1);
});

test('a wiped Redis loses a forced outcome that was not dealt yet, but no forced spin', async () => {
  await chosen('rebuilt');
  const first = await spin('rebuilt', 'kept');
  expect(first.body).toMatchObject(forced);
  await chosen('waiting');
  expect(await audited()).toEqual([]);
  await redis.flushdb();
  await until(async () => (await spin('any')).status === 200, 'Redis is rebuilt');
  const replay = await spin('rebuilt', 'kept');
  expect([replay.text, replay.headers.get('idempotent-replayed')]).toEqual([first.text, 'true']);
  expect((await spin('waiting')).body.sandbox).toBeUndefined();
  expect(await audited()).toEqual([]);
});

test('the audit reports a forced outcome that is recorded as drawn, and one on a production account', async () => {
  await chosen('found');
  expect((await spin('found', 'marked')).body).toMatchObject(forced);
  expect(await audited()).toEqual([]);
  const idem = (await redis.keys(idempotencyKey(0, 0).replace(/0$/, '*')))[0]!;
  const [entry] = await sql<
    { entryId: bigint }[]
  >`SELECT max(entry_id) AS entry_id FROM ledger WHERE kind = 9`;
  const id = Buffer.alloc(8);
  id.writeBigUInt64LE(entry!.entryId);
  const all = (await redis.callBuffer('HGETALL', idem)) as Buffer[];
  const at = all.findIndex((value, place) => place % 2 === 1 && value.subarray(0, 8).equals(id));
  await redis.hset(idem, all[at - 1]!, all[at]!.subarray(0, -1));
  expect(await audited()).toEqual(['requests: the stored reply of a forced spin is not marked as forced']);
  await redis.hset(idem, all[at - 1]!, all[at]!);
  await sql`UPDATE partners SET environment = 'production' WHERE partner_id = ${partner.partnerId}`;
  expect(new Set(await audited())).toEqual(new Set(['outcomes: a production partner has a forced outcome']));
  await sql`UPDATE partners SET environment = 'sandbox' WHERE partner_id = ${partner.partnerId}`;
  await sql`UPDATE sandbox_days SET paid_micros = paid_micros + 1`;
  expect(await audited()).toEqual([
    'double-entry: sandbox_days.paid_micros is not their sum in the ledger',
    'double-entry: the sum of all balances is not openings − wagers + payouts + adjustments + shares',
  ]);
});
