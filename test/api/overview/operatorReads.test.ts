/**
 * Tests the operators' reads across partners: the overview, statements, spins, deliveries, settlement
 * reports, and the filtered audit log.
 */
import postgres from 'postgres';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { world } from '../../setup/world.js';
import type { TestPartner } from '../../support/client.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

type Body = Record<string, never> & Record<string, unknown>;

const { stores, service: client, partner } = world();
let other: TestPartner;
let gameId: number;
const SPINS = 25;
const spins: Record<string, unknown>[] = [];

const get = async <T = Body>(path: string): Promise<T> => {
  const answer = await client.operator<T & Record<string, unknown>>('GET', path);
  expect(answer.status, `${path} ${answer.text}`).toBe(200);
  return answer.body;
};

beforeAll(async () => {
  other = await client.newPartner();
  gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
  for (let i = 0; i < SPINS; i++) {
    const body = { gameId, playerId: 'alice', wagerUsd: 0.25, requestId: `r-${i}` };
    const { status, body: spin } = await client.spin(partner.key, body);
    expect(status).toBe(200);
    spins.push(spin);
  }
  const adjusted = await client.operator('POST', `/partners/${partner.partnerId}/players/alice/adjustments`, {
    amountUsd: 5,
    reason: 'goodwill',
    requestId: 'a-1',
  });
  expect(adjusted.status).toBe(200);
});

test("shows today's traffic, the busiest partners and the errors of the process in the overview", async () => {
  await client.spin(partner.key, { gameId: 2_000_000_000, playerId: 'alice', wagerUsd: 0.25 });
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
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  onTestFinished(() => sql.end());
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
  const sql = postgres(stores.databaseUrl);
  try {
    const registered = await client.partner('POST', '/webhooks', partner.key, {
      url: 'http://localhost:9/',
      events: ['spin.large_win'],
    });
    const tested = await client.partner('POST', `/webhooks/${registered.body.id}/test`, partner.key, {
      event: 'spin.large_win',
    });
    expect(tested.status).toBe(202);
    const failedAt = await sql`
      UPDATE deliveries SET status = 'failed', next_attempt_at = NULL, last_attempt_at = now(), last_error = 'refused'
      RETURNING delivery_id`;
    expect(failedAt).toHaveLength(1);
  } finally {
    await sql.end();
  }
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
  const sql = postgres(stores.databaseUrl);
  onTestFinished(() => sql.end());
  const owner = other;
  const body = { url: 'http://localhost:9/', events: ['spin.large_win'] };
  const { id } = (await client.partner<{ id: number }>('POST', '/webhooks', owner.key, body)).body;
  for (let sent = 0; sent < 3; sent++) {
    expect(
      (await client.partner('POST', `/webhooks/${id}/test`, owner.key, { event: body.events[0] })).status,
    ).toBe(202);
  }
  type Listed = { webhooks: { health: Body }[] };
  const own = async () =>
    (await client.partner<Listed>('GET', '/webhooks', owner.key)).body.webhooks[0]!.health;
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
  await client.partner('PATCH', `/webhooks/${id}`, owner.key, { isActive: false });
  expect(await own()).toMatchObject({ state: 'inactive', reason: 'set inactive', pending: 3 });
  const later = await get<{ attention: Body; failingWebhooks: Body[] }>('/overview');
  expect(later.attention).toMatchObject({ failingWebhooks: 0, lateDeliveries: 0 });
  expect(later.failingWebhooks.map((webhook) => webhook.id)).not.toContain(id);
});

test('lists the settlement reports of all partners by status, and returns them with their revisions', async () => {
  const day = new Date().toISOString().slice(0, 10);
  const make = (query = '') =>
    client.operator('POST', `/partners/${partner.partnerId}/settlements/${day}${query}`);
  expect((await make()).status).toBe(201);
  const reason = 'one spin too many';
  expect((await client.partner('POST', `/settlements/${day}/dispute`, partner.key, { reason })).status).toBe(
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
