/** Tests that `spindle settlement verify` detects tampering, and reports nothing if there was none. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Verification, verifySettlements } from '../../../src/books/settlement/verify.js';
import type { SettlementReportBody } from '../../../src/domain/settlement.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { world } from '../../setup/world.js';
import { cliOf, ROOT } from '../../support/root.js';
import { startService } from '../../support/service.js';
import {
  bookedInto,
  canonical,
  dayAt,
  ENTRIES_AHEAD,
  longAgo,
  oldPartner,
  runIntoMoment,
  settlementWorker,
  shift,
  startOf,
} from '../../support/settlement.js';

const { stores } = world();
let server: postgres.Sql;
let today: string;
let partnerId: number;
let otherId: number;
let gameId: number;

/**
 * Two partners have reports for four days. One partner played on the last day and disputed the report of the
 * second day, which was revised.
 */
beforeAll(async () => {
  server = postgres(inject('databaseUrl'), { max: 1, onnotice: () => {} });
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  today = dayAt(Date.now());
  const service = await startService(stores, { ...ENTRIES_AHEAD, SETTLEMENT_CRON: longAgo(today) });
  const partner = await oldPartner(service, sql, today, 3);
  const other = await oldPartner(service, sql, today, 3);
  partnerId = partner.partnerId;
  otherId = other.partnerId;
  gameId = partner.gameId;
  const spin = { gameId, playerId: 'p', wagerUsd: 0.25 };
  const spins = Array.from({ length: 40 }, () => service.spin(partner.key, spin));
  for (const answer of await Promise.all(spins)) expect(answer.status).toBe(200);
  // The next step moves the newest entry of the cell in Redis, so the cell needs a first entry.
  expect((await service.spin(other.key, { ...spin, gameId: other.gameId })).status).toBe(200);
  for (const { cell } of [partner, other]) {
    await runIntoMoment(redis, cell, startOf(shift(today, 1)), 0);
  }
  await service.spin(partner.key, spin);
  await service.spin(other.key, { ...spin, gameId: other.gameId });
  for (const { cell } of [partner, other]) await bookedInto(sql, cell, shift(today, 1));
  const worker = await settlementWorker(stores, shift(today, 1));
  await worker.job.turn();
  await worker.end();
  const second = shift(today, -2);
  const path = `/settlements/${second}/dispute`;
  expect((await service.partner('POST', path, partner.key, { reason: 'r' })).status).toBe(200);
  expect(
    (await service.operator('POST', `/partners/${partnerId}/settlements/${second}?reason=r`)).status,
  ).toBe(201);
  // The current day is PENDING.
  const later = await settlementWorker(stores, shift(today, 1));
  await later.settlements.makeNow(partnerId, shift(today, 1), 'operator');
  await later.end();
  await service.stop();
  redis.disconnect();
  await sql.end();
});

afterAll(async () => {
  await server.end();
});

type Tamper = (sql: postgres.Sql) => Promise<unknown>;

/** Runs a function on a copy of the database in which the test changed something without the service. */
async function verified<T>(tamper: Tamper, look: (databaseUrl: string) => Promise<T>): Promise<T> {
  const name = `${new URL(stores.databaseUrl).pathname.slice(1)}_copy`;
  await server.unsafe(`CREATE DATABASE ${name} TEMPLATE ${new URL(stores.databaseUrl).pathname.slice(1)}`);
  const url = new URL(stores.databaseUrl);
  url.pathname = `/${name}`;
  const sql = postgres(url.href, { max: 1, onnotice: () => {} });
  try {
    // The triggers protect only against accidents, so an attacker would disable them.
    await sql`SET session_replication_role = replica`;
    await tamper(sql);
    return await look(url.href);
  } finally {
    await sql.end();
    await server.unsafe(`DROP DATABASE ${name} WITH (FORCE)`);
  }
}

async function verify(databaseUrl: string): Promise<Verification> {
  const sql = connectPostgres(databaseUrl, { max: 1, name: 'test', onError: () => {} });
  try {
    return await verifySettlements(sql, undefined);
  } finally {
    await sql.end();
  }
}

const problems = async (tamper: Tamper): Promise<string[]> =>
  (await verified(tamper, verify)).differences.map(
    ({ partnerId: partner, date, revision, problem }) => `${partner} ${date} ${revision ?? '-'} ${problem}`,
  );

/** Rewrites a report with a valid hash, as an attacker could who knows how reports are sealed. */
async function rewrite(
  sql: postgres.Sql,
  date: string,
  change: (report: SettlementReportBody) => Partial<SettlementReportBody>,
  isSealed: boolean,
): Promise<void> {
  const [row] = await sql`
    SELECT report_id, report FROM settlement_reports WHERE partner_id = ${partnerId} AND report_date = ${date}
    ORDER BY revision DESC LIMIT 1`;
  const report = row!.report as SettlementReportBody;
  const text = canonical({ ...report, ...change(report) });
  const hash = createHash('sha256').update(text).digest('hex');
  await sql`UPDATE settlement_reports SET report = ${text}::text::json WHERE report_id = ${row!.report_id}`;
  if (isSealed)
    await sql`UPDATE settlement_reports SET integrity_hash = ${hash} WHERE report_id = ${row!.report_id}`;
}

