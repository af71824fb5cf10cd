/**
 * Tests settlement reports over HTTP: their content, states, revisions, hash chain, CSV form, and refused
 * requests.
 */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CSV_TYPE, prefersCsv } from '../../../src/api/contract/csv.js';
import { freshStores } from '../../setup/freshStores.js';
import type { Client, TestPartner } from '../../support/client.js';
import { startService } from '../../support/service.js';
import {
  bookedInto,
  dayAt,
  ENTRIES_AHEAD,
  hashOf,
  longAgo,
  microsOf,
  oldPartner,
  runIntoMoment,
  type SettledPartner,
  shift,
  startOf,
} from '../../support/settlement.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

type Json = Record<string, unknown>;
interface Report extends Json {
  reportDate: string;
  reportStatus: string;
  revision: number;
  integrityHash: string;
  previousHash: string | null;
  gameBreakdown: Json[];
}

let stores: TestStores;
let sql: postgres.Sql;
let redis: Redis;
let client: Client & { stop(): Promise<void> };
let today: string;

beforeAll(async () => {
  stores = await freshStores();
  sql = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
  redis = new Redis(stores.redisUrl, { protocol: 2 });
  today = dayAt(Date.now());
  // With this schedule no report has been due for months, so the service makes only the reports that a test
  // requests.
  client = await startService(stores, { ...ENTRIES_AHEAD, SETTLEMENT_CRON: longAgo(today) });
});

afterAll(async () => {
  redis.disconnect();
  await client.stop();
  await sql.end();
  await stores.drop();
});

const failed = (status: number, errorCode: string) => ({ status, body: { status: 'error', errorCode } });
const make = (partner: TestPartner, date: string, reason?: string) =>
  client.operator<Report>(
    'POST',
    `/partners/${partner.partnerId}/settlements/${date}${reason === undefined ? '' : `?reason=${reason}`}`,
  );
const read = (partner: TestPartner, path: string) =>
  client.partner<Report>('GET', `/settlements/${path}`, partner.key);
const acknowledge = (partner: TestPartner, path: string, query = '') =>
  client.partner<Report>('POST', `/settlements/${path}/acknowledge${query}`, partner.key);
const dispute = (partner: TestPartner, path: string, reason: unknown = 'Not what we have', query = '') =>
  client.partner<Report>('POST', `/settlements/${path}/dispute${query}`, partner.key, { reason });

const judge = (partner: TestPartner, path: string, body: unknown) =>
  client.partner<Report>('POST', `/settlements/${path}`, partner.key, body);

const settled = (daysOld: number): Promise<SettledPartner> => oldPartner(client, sql, today, daysOld);

