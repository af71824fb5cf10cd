/**
 * Tests the operators' reads across partners: cells, games, the overview, statements, spins, deliveries,
 * settlement reports, rounds, progressives, traffic, and the audit log.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY, type TestPartner } from '../../support/client.js';
import { command } from '../../support/command.js';
import { dealUntil, newTable } from '../../support/rounds.js';
import { constants } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

type Body = Record<string, never> & Record<string, unknown>;

const { stores, service, sql, partner } = world(constants({ trafficTurnMs: 100 }));
let other: TestPartner;
let gameId: number;
const SPINS = 25;
const spins: Record<string, unknown>[] = [];

const get = async <T = Body>(path: string): Promise<T> => {
  const answer = await service.operator<T & Record<string, unknown>>('GET', path);
  expect(answer.status, `${path} ${answer.text}`).toBe(200);
  return answer.body;
};

beforeAll(async () => {
  other = await service.newPartner();
  gameId = await service.newGame(partner.key, parSheet('classic-3-reel'));
  for (let i = 0; i < SPINS; i++) {
    const body = { gameId, playerId: 'alice', wagerUsd: 0.25, requestId: `r-${i}` };
    const { status, body: spin } = await service.spin(partner.key, body);
    expect(status).toBe(200);
    spins.push(spin);
  }
  const adjusted = await service.operator(
    'POST',
    `/partners/${partner.partnerId}/players/alice/adjustments`,
    {
      amountUsd: 5,
      reason: 'goodwill',
      requestId: 'a-1',
    },
  );
  expect(adjusted.status).toBe(200);
});

test('shows operators each cell with the worker that owns it, and each Redis node with its memory', async () => {
  const { body } = await service.operator<{ cells: Body[]; redis: Body[]; recoveries: Body[] }>(
    'GET',
    '/cells',
  );
  expect(body.cells).toHaveLength(4);
  const address = new URL(stores.redisUrl).host;
  for (const cell of body.cells) {
    expect(cell).toMatchObject({ owner: expect.any(String), halted: null, isDraining: false });
    expect(cell).toMatchObject({ node: address, slot: null, outboxEntries: expect.any(Number) });
  }
  expect(body.cells.reduce((sum, cell) => sum + Number(cell.games), 0)).toBe(1);
  expect(body.cells.reduce((sum, cell) => sum + Number(cell.partners), 0)).toBe(2);
  expect(body.redis).toMatchObject([{ isReady: true, memoryBytes: expect.any(Number) }]);
  expect(body.recoveries).toBeInstanceOf(Array);
});

test('lists games for all partners and for one partner, with expected returns, totals and daily figures', async () => {
  await until(
    async () => (await get<{ games: { totals: Body }[] }>('/games')).games[0]!.totals.spins === SPINS,
    'the spins are booked',
  );
  const all = await get<{ games: Body[]; total: number }>('/games');
  expect(all).toMatchObject({ total: 1, games: [{ gameConfigId: gameId, partnerId: partner.partnerId }] });
  expect(all.games[0]).toMatchObject({
    expected: { rtp: expect.any(Number), variancePerSpin: expect.any(Number) },
    totals: { spins: SPINS },
  });
  const { expected } = await get<{ expected: { normalFromSpins: number } }>(`/games/${gameId}/rtp`);
  expect(all.games[0]!.expected).toMatchObject({ normalFromSpins: expected.normalFromSpins });
  expect(await get(`/games?partnerId=${other.partnerId}`)).toMatchObject({ games: [], total: 0 });
  expect(await get(`/games/${gameId}/days`)).toMatchObject({
    days: [{ day: new Date().toISOString().slice(0, 10), spins: SPINS, wageredUsd: SPINS * 0.25 }],
  });
});

test('lists a PAR sheet and shows its content as it was uploaded', async () => {
  const { body } = await service.operator<{ parSheets: { parSheetId: number }[] }>(
    'GET',
    `/par-sheets?partnerId=${partner.partnerId}`,
  );
  expect(body.parSheets).toHaveLength(1);
  const detail = await service.operator('GET', `/par-sheets/${body.parSheets[0]!.parSheetId}`);
  expect(detail.body.sheet).toEqual(parSheet('classic-3-reel'));
});

test("shows today's traffic, the busiest partners and the errors of the process in the overview", async () => {
  await service.spin(partner.key, { gameId: 2_000_000_000, playerId: 'alice', wagerUsd: 0.25 });
  await until(
    async () => (await get<{ today: { spins: number } }>('/overview')).today.spins === SPINS,
    'booked',
  );
  const body = await get('/overview');
  const paidOutUsd = spins.reduce((sum, spin) => sum + Number((spin.outcome as Body).payoutUsd ?? 0), 0);
  expect(body.today).toMatchObject({ spins: SPINS, wageredUsd: SPINS * 0.25, partners: 1 });
  expect((body.today as unknown as { paidOutUsd: number }).paidOutUsd).toBeCloseTo(paidOutUsd, 6);
  expect(body.busiest).toMatchObject([{ partnerId: partner.partnerId, spins: SPINS }]);
  expect(body.attention).toEqual({
    failedDeliveries: 0,
    lateDeliveries: 0,
    failingWebhooks: 0,
    disputedReports: 0,
    haltedCells: 0,
    openRecoveries: 0,
    openReviews: 0,
    dryGames: 0,
    exhaustedProgressives: 0,
    suspendedGames: 0,
    stoppedPartners: 0,
    expiringKeys: 0,
    missingWitnesses: [],
    dealing: 'ON',
  });
  expect(body.process).toMatchObject({ spins: SPINS });
  const { errors, spinSeconds } = body.process as unknown as {
    errors: unknown[];
    spinSeconds: { leSeconds: number | null; count: number }[];
  };
  expect(errors).toContainEqual({ operation: 'spin', errorCode: 'KS-4006', count: 1 });
  expect(spinSeconds.at(-1)).toEqual({ leSeconds: null, count: SPINS + 1 });
  const [first] = (body.process as unknown as { partners: Record<string, number>[] }).partners;
  expect(first).toMatchObject({ partnerId: partner.partnerId, errors: 1 });
  expect(first!.requests).toBeGreaterThan(SPINS);
});

test("compares today with yesterday up to the same time of day, or with the whole of yesterday if its hours aren't stored", async () => {
  type Totals = { spins: number; wageredUsd: number; paidOutUsd: number; until: string };
  const yesterday = async (): Promise<Totals> => (await get<{ yesterday: Totals }>('/overview')).yesterday;
  expect(await yesterday()).toEqual({ spins: 0, wageredUsd: 0, paidOutUsd: 0, until: 'SAME_TIME' });

  const start = sql`date_trunc('day', now(), 'UTC') - interval '24 hours'`;
  const { partnerId } = partner;
  // The sums of unknown hours keep the worker from counting the day as growth of the present hour.
  await sql.begin(async (tx) => {
    await tx`
      INSERT INTO game_days (game_id, partner_id, day, spins, wagered_micros, paid_micros)
      VALUES (${gameId}, ${partnerId}, (now() AT TIME ZONE 'UTC')::date - 1, 24000, 6000000000, 4800000000)`;
    await tx`INSERT INTO traffic_hours VALUES (${start}, ${partnerId}, 24000, 6000000000, 4800000000, false)`;
  });
  expect(await yesterday()).toEqual({
    spins: 24_000,
    wageredUsd: 6000,
    paidOutUsd: 4800,
    until: 'END_OF_DAY',
  });

  await sql.begin(async (tx) => {
    await tx`DELETE FROM traffic_hours WHERE NOT is_known`;
    await tx`
      INSERT INTO traffic_hours SELECT ${start} + i * interval '1 hour', ${partnerId}, 1000, 250000000, 200000000
      FROM generate_series(0, 23) i`;
  });
  const spinsNow = (): number => (1000 * (Date.now() % 86_400_000)) / 3_600_000;
  const earliest = spinsNow();
  const totals = await yesterday();
  expect(totals.until).toBe('SAME_TIME');
  expect(totals.spins).toBeGreaterThanOrEqual(Math.floor(earliest) - 1);
  expect(totals.spins).toBeLessThanOrEqual(spinsNow() + 1);
  expect(totals.wageredUsd).toBeCloseTo(totals.spins * 0.25, -1);
  expect(totals.paidOutUsd).toBeCloseTo(totals.spins * 0.2, -1);
});

test("pages through every entry of a player's statement, with each balance derived from the one before", async () => {
  type Entry = Record<'kind' | 'requestId' | 'spinId', string | null> &
    Record<'wagerUsd' | 'creditUsd' | 'balanceUsd', number>;
  const path = `/partners/${partner.partnerId}/players/alice/statement`;
  const entries: Entry[] = [];
  let cursor: string | null = null;
  do {
    const page: { entries: Entry[]; nextCursor: string | null; balanceUsd: number } = await get(
      `${path}?limit=10${cursor === null ? '' : `&cursor=${cursor}`}`,
    );
    entries.push(...page.entries);
    cursor = page.nextCursor;
    expect(page.balanceUsd).toBe(entries[0]!.balanceUsd);
  } while (cursor !== null);
  expect(entries.map(({ kind }) => kind)).toEqual(['adjustment', ...Array(SPINS).fill('spin'), 'opening']);
  expect(entries.slice(1, -1).map(({ spinId }) => spinId)).toEqual(
    spins.map(({ spinId }) => spinId).reverse(),
  );
  expect(entries[0]).toMatchObject({ creditUsd: 5, requestId: 'a-1', spinId: null });
  for (let i = 0; i < entries.length - 1; i++) {
    const { balanceUsd, wagerUsd, creditUsd } = entries[i]!;
    expect(balanceUsd).toBeCloseTo(entries[i + 1]!.balanceUsd - wagerUsd + creditUsd, 6);
  }
});

test('shows operators a spin with its response, its ledger entry, and the sealed block of its outcome', async () => {
  const { spinId, outcome } = spins[7]!;
  expect(await get(`/spins/${spinId}`)).toMatchObject({
    partnerId: partner.partnerId,
    spin: { spinId, outcome, playerId: 'alice', gameId },
    entry: { kind: 'spin', requestId: 'r-7', outcomeIndex: 7, wagerUsd: 0.25 },
    block: { fromIndex: 0, commitment: expect.stringMatching(/^[0-9a-f]{64}$/) },
  });
});

test('lists webhook deliveries by status and partner, with their bodies and their last errors', async () => {
  const registered = await service.partner('POST', '/webhooks', partner.key, {
    url: 'http://localhost:9/',
    events: ['spin.large_win'],
  });
  const tested = await service.partner('POST', `/webhooks/${registered.body.id}/test`, partner.key, {
    event: 'spin.large_win',
  });
  expect(tested.status).toBe(202);
  const failedAt = await sql`
      UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, last_attempt_at = now(), last_error = 'refused'
      RETURNING delivery_id`;
  expect(failedAt).toHaveLength(1);
  const { deliveries, total } = await get<{ deliveries: Body[]; total: number }>('/deliveries');
  expect(total).toBe(1);
  expect(deliveries[0]).toMatchObject({
    partnerId: partner.partnerId,
    status: 'failed',
    lastError: 'refused',
    url: 'http://localhost:9/',
    body: expect.stringContaining('spin.large_win'),
  });
  expect(await get(`/deliveries?partnerId=${other.partnerId}`)).toMatchObject({ total: 0 });
  expect(await get('/deliveries?status=delivered')).toMatchObject({ total: 0 });
  expect((await get<{ attention: Body }>('/overview')).attention).toMatchObject({ failedDeliveries: 1 });
  expect(await get(`/partners/${partner.partnerId}/webhooks`)).toMatchObject({
    webhooks: [{ url: 'http://localhost:9/' }],
  });
});

test("shows a failing webhook to its partner, to operators and in the overview's list of problems", async () => {
  const owner = other;
  const body = { url: 'http://localhost:9/', events: ['spin.large_win'] };
  const { id } = (await service.partner<{ id: number }>('POST', '/webhooks', owner.key, body)).body;
  for (let sent = 0; sent < 3; sent++) {
    expect(
      (await service.partner('POST', `/webhooks/${id}/test`, owner.key, { event: body.events[0] })).status,
    ).toBe(202);
  }
  type Listed = { webhooks: { health: Body }[] };
  const own = async () =>
    (await service.partner<Listed>('GET', '/webhooks', owner.key)).body.webhooks[0]!.health;
  await until(async () => (await own()).state === 'failing', 'its attempts fail');
  const health = { state: 'failing', pending: 3, restsUntil: null };
  expect(await own()).toMatchObject({ ...health, reason: expect.stringContaining('ECONNREFUSED') });
  expect((await get<Listed>(`/partners/${owner.partnerId}/webhooks`)).webhooks[0]!.health).toEqual(
    await own(),
  );
  // A delivery that failed once and is retried within a minute needs no attention.
  // The list has it nevertheless, because its state is `failing` everywhere else.
  expect(await get('/overview')).toMatchObject({
    attention: { failingWebhooks: 0 },
    failingWebhooks: expect.arrayContaining([
      expect.objectContaining({ id, health: expect.objectContaining({ state: 'failing' }) }),
    ]),
  });
  await sql`UPDATE webhooks SET failing_since = now() - interval '33 minutes' WHERE webhook_id = ${id}`;
  await sql`
    UPDATE deliveries SET next_attempt_at = now() - interval '33 minutes', leased_until = now() + interval '1 hour'
    WHERE webhook_id = ${id}`;
  const overview = await get<{ attention: Body; failingWebhooks: Body[] }>('/overview');
  expect(overview.attention).toMatchObject({ failingWebhooks: 1, lateDeliveries: 3 });
  expect(overview.failingWebhooks[0]).toMatchObject({
    partnerId: owner.partnerId,
    id,
    url: body.url,
    health: { ...health, failingSince: expect.any(String) },
  });
  // The operators' list does not show a webhook that its partner deactivated, because only the partner can
  // act on it.
  await service.partner('PATCH', `/webhooks/${id}`, owner.key, { isActive: false });
  expect(await own()).toMatchObject({ state: 'inactive', reason: 'set inactive', pending: 3 });
  const later = await get<{ attention: Body; failingWebhooks: Body[] }>('/overview');
  expect(later.attention).toMatchObject({ failingWebhooks: 0, lateDeliveries: 0 });
  expect(later.failingWebhooks.map((webhook) => webhook.id)).not.toContain(id);
});

test('lists the settlement reports of all partners by status, and returns them with their revisions', async () => {
  const day = new Date().toISOString().slice(0, 10);
  const make = (query = '') =>
    service.operator('POST', `/partners/${partner.partnerId}/settlements/${day}${query}`);
  expect((await make()).status).toBe(201);
  const reason = 'one spin too many';
  expect((await service.partner('POST', `/settlements/${day}/dispute`, partner.key, { reason })).status).toBe(
    200,
  );
  const expected = { partnerId: partner.partnerId, reportDate: day, revision: 1, disputeReason: reason };
  expect(await get('/settlements?status=DISPUTED')).toMatchObject({ total: 1, reports: [expected] });
  expect((await get<{ attention: Body }>('/overview')).attention).toMatchObject({ disputedReports: 1 });
  expect((await make()).status).toBe(201);
  expect(await get('/settlements?status=DISPUTED')).toMatchObject({ total: 1, reports: [expected] });
  expect((await make('?reason=counted')).status).toBe(201);
  expect(await get('/settlements?status=DISPUTED')).toMatchObject({ total: 0 });
  expect((await get<{ attention: Body }>('/overview')).attention).toMatchObject({ disputedReports: 0 });
  expect(await get('/settlements')).toMatchObject({
    total: 1,
    reports: [{ revision: 3, totalSpins: SPINS }],
  });
  const path = `/partners/${partner.partnerId}/settlements/${day}`;
  expect(await get(`${path}?revision=1`)).toMatchObject({ revision: 1, reportStatus: 'DISPUTED' });
  expect(await get(path)).toMatchObject({ revision: 3, reportDate: day });
});

test('filters the audit log by actor, action and subject', async () => {
  const entries = async (query: string) =>
    (await get<{ entries: { action: string; subject: string }[] }>(`/audit-log?limit=100&${query}`)).entries;
  const issued = await entries('action=key.');
  expect(issued.length).toBe(2);
  expect(issued.every(({ action }) => action === 'key.issue')).toBe(true);
  const ofPartner = await entries(`subject=partner:${partner.partnerId}&actor=operator`);
  expect(ofPartner.map(({ action }) => action)).toEqual(['partner.create']);
  expect(await entries('actor=nobody')).toEqual([]);
});

test('lists the return to player of a slot, a raffle and a blackjack table', async () => {
  const { key, partnerId } = await service.newPartner();
  const slotId = await service.newGame(key, parSheet('classic-3-reel'));
  const tableId = await newTable(service, partnerId);
  const raffle = await service.operator<{ gameConfigId: number }>('POST', `/partners/${partnerId}/raffles`, {
    displayName: 'R',
    configName: 'LISTED',
    ticketPriceUsd: 2,
    poolSize: 1000,
    prizes: [
      { prizeName: 'Car', prizeTier: 6, valueUsd: 1000, count: 1 },
      { prizeName: 'Cup', prizeTier: 2, valueUsd: 10, count: 60 },
    ],
  });
  const { body } = await service.partner<{ games: Record<string, unknown>[] }>('GET', '/games', key);
  const shown = new Map(
    body.games.map(({ gameConfigId, certifiedRtp, hitFrequency, topPrizeUsd, basicStrategyRtp }) => [
      gameConfigId,
      { certifiedRtp, hitFrequency, topPrizeUsd, basicStrategyRtp },
    ]),
  );
  expect(shown.get(slotId)).toEqual({ certifiedRtp: 0.925, hitFrequency: 0.3, topPrizeUsd: 9.625 });
  // The prizes are worth 1,000 + 60 × 10 USD, and all tickets of the pool cost 2,000 USD together.
  expect(shown.get(raffle.body.gameConfigId)).toEqual({ certifiedRtp: 0.8, topPrizeUsd: 1000 });
  // The published house edge of the default rules is 0.0046 of the first wager. The stakes of a round are
  // 1.1273 wagers on average, so the return is 1 − 0.0046 ÷ 1.1273.
  expect(shown.get(tableId)?.basicStrategyRtp).toBeCloseTo(0.99592, 5);
  expect(shown.get(tableId)?.certifiedRtp).toBeUndefined();
});

test('lists a game that has a communal progressive, with the state and the budget of the progressive', async () => {
  const rules = {
    enabled: true,
    triggerInterval: 10,
    triggerSplitPct: 100,
    communitySplitPct: 0,
    tiers: [{ tierLevel: 1, tierName: 'One', triggerAtSpins: 100, amountUsd: '1.00' }],
  };
  expect((await service.operator('PUT', `/games/${gameId}/communal`, rules)).status).toBe(200);
  const { body } = await service.operator('GET', '/progressives');
  expect(body.progressives).toMatchObject([{ gameConfigId: gameId, isEnabled: true, paidUsd: 0 }]);
});

test('lists a blackjack round for operators, finds it by its id and shows its cards', async () => {
  const table = await newTable(service, partner.partnerId);
  const round = await dealUntil(service, partner.key, table, 'bob', () => true);
  const listed = await service.operator<{ rounds: { roundId: string; wageredUsd: number }[]; total: number }>(
    'GET',
    `/rounds?partnerId=${partner.partnerId}&gameId=${table}`,
  );
  expect(listed.body).toMatchObject({ total: 1, rounds: [{ roundId: round.roundId, playerId: 'bob-0' }] });
  expect(listed.body.rounds[0]!.wageredUsd).toBe(round.wageredUsd);
  const list = ['round', 'list', String(partner.partnerId), '--game', String(table)];
  expect(JSON.parse((await command(service, ...list, '--json')).out)).toEqual(listed.body);
  expect((await command(service, ...list)).out).toContain(round.roundId);
  const found = await service.operator('GET', `/search?q=${round.roundId}`);
  expect(found.body.plays).toMatchObject([{ kind: 'round' }]);
  const others = await service.operator('GET', `/rounds?partnerId=${partner.partnerId}&status=VOIDED`);
  expect(others.body.rounds).toEqual([]);
});

test('lists the blackjack rounds of all partners by page, by status and by table', async () => {
  const other = await service.newPartner();
  const table = await newTable(service, other.partnerId);
  const dealt = [];
  for (const player of ['carol', 'dave']) {
    dealt.push(await dealUntil(service, other.key, table, player, ({ status }) => status === 'OPEN'));
  }
  const list = async (query: string) =>
    (
      await service.operator<{
        rounds: { roundId: string; partnerId: number; gameName: string; status: string }[];
        total: number;
      }>('GET', `/rounds${query}`)
    ).body;
  const all = await list('');
  expect(new Set(all.rounds.map(({ partnerId }) => partnerId))).toEqual(
    new Set([partner.partnerId, other.partnerId]),
  );
  expect(all.rounds[0]).toMatchObject({ roundId: dealt[1]!.roundId, partnerId: other.partnerId });
  expect(JSON.parse((await command(service, 'round', 'list', '--json')).out)).toEqual(all);
  expect((await command(service, 'round', 'list', '--status', 'open')).out).toMatch(
    new RegExp(`${dealt[1]!.roundId} +${other.partnerId} +${table} +dave`),
  );
  const pages = await Promise.all([1, 2].map((page) => list(`?limit=1&page=${page}`)));
  expect(pages.map(({ rounds }) => rounds[0]!.roundId)).toEqual(
    all.rounds.slice(0, 2).map(({ roundId }) => roundId),
  );
  expect(pages[0]!.total).toBe(all.total);
  const open = await list('?status=OPEN&limit=100');
  expect(open.rounds.map(({ roundId }) => roundId)).toEqual(
    expect.arrayContaining(dealt.map(({ roundId }) => roundId)),
  );
  expect(open.rounds.every(({ status }) => status === 'OPEN')).toBe(true);
  const ofTable = await list(`?gameId=${table}&limit=100`);
  expect(ofTable.rounds.slice(0, 1)).toMatchObject([{ roundId: dealt[1]!.roundId }]);
  expect(ofTable.rounds.every(({ partnerId }) => partnerId === other.partnerId)).toBe(true);
});

test("shows the traffic of each day of the range, including today's plays", async () => {
  const ofDays = async (query: string) =>
    (await service.operator<{ days: { day: string; spins: number }[] }>('GET', `/traffic?${query}`)).body
      .days;
  await until(async () => (await ofDays('days=1'))[0]!.spins > 0, 'the spin is booked');
  const days = await ofDays('days=3');
  expect(days).toHaveLength(3);
  expect(days.map(({ day }) => day)).toEqual(days.map(({ day }) => day).toSorted());
  expect(days.at(-1)!.spins).toBeGreaterThan(0);
  expect((await ofDays('days=2&partnerId=999999')).map(({ spins }) => spins)).toEqual([0, 0]);
});

test('shows the traffic of each hour since the first recorded hour, as the growth of the daily totals in that hour', async () => {
  const ofHours = async (query = '') =>
    (
      await service.operator<{ hours: { hour: string; spins: number; wageredUsd: number }[] }>(
        'GET',
        `/traffic/hours?hours=48${query}`,
      )
    ).body.hours;
  const other = await service.newPartner();
  const game = await service.api.newGame(other.key, 'silver-reels', parSheet('classic-3-reel'));
  const spin = () => service.spin(other.key, { gameId: game, playerId: 'ivan', wagerUsd: 0.25 });
  const counted = async (): Promise<number> =>
    (await ofHours(`&partnerId=${other.partnerId}`)).reduce((sum, { spins }) => sum + spins, 0);
  await spin();
  await until(async () => (await counted()) === 1, 'the spin is counted');
  await spin();
  await until(async () => (await counted()) === 2, 'the next one is, too');
  const hours = await ofHours(`&partnerId=${other.partnerId}`);
  expect(hours.reduce((sum, { wageredUsd }) => sum + wageredUsd, 0)).toBe(0.5);
  const all = await ofHours();
  expect(all.map(({ hour }) => hour)).toEqual(hours.map(({ hour }) => hour));
  for (const { hour } of all) expect(hour).toMatch(/:00:00\.000Z$/);
});

test('hourly traffic adds up to the daily totals, and hours older than 35 days are deleted', async () => {
  const oldest = async (): Promise<number> =>
    Number(
      (await sql`SELECT count(*) AS n FROM traffic_hours WHERE hour < now() - interval '35 days'`)[0]!.n,
    );
  // The service may run its clean-up at once, in which case the old hours are already gone.
  const made = await sql`
      INSERT INTO traffic_hours SELECT date_trunc('hour', now() - interval '36 days'), partner_id, 5, 5, 5 FROM partners RETURNING hour`;
  expect(made.length).toBeGreaterThan(0);
  await until(async () => (await oldest()) === 0, 'old hours leave');
  const differing = () => sql`
      SELECT * FROM (SELECT partner_id, day, sum(spins) AS spins, sum(wagered_micros) AS wagered FROM game_days GROUP BY 1, 2) d
        FULL JOIN (SELECT partner_id, (hour AT TIME ZONE 'UTC')::date AS day, sum(spins) AS spins, sum(wagered_micros) AS wagered
                   FROM traffic_hours GROUP BY 1, 2) h USING (partner_id, day)
      WHERE (d.spins, d.wagered) IS DISTINCT FROM (h.spins, h.wagered)`;
  await until(async () => (await differing()).length === 0, 'hours are the days');
});

describe('the audit log of one partner', () => {
  interface Entry {
    readonly auditId: number;
    readonly at: string;
  }
  let query: string;

  beforeAll(async () => {
    const { partnerId } = await service.newPartner();
    for (let i = 1; i <= 9; i++)
      await service.operator('PATCH', `/partners/${partnerId}`, { spinRateLimit: i, reason: `=${i}` });
    query = `/audit-log?action=partner.update&subject=partner:${partnerId}`;
  });

  const read = (more: string) => get<{ entries: Entry[]; total: number }>(`${query}&limit=100${more}`);

  test('the audit log of a range of time has exactly the entries of that time', async () => {
    const { entries: all } = await read('');
    expect(all).toHaveLength(9);
    const [from, to] = [all[7]!.at, all[2]!.at];
    const { entries, total } = await read(`&from=${from}&to=${to}`);
    // A time in a response has milliseconds, so an entry within the millisecond of the end may be left out.
    const ids = entries.map(({ auditId }) => auditId);
    const inside = all.slice(3, 7).map(({ auditId }) => auditId);
    expect(ids).toEqual(expect.arrayContaining(inside));
    expect(entries.every(({ at }) => at >= from && at < to)).toBe(true);
    expect(total).toBe(entries.length);
    expect((await read('&from=2099-01-01T00:00:00Z')).total).toBe(0);
  });

  test('the audit log as CSV has all entries of the filter, with formulas neutralized if asked', async () => {
    const csv = async (more: string): Promise<string[]> => {
      const path = `/api/operator/v1${query}&limit=2${more}`;
      const answer = await service.request('GET', path, {
        key: OPERATOR_KEY,
        headers: { Accept: 'text/csv' },
      });
      expect(answer.headers.get('content-type')).toMatch(/^text\/csv/);
      return answer.text.split('\r\n').slice(0, -1);
    };
    const [head, ...rows] = await csv('&escapeFormulas=true');
    const { entries } = await read('');
    expect(head).toBe('auditId,at,actor,action,subject,before,after,hash');
    expect(rows.map((row) => Number(row.split(',')[0]))).toEqual(entries.map(({ auditId }) => auditId));
    expect(rows[0]).toContain(`,"operator","partner.update","partner:`);
    expect(rows[0]).toContain(`""reason"":""=9""`);
    expect(await csv(`&from=${entries[0]!.at}`)).toHaveLength(2);
    expect(await csv('&to=2020-01-01T00:00:00Z')).toEqual([head]);
  });
});
