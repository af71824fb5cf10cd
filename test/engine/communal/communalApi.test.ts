/**
 * Tests the endpoints of communal progressives: their responses, all their error codes, and the order of the
 * checks.
 */
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { world } from '../../setup/world.js';
import type { Answer, TestPartner } from '../../support/client.js';
import { RULES, setUp, spin } from '../../support/communal.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const { stores, service, sql } = world();
let partner: TestPartner;
let gameId: number;
let raffleId: number;

beforeAll(async () => {
  partner = await service.newPartner({ openingBalanceUsd: 1000 });
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const raffle = await service.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partner.partnerId}/raffles`,
    {
      displayName: 'R',
      configName: 'R',
      ticketPriceUsd: 1,
      poolSize: 10,
      prizes: [],
    },
  );
  raffleId = raffle.body.gameConfigId ?? 0;
});

const code = (answer: Answer): string => `${answer.status} ${String(answer.body?.errorCode ?? 'OK')}`;
const put = (body: unknown, id: number | string = gameId) =>
  service.operator('PUT', `/games/${id}/communal`, body);
const fund = (body: unknown, id: number | string = gameId) =>
  service.operator('POST', `/games/${id}/communal/funding`, body);
const partnerGet = (path: string, key = partner.key) => service.partner('GET', path, key);

test('refuses communal rules with the error of their first fault and changes nothing', async () => {
  const tier = RULES.tiers[0]!;
  const wrong: [string, unknown][] = [
    ['400 KS-4101', { ...RULES, triggerSplitPct: 40.001 }],
    ['400 KS-4101', { ...RULES, tiers: [{ ...tier, tierLevel: 2 }] }],
    ['400 KS-4101', { ...RULES, tiers: [tier, { ...tier, tierLevel: 2 }] }],
    ...['-1', '1000000.000001'].map((amountUsd): [string, unknown] => [
      '400 KS-4101',
      { ...RULES, tiers: [{ ...tier, amountUsd }] },
    ]),
    ['400 KS-4604', { ...RULES, triggerSplitPct: 41, tiers: [{ ...tier, triggerAtSpins: 55 }] }],
    ['400 KS-4605', { ...RULES, tiers: [{ ...tier, triggerAtSpins: 55 }] }],
  ];
  for (const [expected, body] of wrong) expect([body, code(await put(body))]).toEqual([body, expected]);
  expect(
    code(
      await service.request('PUT', `/api/operator/v1/games/${gameId}/communal`, {
        key: 'operator-key-for-tests',
        body: {},
        headers: { interface_version: '2.0.0' },
      }),
    ),
  ).toBe('426 KS-4112');
  if (raffleId > 0) expect(code(await put({}, raffleId))).toBe('400 KS-4216');
  expect(code(await service.operator('GET', `/games/${gameId}/communal`))).toBe('404 KS-4601');
});

test('returns KS-4601 for a game without communal rules', async () => {
  expect(code(await service.operator('GET', `/games/${gameId}/communal/events`))).toBe('404 KS-4601');
  expect(code(await fund({ amountUsd: '1', reason: 'r', requestId: 'a' }))).toBe('404 KS-4601');
  for (const path of ['', '/progress', '/events']) {
    expect(code(await partnerGet(`/games/${gameId}/communal${path}`))).toBe('404 KS-4601');
  }
});

test('returns communal rules, status and return to partners, but the exact counter only to operators', async () => {
  const disabled = await put({ ...RULES, enabled: false });
  expect(disabled.body).toMatchObject({
    version: 1,
    status: 'DISABLED',
    windowMinutes: 60,
    communitySize: 100,
  });
  expect(disabled.body).toMatchObject({
    emptyCommunity: 'TO_TRIGGER',
    onShortBudget: 'SKIP',
    tiers: RULES.tiers,
  });
  expect((await spin(service, partner, gameId, 'p')).body.communityBonus).toBeNull();
  expect(code(await partnerGet(`/games/${gameId}/communal/progress`))).toBe('409 KS-4602');
  const enabled = await put(RULES);
  expect(enabled.body).toMatchObject({ version: 2, status: 'EXHAUSTED' });
  // 1,000 spins, with wagers of 250 USD in total, fire the first tier 16 times, the second 3 times and the
  // third once.
  expect(enabled.body.bonusRtp).toBeCloseTo((16 * 5 + 3 * 20.000001 + 100) / 250, 9);
  expect(code(await partnerGet(`/games/${gameId}/communal/progress`))).toBe('409 KS-4603');
  for (let i = 0; i < 9; i++) await spin(service, partner, gameId, 'p');
  const shown = await service.operator('GET', `/games/${gameId}/communal`);
  expect(shown.body).toMatchObject({ progress: 9, budgetUsd: '0.00', paidUsd: '0.00', version: 2 });
  expect(code(await fund({ amountUsd: '1000', reason: 'r', requestId: 'b' }))).toBe('200 OK');
  expect((await partnerGet(`/games/${gameId}/communal`)).body).toMatchObject({
    status: 'ACTIVE',
    version: 2,
  });
  expect(Object.keys((await partnerGet(`/games/${gameId}/communal`)).body)).not.toContain('progress');
  expect((await partnerGet(`/games/${gameId}/communal/progress`)).body).toEqual({
    tiers: RULES.tiers.map(({ tierLevel, tierName, amountUsd }) => ({
      tierLevel,
      tierName,
      amountUsd,
      progressPct: tierLevel === 3 ? 0 : null,
    })),
  });
  expect((await put({ ...RULES, resetProgress: true })).body).toMatchObject({ version: 3 });
  expect((await service.operator('GET', `/games/${gameId}/communal`)).body).toMatchObject({ progress: 0 });
  const log = await service.operator<{ entries: { action: string }[] }>('GET', '/audit-log?limit=5');
  expect(log.body.entries.map(({ action }) => action)).toContain('communal.set');
});

test('funds a communal pot once for each requestId, and refuses a funding that would make the pot negative', async () => {
  const id = await service.newGame(partner.key, parSheet('classic-3-reel'));
  await setUp(service, id, RULES, '10.00');
  const body = { amountUsd: '2.500001', reason: 'more', requestId: 'once' };
  const answers = await Promise.all([fund(body, id), fund(body, id), fund(body, id)]);
  expect(answers.map(({ body: { budgetUsd } }) => budgetUsd)).toEqual(answers.map(() => '12.500001'));
  expect(new Set(answers.map(({ body: { fundingId } }) => fundingId)).size).toBe(1);
  expect(code(await fund({ ...body, amountUsd: '3' }, id))).toBe('409 KS-4111');
  expect(code(await fund({ ...body, reason: 'other' }, id))).toBe('409 KS-4111');
  const all = { amountUsd: '-12.500002', reason: 'back', requestId: 'all' };
  expect(code(await fund(all, id))).toBe('409 KS-4603');
  expect((await fund({ ...all, amountUsd: '-12.500001' }, id)).body).toMatchObject({ budgetUsd: '0.00' });
  const booked = () => sql`SELECT 1 FROM communal_fundings WHERE game_id = ${id} AND note_id IS NOT NULL`;
  await until(async () => (await booked()).length === 3, 'the fundings are booked');
  expect((await fund(body, id)).body).toMatchObject({ budgetUsd: '12.500001' });
});

test('returns KS-4606 if Redis does not confirm a change of communal rules, and accepts a retry', async () => {
  const id = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const [{ cell }] =
    (await sql`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`) as never as [
      { cell: number },
    ];
  const { Redis } = await import('ioredis');
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  const key = `{c${cell}}:cell`;
  const front = await startService(stores, { ROLES: 'http', SPIN_DEADLINE_MS: '1500' });
  onTestFinished(() => front.stop());
  const epoch = (await redis.hget(key, 'epoch'))!;
  await redis.hset(key, 'epoch', 'elsewhere');
  expect(code(await front.operator('PUT', `/games/${id}/communal`, RULES))).toBe('500 KS-4606');
  await redis.hset(key, 'epoch', epoch);
  await until(async () => code(await put(RULES, id)) === '200 OK', 'the rules are in force');
  await redis.hset(key, 'epoch', 'elsewhere');
  const body = { amountUsd: '5', reason: 'r', requestId: 'unconfirmed' };
  expect(code(await front.operator('POST', `/games/${id}/communal/funding`, body))).toBe('500 KS-4606');
  await redis.hset(key, 'epoch', epoch);
  redis.disconnect();
  await until(async () => code(await fund(body, id)) === '200 OK', 'the budget is funded');
  expect((await service.operator('GET', `/games/${id}/communal`)).body).toMatchObject({ budgetUsd: '5.00' });
});

test('lists communal events with their shares, and bonuses with the spin that notified their player', async () => {
  const id = await service.newGame(partner.key, parSheet('classic-3-reel'));
  const tiers = [{ tierLevel: 1, tierName: 'Mini', triggerAtSpins: 10, amountUsd: '1.000001' }];
  await setUp(service, id, { ...RULES, triggerSplitPct: 50, communitySplitPct: 50, tiers });
  for (let i = 0; i < 10; i++) await spin(service, partner, id, `l${i % 3}`);
  const teller = await spin(service, partner, id, 'l2', 'teller');
  expect(teller.body.communityBonus).toMatchObject({ isTriggerPlayer: false, yourShareUsd: '0.250001' });
  const events = () =>
    service.operator<{ events: { shares: unknown[]; eventId: string }[]; total: number }>(
      'GET',
      `/games/${id}/communal/events`,
    );
  await until(async () => (await events()).body.total === 1, 'the event is booked');
  const [event] = (await events()).body.events;
  expect(event).toMatchObject({
    tierLevel: 1,
    tierName: 'Mini',
    totalAmountUsd: '1.000001',
    winners: 3,
    status: 'PAID',
    shares: [
      { playerId: 'l0', amountUsd: '0.50' },
      { playerId: 'l2', amountUsd: '0.250001' },
      { playerId: 'l1', amountUsd: '0.25' },
    ],
  });
  const shown = await partnerGet(`/games/${id}/communal/events`);
  expect(JSON.stringify(shown.body)).not.toContain('shares');
  const bonuses = async (player: string) =>
    (await partnerGet(`/players/${player}/community-bonuses`)).body.bonuses as Record<string, unknown>[];
  await until(async () => typeof (await bonuses('l2'))[0]?.toldBySpinId === 'string', 'the share is told');
  expect(await bonuses('l2')).toMatchObject([
    {
      eventId: event!.eventId,
      gameId: id,
      amountUsd: '0.250001',
      isTriggerPlayer: false,
      toldBySpinId: teller.body.spinId,
    },
  ]);
  expect(await bonuses('l1')).toMatchObject([{ toldBySpinId: null, isTriggerPlayer: false }]);
  const again = await partnerGet(`/spins/${teller.body.spinId}`);
  expect(again.body).toMatchObject({
    communityBonus: teller.body.communityBonus,
    balance: teller.body.balance,
  });
});