const DIFFERS = 'differs from the ledger';

test('settlement verify reports no differences if nothing was changed', async () => {
  const verification = await verified(async () => {}, verify);
  expect(verification).toMatchObject({ differences: [], partners: 2, days: 5, reports: 10 });
  expect(verification.rows).toBeGreaterThan(40);
});

describe('tampering that settlement verify detects', () => {
  test('settlement verify detects that all reports of a partner with money in the ledger are missing', async () => {
    const found = await problems(async (sql) => {
      await sql`DELETE FROM settlement_reports WHERE partner_id = ${partnerId}`;
      await sql`DELETE FROM audit_log WHERE subject LIKE ${`settlement:${partnerId}:%`}`;
    });
    expect(found).toContain(
      `${partnerId} ${today} - the ledger has money of the day, but there is no report`,
    );
  });

  test('settlement verify detects a report made from daily totals that differ from the ledger rows', async () => {
    const verification = await verified(
      (sql) =>
        sql`UPDATE game_days SET paid_micros = paid_micros + 1 WHERE game_id = ${gameId} AND day = ${today}`,
      async (databaseUrl) => {
        const worker = await settlementWorker({ ...stores, databaseUrl }, shift(today, 1));
        await worker.settlements.makeNow(partnerId, today, 'operator');
        await worker.end();
        return verify(databaseUrl);
      },
    );
    const found = verification.differences.map(({ revision, problem }) => `${revision} ${problem}`);
    for (const name of ['totalPaidOutUsd', 'netPositionUsd', 'ggrUsd', `paidOutUsd of game ${gameId}`]) {
      expect(found).toContain(`2 ${name} ${DIFFERS}`);
    }
  });

  test.each([
    ['totalSpins', () => ({ totalSpins: 39 })],
    ['ggrUsd', () => ({ ggrUsd: 0.000001 })],
    ['adjustmentsUsd', () => ({ adjustmentsUsd: 1 })],
    ['communityBonusUsd', () => ({ communityBonusUsd: 1 })],
    [
      'spins of game',
      ({ gameBreakdown: [row] }: SettlementReportBody) => ({ gameBreakdown: [{ ...row!, spins: 41 }] }),
    ],
    ['spins of game', () => ({ gameBreakdown: [] })],
  ])('settlement verify detects a wrong %s in a report', async (name, change) => {
    const found = await problems((sql) => rewrite(sql, today, change, true));
    const pattern = new RegExp(`^${partnerId} ${today} 1 ${name}.* ${DIFFERS}$`);
    expect(found.filter((line) => pattern.test(line))).toHaveLength(1);
  });

  test('settlement verify detects a ledger row that was added, removed or changed after its day was settled', async () => {
    const end = BigInt(startOf(shift(today, 1))) << 22n;
    for (const statement of [
      `INSERT INTO ledger SELECT ${end - 1n}, previous_id, wager_micros, credit_micros, balance_micros, outcome_index, partner_id,
         game_id, entry_number, outcome_code, kind, player_id FROM ledger WHERE game_id = ${gameId} LIMIT 1`,
      `DELETE FROM ledger WHERE entry_id = (SELECT max(entry_id) FROM ledger WHERE game_id = ${gameId} AND entry_id < ${end})`,
      `UPDATE ledger SET credit_micros = credit_micros + 1 WHERE entry_id = (SELECT min(entry_id) FROM ledger WHERE game_id = ${gameId})`,
    ]) {
      const found = await problems((sql) => sql.unsafe(statement));
      expect(found.length, statement).toBeGreaterThan(0);
      for (const line of found) expect(line).toMatch(new RegExp(`^${partnerId} ${today} 1 .*${DIFFERS}$`));
    }
  });

  test('settlement verify detects a change in a report that is still PENDING', async () => {
    const tomorrow = shift(today, 1);
    const found = await problems((sql) => rewrite(sql, tomorrow, () => ({ totalSpins: 2 }), false));
    expect(found).toContain(`${partnerId} ${tomorrow} 1 totalSpins ${DIFFERS}`);
    expect(found).toContain(`${partnerId} ${tomorrow} 1 integrityHash is not the hash of the report`);
  });

  test('settlement verify detects a report in which one word was changed', async () => {
    const found = await problems((sql) =>
      rewrite(sql, today, () => ({ generatedAt: '2026-01-01T00:00:00.000Z' }), false),
    );
    expect(found).toEqual([`${partnerId} ${today} 1 integrityHash is not the hash of the report`]);
  });

  test('settlement verify detects a changed and resealed report by the next report and by the audit log', async () => {
    const before = shift(today, -1);
    const found = await problems((sql) =>
      rewrite(sql, before, () => ({ generatedAt: '2026-01-01T00:00:00.000Z' }), true),
    );
    expect(found.sort()).toEqual(
      [
        `${partnerId} ${before} 1 integrityHash differs from the audit log`,
        `${partnerId} ${today} 1 previousHash is not the hash of the previous report`,
      ].sort(),
    );
  });

  test('settlement verify detects a missing report anywhere in the chain', async () => {
    const gone = (date: string, revision: number) =>
      problems(
        (sql) => sql`DELETE FROM settlement_reports
          WHERE partner_id = ${partnerId} AND report_date = ${date} AND revision = ${revision}`,
      );
    const [first, second, last] = [shift(today, -3), shift(today, -2), shift(today, 1)];
    expect((await gone(first, 1)).sort()).toEqual(
      [
        `${partnerId} ${first} 1 a report of the audit log is missing`,
        `${partnerId} ${first} - the day has no complete report, although a later day has one`,
        `${partnerId} ${second} 1 previousHash is not the hash of the previous report`,
        `${partnerId} ${second} 2 previousHash is not the hash of the previous report`,
      ].sort(),
    );
    // The report of the third day was made while the first revision of the second day was the newest.
    expect((await gone(second, 1)).sort()).toEqual(
      [
        `${partnerId} ${second} 1 a report of the audit log is missing`,
        `${partnerId} ${second} 2 the previous revision of this report is missing`,
        `${partnerId} ${shift(today, -1)} 1 previousHash is not the hash of the previous report`,
      ].sort(),
    );
    expect(await gone(last, 1)).toEqual([`${partnerId} ${last} 1 a report of the audit log is missing`]);
  });

  test('settlement verify detects an invented report or an invented status', async () => {
    const invented = await problems(async (sql) => {
      await sql`
        INSERT INTO settlement_reports (partner_id, report_date, revision, status, is_complete, report, integrity_hash)
        SELECT partner_id, report_date, 2, 'GENERATED', true, report, integrity_hash FROM settlement_reports
        WHERE partner_id = ${partnerId} AND report_date = ${today}`;
    });
    expect(invented.sort()).toEqual(
      [
        `${partnerId} ${today} 2 revision differs from the revision of its row`,
        `${partnerId} ${today} 2 the report is not in the audit log`,
      ].sort(),
    );
    const judged = await problems(async (sql) => {
      await sql`UPDATE settlement_reports SET status = 'ACKNOWLEDGED', acknowledged_at = now()
        WHERE partner_id = ${partnerId} AND report_date = ${today}`;
    });
    expect(judged).toEqual([`${partnerId} ${today} 1 reportStatus differs from the audit log`]);
  });
});