describe('the settlement report of a day', () => {
  test('includes raffle tickets with the return of their prize table, and adjustments, in a settlement report', async () => {
    const partner = await settled(1);
    const made = await client.operator<{ gameConfigId: number }>(
      'POST',
      `/partners/${partner.partnerId}/raffles`,
      {
        displayName: 'A raffle',
        configName: 'RAFFLE',
        ticketPriceUsd: 0.3,
        poolSize: 7,
        prizes: [{ prizeName: 'Mug', prizeTier: 1, valueUsd: 0.5, count: 2 }],
      },
    );
    const gameId = made.body.gameConfigId;
    let paid = 0n;
    for (let i = 0; i < 3; i++) {
      const ticket = () =>
        client.spin<{ outcome: { payoutUsd: number } }>(partner.key, {
          gameId,
          wagerUsd: 0.3,
          playerId: 'p',
        });
      let answer = await ticket();
      await until(async () => {
        if (answer.status === 200) return true;
        answer = await ticket();
        return false;
      }, 'the raffle is sealed');
      paid += microsOf(answer.body.outcome.payoutUsd);
    }
    for (const amountUsd of [12.5, -2.000001]) {
      const path = `/partners/${partner.partnerId}/players/p/adjustments`;
      const body = { amountUsd, reason: 'A test', requestId: `adjust ${amountUsd}` };
      expect((await client.operator('POST', path, body)).status).toBe(200);
    }
    await runIntoMoment(redis, partner.cell, startOf(shift(today, 1)), 0);
    await client.spin(partner.key, { gameId: partner.gameId, wagerUsd: 0.25, playerId: 'p' });
    await bookedInto(sql, partner.cell, shift(today, 1));
    const { body: report } = await make(partner, today);
    expect(report).toMatchObject({ reportStatus: 'GENERATED', totalSpins: 3, adjustmentsUsd: 10.499999 });
    expect(microsOf(report.totalPaidOutUsd)).toBe(paid);
    const rows = report.gameBreakdown as Json[];
    expect(rows.find(({ gameConfigId }) => gameConfigId === gameId)).toMatchObject({
      gameType: 'raffle',
      spins: 3,
      wageredUsd: 0.9,
      // The prizes pay 2 × 0.50 USD, and the tickets cost 7 × 0.30 USD.
      certifiedRtp: 0.47619,
    });
  });

  test('sums up the spins of a settlement report to the micro-USD, and hashes its canonical form', async () => {
    const partner = await settled(1);
    const penny = await client.newGame(partner.key, parSheet('penny-sub-cent'));
    let wagered = 0n;
    let paid = 0n;
    const spin = async (gameId: number, wagerUsd: number): Promise<void> => {
      const answer = await client.spin<{ outcome: { payoutUsd: number } }>(partner.key, {
        gameId,
        wagerUsd,
        playerId: 'p',
      });
      expect(answer.status).toBe(200);
      wagered += microsOf(wagerUsd);
      paid += microsOf(answer.body.outcome.payoutUsd);
    };
    const pennyUsd = parSheet('penny-sub-cent').denominationUsd as number;
    for (let i = 0; i < 30; i++) await spin(partner.gameId, 0.25);
    for (let i = 0; i < 30; i++) await spin(penny, pennyUsd);
    // The next day begins by the clock of this cell, so the current day is over.
    await runIntoMoment(redis, partner.cell, startOf(shift(today, 1)), 0);
    await client.spin(partner.key, { gameId: partner.gameId, wagerUsd: 0.25, playerId: 'p' });
    await bookedInto(sql, partner.cell, shift(today, 1));

    const yesterday = await make(partner, shift(today, -1));
    const answer = await make(partner, today);
    expect(answer.status).toBe(201);
    const report = answer.body;
    expect(Object.keys(report).sort()).toEqual(
      [
        'reportDate reportStatus revision totalSpins totalWageredUsd totalPaidOutUsd netPositionUsd ggrUsd',
        'communityBonusUsd adjustmentsUsd openRounds openWageredUsd gameBreakdown ledgerFrom ledgerTo previousHash integrityHash generatedAt logCheckpoint',
      ]
        .join(' ')
        .split(' ')
        .sort(),
    );
    expect(report).toMatchObject({
      reportDate: today,
      reportStatus: 'GENERATED',
      revision: 1,
      totalSpins: 60,
      communityBonusUsd: 0,
      adjustmentsUsd: 0,
      previousHash: yesterday.body.integrityHash,
      ledgerFrom: String(BigInt(startOf(today)) << 22n),
      ledgerTo: String(BigInt(startOf(shift(today, 1))) << 22n),
    });
    expect(microsOf(report.totalWageredUsd)).toBe(wagered);
    expect(microsOf(report.totalPaidOutUsd)).toBe(paid);
    expect(microsOf(report.ggrUsd)).toBe(wagered - paid);
    expect(report.netPositionUsd).toBe(report.ggrUsd);
    const names = (await client.partner<{ games: Json[] }>('GET', '/games', partner.key)).body.games;
    expect(report.gameBreakdown).toMatchObject(
      names.map(({ gameConfigId, configName, displayName, gameType }) => ({
        gameConfigId,
        configName,
        displayName,
        gameType,
        spins: 30,
      })),
    );
    for (const [row, sheet] of [
      [report.gameBreakdown[0]!, 'classic-3-reel'],
      [report.gameBreakdown[1]!, 'penny-sub-cent'],
    ] as const) {
      expect(row.certifiedRtp).toBe(parSheet(sheet).certifiedRtp);
      const exact = Number(microsOf(row.paidOutUsd)) / Number(microsOf(row.wageredUsd));
      expect(Math.abs((row.actualRtp as number) - exact)).toBeLessThanOrEqual(5.000001e-7);
      expect(microsOf(row.ggrUsd)).toBe(microsOf(row.wageredUsd) - microsOf(row.paidOutUsd));
    }
    expect(report.integrityHash).toBe(hashOf(report));
    expect(yesterday.body.integrityHash).toBe(hashOf(yesterday.body));
    expect((await read(partner, today)).body).toEqual(report);
  });

  test('reports a day without spins as zeros for each game, and answers KS-4301 for a day outside the range', async () => {
    const partner = await settled(2);
    // The game was created today, so yesterday's report does not list it.
    const { body } = await make(partner, shift(today, -1));
    expect(body).toMatchObject({
      reportStatus: 'GENERATED',
      totalSpins: 0,
      totalWageredUsd: 0,
      totalPaidOutUsd: 0,
      netPositionUsd: 0,
      ggrUsd: 0,
      gameBreakdown: [],
      previousHash: null,
    });
    await sql`UPDATE games SET created_at = ${`${shift(today, -1)}T23:59:59Z`} WHERE game_id = ${partner.gameId}`;
    const again = await make(partner, shift(today, -1));
    expect(again.body.gameBreakdown).toMatchObject([
      { gameConfigId: partner.gameId, spins: 0, wageredUsd: 0, paidOutUsd: 0, ggrUsd: 0, actualRtp: null },
    ]);
    for (const date of [shift(today, -3), shift(today, 2), '0001-01-01', '9999-12-31']) {
      expect(await make(partner, date), date).toMatchObject(failed(404, 'KS-4301'));
      expect(await read(partner, date), date).toMatchObject(failed(404, 'KS-4301'));
    }
    expect(await read(partner, shift(today, -2))).toMatchObject(failed(404, 'KS-4301'));
  });

  test('adds adjustments to a settlement report, but to none of its other totals', async () => {
    const partner = await settled(1);
    const date = shift(today, -1);
    await sql`INSERT INTO adjustment_days VALUES (${partner.partnerId}, ${date}, 2, -1234567)`;
    expect((await make(partner, date)).body).toMatchObject({ adjustmentsUsd: -1.234567, ggrUsd: 0 });
  });

  test('writes a settlement sum that no double can hold with all its digits', async () => {
    const partner = await settled(1);
    const date = shift(today, -1);
    await sql`INSERT INTO game_days VALUES (${partner.gameId}, ${date}, ${partner.partnerId}, 1, 9007199254740993, 0)`;
    for (const answer of [await make(partner, date), await read(partner, date)]) {
      expect(answer.text).toContain('"totalWageredUsd":9007199254.740993,');
    }
  });

  test('returns a settlement report to its own partner only', async () => {
    const [one, other] = [await settled(1), await settled(1)];
    const date = shift(today, -1);
    await make(one, date);
    for (const answer of [
      await read(other, date),
      await acknowledge(other, date),
      await dispute(other, date),
    ]) {
      expect(answer).toMatchObject(failed(404, 'KS-4301'));
    }
    expect((await client.partner('GET', '/settlements', other.key)).body).toEqual({
      reports: [],
      page: 1,
      limit: 20,
      total: 0,
    });
  });
});

