/**
 * Tests days that are ended early, by ledger entries with times ahead of the real clock: the reports, the
 * ledger and the responses to clients must agree to the micro-USD.
 */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { verifySettlements } from '../../../src/books/settlement/verify.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { freshStores } from '../../setup/freshStores.js';
import { startService } from '../../support/service.js';
import {
  bookedInto,
  dayAt,
  ENTRIES_AHEAD,
  longAgo,
  madeOf,
  microsOf,
  oldPartner,
  reportsOf,
  runIntoMoment,
  settlementWorker,
  shift,
  startOf,
  type TestWorker,
} from '../../support/settlement.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

let stores: TestStores;
let sql: postgres.Sql<{ bigint: bigint }>;
let own: Sql;
let redis: Redis;
let service: Awaited<ReturnType<typeof startService>>;
let today: string;
const workers: TestWorker[] = [];

beforeAll(async () => {
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 3, onnotice: () => {}, types: { bigint: postgres.BigInt } });
  own = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  today = dayAt(Date.now());
  service = await startService(stores, { ...ENTRIES_AHEAD, SETTLEMENT_CRON: longAgo(today) });
});

afterAll(async () => {
  await Promise.all(workers.map((each) => each.end()));
  await service.stop();
  redis.disconnect();
  await Promise.all([sql.end(), own.end()]);
  await stores.drop();
});

async function worker(date: string): Promise<TestWorker> {
  const made = await settlementWorker(stores, date);
  workers.push(made);
  return made;
}