test('settlement verify prints the differences, and its exit status says whether there are any', async () => {
  const run = async (databaseUrl: string, ...args: string[]) => {
    const words = [cliOf(ROOT), 'settlement', ...args];
    const env = { PATH: process.env.PATH, REDIS_URL: stores.redisUrl, DATABASE_URL: databaseUrl };
    const child = spawn(process.execPath, words, { env });
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk;
    });
    const [status] = (await once(child, 'close')) as [number];
    return { status, out };
  };
  const runs = await verified(
    (sql) => rewrite(sql, today, () => ({ totalSpins: 41 }), true),
    async (url) => {
      const [all, json, other, nobody, words] = await Promise.all([
        run(url, 'verify'),
        run(url, 'verify', '--json', '--partner', String(partnerId)),
        run(url, 'verify', '--partner', String(otherId)),
        run(url, 'verify', '--partner', '2000000000'),
        run(url, 'sum'),
      ]);
      return { all, json, other, nobody, words };
    },
  );
  expect(runs.all.status).toBe(1);
  expect(runs.all.out).toContain(
    `partner ${partnerId} ${today} revision 1: totalSpins differs from the ledger: expected 40, found 41`,
  );
  expect(runs.all.out).toMatch(/\nNOT CLEAN: \d+ differences: 10 reports of 2 partners over 5 days/);
  expect(runs.json.status).toBe(1);
  expect((JSON.parse(runs.json.out) as Verification).differences).toContainEqual({
    partnerId,
    date: today,
    revision: 1,
    problem: 'totalSpins differs from the ledger',
    expected: 40,
    found: 41,
  });
  expect(runs.other).toMatchObject({
    status: 0,
    out: expect.stringContaining('CLEAN: 4 reports of 1 partners'),
  });
  expect(runs.nobody).toEqual({ status: 1, out: '' });
  expect(runs.words).toEqual({ status: 2, out: '' });
});