describe('states of a settlement report', () => {
  let partner: SettledPartner;
  beforeAll(async () => {
    partner = await settled(9);
  });

  test("acknowledges a GENERATED settlement report only once, after which it can't change", async () => {
    const date = shift(today, -1);
    const { body: made } = await make(partner, date);
    const { status, body } = await acknowledge(partner, date);
    expect(status).toBe(200);
    const { acknowledgedAt, ...rest } = body;
    expect(rest).toEqual({ ...made, reportStatus: 'ACKNOWLEDGED' });
    expect(new Date(acknowledgedAt as string).toISOString()).toBe(acknowledgedAt);
    expect(hashOf(body)).toBe(made.integrityHash);
    expect(await acknowledge(partner, date)).toMatchObject(failed(409, 'KS-4302'));
    expect(await dispute(partner, date)).toMatchObject(failed(409, 'KS-4302'));
    expect(await make(partner, date)).toMatchObject(failed(409, 'KS-4304'));
    expect((await read(partner, date)).body).toEqual(body);
    for (const change of [
      `status = 'GENERATED', acknowledged_at = NULL`,
      `report = '{}'`,
      'acknowledged_at = now()',
    ]) {
      const tampered = sql.unsafe(`UPDATE settlement_reports SET ${change} WHERE status = 'ACKNOWLEDGED'`);
      await expect(tampered, change).rejects.toThrow('does not change');
    }
    await expect(sql`DELETE FROM settlement_reports`).rejects.toThrow('are kept');
    await expect(sql`TRUNCATE settlement_reports`).rejects.toThrow('are kept');
  });

  test('lets an operator revise a DISPUTED settlement report, keeps the old revision, and accepts the new one', async () => {
    const date = shift(today, -2);
    const { body: made } = await make(partner, date);
    await expect(sql`UPDATE settlement_reports SET report = '{}' WHERE status = 'GENERATED'`).rejects.toThrow(
      'only the status',
    );
    const { status, body } = await dispute(partner, date, 'Line 1\nÜ 🎰');
    expect(status).toBe(200);
    expect(body).toEqual({
      ...made,
      reportStatus: 'DISPUTED',
      disputeReason: 'Line 1\nÜ 🎰',
      disputedAt: expect.any(String),
    });
    expect(await dispute(partner, date)).toMatchObject(failed(409, 'KS-4303'));
    expect(await acknowledge(partner, date)).toMatchObject(failed(409, 'KS-4303'));
    const second = await make(partner, date, 'counted');
    expect(second).toMatchObject({ status: 201, body: { reportStatus: 'GENERATED', revision: 2 } });
    expect(second.body.integrityHash).toBe(hashOf(second.body));
    expect((await read(partner, `${date}?revision=1`)).body).toEqual(body);
    expect((await read(partner, `${date}?revision=2`)).body).toEqual(second.body);
    expect(await read(partner, `${date}?revision=3`)).toMatchObject(failed(404, 'KS-4301'));
    // A partner that has read only the first revision has not seen the second, so its request must name the
    // newest revision.
    expect(await acknowledge(partner, date, '?revision=1')).toMatchObject(failed(409, 'KS-4304'));
    expect(await dispute(partner, date, 'x', '?revision=1')).toMatchObject(failed(409, 'KS-4304'));
    expect(await acknowledge(partner, date, '?revision=3')).toMatchObject(failed(404, 'KS-4301'));
    expect((await acknowledge(partner, date, '?revision=2')).body).toMatchObject({
      revision: 2,
      reportStatus: 'ACKNOWLEDGED',
    });
    const log = await client.operator<{ entries: Json[] }>('GET', '/audit-log?limit=100');
    const entries = log.body.entries.filter(
      (entry) => entry.subject === `settlement:${partner.partnerId}:${date}`,
    );
    const first = { revision: 1, integrityHash: made.integrityHash };
    const next = { revision: 2, integrityHash: second.body.integrityHash };
    const disputed = { ...first, reportStatus: 'DISPUTED', disputeReason: 'Line 1\nÜ 🎰' };
    expect(
      entries.reverse().map(({ actor, action, before, after }) => [actor, action, before, after]),
    ).toEqual([
      ['operator', 'settlement.generate', null, { ...first, reportStatus: 'GENERATED' }],
      [
        `partner:${partner.partnerId}`,
        'settlement.dispute',
        { ...first, reportStatus: 'GENERATED' },
        disputed,
      ],
      [
        'operator',
        'settlement.generate',
        disputed,
        { ...next, reportStatus: 'GENERATED', reason: 'counted' },
      ],
      [
        `partner:${partner.partnerId}`,
        'settlement.acknowledge',
        { ...next, reportStatus: 'GENERATED' },
        { ...next, reportStatus: 'ACKNOWLEDGED' },
      ],
    ]);
  });

  test('acknowledges or disputes a settlement report only if the body names its newest revision', async () => {
    const date = shift(today, -4);
    await make(partner, date);
    await make(partner, date);
    for (const revision of [1, 3, 9])
      for (const what of ['acknowledge', 'dispute'])
        expect(await judge(partner, `${date}/${what}`, { revision, reason: 'r' })).toMatchObject(
          failed(409, 'KS-4304'),
        );
    expect((await judge(partner, `${date}/acknowledge`, { revision: 2, unknown: 1 })).body).toMatchObject({
      revision: 2,
      reportStatus: 'ACKNOWLEDGED',
    });
  });

  test('reports today as PENDING from the committed entries, and lets the partner acknowledge or dispute the report', async () => {
    const { body } = await make(partner, today);
    expect(body).toMatchObject({ reportStatus: 'PENDING', revision: 1 });
    expect(BigInt(body.ledgerTo as string)).toBeLessThan(BigInt(startOf(shift(today, 1))) << 22n);
    expect((await make(partner, today)).body).toMatchObject({ reportStatus: 'PENDING', revision: 2 });
    expect((await dispute(partner, today)).body).toMatchObject({ reportStatus: 'DISPUTED', revision: 2 });
    expect((await make(partner, today, 'r')).body).toMatchObject({ reportStatus: 'PENDING', revision: 3 });
    expect((await acknowledge(partner, today)).body).toMatchObject({ reportStatus: 'ACKNOWLEDGED' });
    expect(await make(partner, today)).toMatchObject(failed(409, 'KS-4304'));
  });

  test('accepts one of many concurrent decisions about a settlement report', async () => {
    const date = shift(today, -3);
    await make(partner, date);
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => (i % 2 ? acknowledge(partner, date) : dispute(partner, date))),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(7);
  });

  test('links each settlement report to the one of the nearest earlier day, as it was at that time', async () => {
    const of = (days: number): string => shift(today, days);
    const first = (await make(partner, of(-9))).body;
    const seventh = (await make(partner, of(-7))).body;
    expect(first.previousHash).toBeNull();
    expect(seventh.previousHash).toBe(first.integrityHash);
    const eighth = (await make(partner, of(-8))).body;
    expect(eighth.previousHash).toBe(first.integrityHash);
    const again = (await make(partner, of(-8))).body;
    expect(again.previousHash).toBe(first.integrityHash);
    expect((await make(partner, of(-7))).body.previousHash).toBe(again.integrityHash);
    expect((await read(partner, `${of(-7)}?revision=1`)).body).toEqual(seventh);
    for (const report of [first, eighth, again]) expect(report.integrityHash).toBe(hashOf(report));
  });

  test('lists the newest settlement report of each day, newest day first, in pages', async () => {
    const list = (query: string) =>
      client.partner<{ reports: Report[]; total: number }>('GET', `/settlements${query}`, partner.key);
    const { body } = await list('');
    expect(body).toMatchObject({ page: 1, limit: 20, total: body.reports.length });
    const dates = body.reports.map(({ reportDate }) => reportDate);
    expect(dates).toEqual([...new Set(dates)].sort().reverse());
    for (const report of body.reports) expect((await read(partner, report.reportDate)).body).toEqual(report);
    const second = await list('?page=2&limit=2');
    expect(second.body).toEqual({ reports: body.reports.slice(2, 4), page: 2, limit: 2, total: body.total });
    expect((await list('?page=1000000000&limit=100')).body).toMatchObject({ reports: [], total: body.total });
  });
});