test('the sums of all settlement reports equal the ledger and the responses to clients', async () => {
  const sheets = ['classic-3-reel', 'penny-sub-cent', 'double-strike'];
  const partner = await oldPartner(service, sql, today, 0);
  const games = await Promise.all(
    sheets.map(async (name) => ({
      gameId: await service.newGame(partner.key, parSheet(name)),
      wagerUsd: parSheet(name).denominationUsd as number,
    })),
  );
  const raffle = await service.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partner.partnerId}/raffles`,
    {
      displayName: 'A raffle',
      configName: 'RAFFLE',
      ticketPriceUsd: 0.5,
      poolSize: 300,
      prizes: [{ prizeName: 'Bike', prizeTier: 4, valueUsd: 3.000001, count: 40 }],
    },
  );
  const raffleId = raffle.body.gameConfigId;
  games.push({ gameId: raffleId, wagerUsd: 0.5 });
  await until(
    async () =>
      (await service.partner(`GET`, `/games/${raffleId}/pool`, partner.key)).body.status === 'ACTIVE',
    'the raffle is open',
  );
  let adjusted = 0n;
  const adjust = async (amountUsd: number): Promise<void> => {
    const path = `/partners/${partner.partnerId}/players/p0/adjustments`;
    const body = { amountUsd, reason: 'r', requestId: `${amountUsd}` };
    const answer = await service.operator('POST', path, body);
    expect(answer.status, answer.text).toBe(200);
    adjusted += microsOf(amountUsd);
  };
  const told = { spins: 0, wagered: 0n, paid: 0n };
  const spinAll = async (count: number): Promise<void> => {
    const answers = await Promise.all(
      Array.from({ length: count }, (_, i) => {
        const game = games[i % games.length]!;
        const spin = { ...game, playerId: `p${i % 7}` };
        return service
          .spin<{ outcome: { payoutUsd: number } }>(partner.key, spin)
          .then((answer) => ({ answer, game }));
      }),
    );
    for (const { answer, game } of answers) {
      expect(answer.status, answer.text).toBe(200);
      told.spins++;
      told.wagered += microsOf(game.wagerUsd);
      told.paid += microsOf(answer.body.outcome.payoutUsd);
    }
  };
  await spinAll(60);
  await adjust(1.000001);
  const days = [today, shift(today, 1), shift(today, 2)];
  for (const next of days.slice(1)) {
    // A batch extends over midnight, with 40 of its entries before midnight.
    await runIntoMoment(redis, partner.cell, startOf(next), 40);
    await adjust(-0.000002 * days.indexOf(next));
    await spinAll(90);
    await bookedInto(sql, partner.cell, next);
  }
  await adjust(0.25);
  await until(async () => {
    const [row] = await sql`
      SELECT count(*) FILTER (WHERE kind = 1)::int AS spins, count(*) FILTER (WHERE kind = 3)::int AS adjustments FROM ledger`;
    return row!.spins === told.spins && row!.adjustments === 4;
  }, 'all is booked');
  // At 02:00 of the third day the first two days are reported. The third day is still running.
  const { job, settlements } = await worker(days[2]!);
  await job.turn();
  await settlements.makeNow(partner.partnerId, days[2]!, 'operator');
  const reports = await reportsOf(sql, partner.partnerId);
  expect(reports.map(({ date, status }) => `${date} ${status}`)).toEqual([
    `${days[0]} GENERATED`,
    `${days[1]} GENERATED`,
    `${days[2]} PENDING`,
  ]);
  const sum = (name: string): bigint =>
    reports.reduce((total, { report }) => total + microsOf(report[name]), 0n);
  const [ledger] = await sql`
    SELECT count(*)::int AS spins, sum(wager_micros)::bigint AS wagered, sum(credit_micros)::bigint AS paid
    FROM ledger WHERE kind = 1 AND partner_id = ${partner.partnerId}`;
  expect(ledger).toEqual(told);
  expect(reports.reduce((total, { report }) => total + (report.totalSpins as number), 0)).toBe(told.spins);
  expect(sum('totalWageredUsd')).toBe(told.wagered);
  expect(sum('totalPaidOutUsd')).toBe(told.paid);
  // An adjustment is a ledger entry too, so one of the 40 entries before midnight belongs to no game.
  expect(sum('adjustmentsUsd')).toBe(adjusted);
  expect(reports.map(({ report }) => report.adjustmentsUsd)).toEqual([0.999999, -0.000004, 0.25]);
  for (const { report } of reports) {
    expect(report.gameBreakdown).toContainEqual(
      expect.objectContaining({ gameConfigId: raffleId, gameType: 'raffle', certifiedRtp: 0.8 }),
    );
  }
  expect(sum('ggrUsd')).toBe(told.wagered - told.paid);
  for (const { report } of reports) expect(report.totalSpins).toBeGreaterThan(0);
  expect((reports[0]!.report.totalSpins as number) + (reports[1]!.report.totalSpins as number)).toBe(
    60 + 90 + 39,
  );
  const verification = await verifySettlements(own, undefined);
  expect(verification.differences).toEqual([]);
  expect(verification.reports).toBe(3);

  // The third day was PENDING when its report was acknowledged. Once the day is complete, it gets another
  // revision.
  const acknowledged = await service.partner('POST', `/settlements/${days[2]}/acknowledge`, partner.key);
  expect(acknowledged.body).toMatchObject({ reportStatus: 'ACKNOWLEDGED', revision: 1 });
  const fourth = shift(today, 3);
  const { job: next } = await worker(fourth);
  await next.turn();
  expect(next.overdueSeconds).toBe(7200);
  expect(await madeOf(sql, partner.partnerId)).toHaveLength(3);
  await runIntoMoment(redis, partner.cell, startOf(fourth), 10);
  await spinAll(30);
  await bookedInto(sql, partner.cell, fourth);
  await next.turn();
  expect(next.overdueSeconds).toBe(0);
  expect((await madeOf(sql, partner.partnerId)).slice(2)).toEqual([
    `${days[2]} 1 ACKNOWLEDGED`,
    `${days[2]} 2 GENERATED`,
  ]);
  const [, , pending, complete] = await reportsOf(sql, partner.partnerId);
  expect((complete!.report.totalSpins as number) - (pending!.report.totalSpins as number)).toBe(10);
  expect((await verifySettlements(own, undefined)).differences).toEqual([]);
});

test('a partner that is created just after midnight gets a report of the adjustment that Redis booked before midnight', async () => {
  // The clock of Postgres is ahead, so the partner is of the next day.
  const partner = await oldPartner(service, sql, today, -1);
  const { partnerId, cell } = partner;
  const path = `/partners/${partnerId}/players/p/adjustments`;
  const adjusted = { amountUsd: 3, reason: 'r', requestId: 'midnight' };
  expect(await service.operator('POST', path, adjusted)).toMatchObject({ status: 200 });
  const next = shift(today, 1);
  await runIntoMoment(redis, cell, startOf(next), 0);
  await service.spin(partner.key, { gameId: partner.gameId, playerId: 'p', wagerUsd: 0.25 });
  await bookedInto(sql, cell, next);
  const { job } = await worker(next);
  await job.turn();
  const [first] = await reportsOf(sql, partnerId);
  expect(first).toMatchObject({ date: today, report: { adjustmentsUsd: 3 } });
});

test('lists a raffle in the settlement reports of the days on which it existed, and in no later report', async () => {
  const partner = await oldPartner(service, sql, today, 4);
  const { body } = await service.operator<{ gameConfigId: number }>(
    'POST',
    `/partners/${partner.partnerId}/raffles`,
    {
      displayName: 'A raffle',
      configName: 'SHORT_RAFFLE',
      ticketPriceUsd: 0.5,
      poolSize: 2,
      prizes: [{ prizeName: 'Bike', prizeTier: 4, valueUsd: 3, count: 1 }],
    },
  );
  const raffleId = body.gameConfigId;
  const madeAt = `${shift(today, -3)}T10:00:00Z`;
  const closedAt = `${shift(today, -2)}T00:00:00Z`;
  await sql`UPDATE games SET created_at = ${madeAt} WHERE game_id = ${raffleId}`;
  await sql`UPDATE raffles SET sealed_at = ${madeAt}, closed_at = ${closedAt} WHERE game_id = ${raffleId}`;
  const { settlements } = await worker(today);
  for (const day of [-4, -3, -2, -1])
    await settlements.makeNow(partner.partnerId, shift(today, day), 'operator');
  const listed = (await reportsOf(sql, partner.partnerId)).map(({ report }) =>
    (report.gameBreakdown as { gameConfigId: number }[]).some(
      ({ gameConfigId }) => gameConfigId === raffleId,
    ),
  );
  expect(listed).toEqual([false, true, true, false]);
});