describe('invalid settlement requests', () => {
  test('answers KS-4214 to a settlement of a partner without games', async () => {
    expect(await make(await client.newPartner(), today)).toMatchObject(failed(404, 'KS-4214'));
  });
});

describe('settlement reports as CSV', () => {
  /** Splits a line of RFC 4180 into its fields. */
  const fieldsOf = (line: string): string[] =>
    [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(
      ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
    );

  test("exports a settlement report's games as CSV, with names that no spreadsheet runs as formulas", async () => {
    const partner = await settled(1);
    const date = shift(today, -1);
    const names = [
      'Plain',
      'Two, "quoted"',
      '=HYPERLINK("http://x")',
      '+1',
      '-1',
      '@SUM(A1)',
      '  =1',
      '＝1',
      'Ü 🎰',
    ];
    const { body } = await client.partner<{ parSheets: { parSheetId: number }[] }>(
      'GET',
      '/par-sheets',
      partner.key,
    );
    const { parSheetId } = body.parSheets[0]!;
    for (const [i, displayName] of names.entries()) {
      const game = { parSheetId, displayName, configName: `CSV_${i}` };
      expect((await client.partner('POST', '/games', partner.key, game)).status).toBe(201);
    }
    await sql`UPDATE games SET created_at = ${`${date}T00:00:00Z`} WHERE partner_id = ${partner.partnerId}`;
    // This game paid out more than it took, so its GGR is negative and must remain a number.
    await sql`INSERT INTO game_days VALUES (${partner.gameId}, ${date}, ${partner.partnerId}, 3, 750000, 1000001)`;
    const { body: report } = await make(partner, date);
    const csv = (of: string) =>
      client.request('GET', `/api/partner/v1/settlements/${of}`, {
        key: partner.key,
        headers: { Accept: 'text/csv' },
      });
    const answer = await csv(date);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe(CSV_TYPE);
    expect(answer.text.endsWith('\r\n')).toBe(true);
    const [head, ...lines] = answer.text.slice(0, -2).split('\r\n');
    const columns = head!.split(',');
    expect(columns).toEqual(Object.keys(report.gameBreakdown[0]!));
    const rows = lines.map((line) =>
      Object.fromEntries(fieldsOf(line).map((field, i) => [columns[i], field])),
    );
    const asTheyAre = report.gameBreakdown.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [name, value === null ? '' : `${value}`]),
      ),
    );
    expect(rows).toEqual(asTheyAre);
    expect(rows[0]).toMatchObject({ ggrUsd: '-0.250001', actualRtp: '1.333335' });
    const [, ...escaped] = (await csv(`${date}?escapeFormulas=true`)).text.slice(0, -2).split('\r\n');
    const shown = escaped.map((line) => fieldsOf(line)[2]!);
    expect(shown).toEqual(
      asTheyAre.map(({ displayName }, i) => (i >= 3 && i <= 8 ? `'${displayName}` : displayName)),
    );
    for (const text of shown) expect(text).not.toMatch(/^\s*[=+\-@＝]/);
    expect(await csv('2001-01-01')).toMatchObject(failed(404, 'KS-4301'));
  });

  test('exports a settlement report as CSV if the Accept header prefers CSV to JSON', () => {
    for (const accept of [
      'text/csv',
      'Text/CSV',
      'text/*',
      'text/csv, */*;q=0.1',
      'application/json;q=0.5,text/csv',
    ]) {
      expect(prefersCsv(accept), accept).toBe(true);
    }
    for (const accept of [
      '',
      '*/*',
      'application/json',
      'application/json, text/plain, */*',
      'text/csv;q=0',
      'text/csv;q=0.5, application/json',
    ]) {
      expect(prefersCsv(accept), accept).toBe(false);
    }
  });
});
