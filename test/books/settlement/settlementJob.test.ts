/**
 * Tests the scheduled settlement reports: due times, completeness, missed days, several workers, and
 * failures.
 */
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../../src/app/config.js';
import { dueDay } from '../../../src/books/settlement/schedule.js';
import type { OnReport } from '../../../src/books/settlement/settlements.store.js';
import { firstIdAt } from '../../../src/domain/entryId.js';
import { OUTBOX } from '../../../src/engine/redis/cellRecords.js';
import { cellKey, outboxKey } from '../../../src/engine/redis/keys.js';
import { world } from '../../setup/world.js';
import { startService } from '../../support/service.js';
import {
  bookedInto,
  DAY_MS,
  dayAt,
  ENTRIES_AHEAD,
  hashOf,
  longAgo,
  madeOf,
  oldPartner,
  runIntoMoment,
  settlementWorker,
  shift,
  startOf,
  type TestWorker,
} from '../../support/settlement.js';
import { until } from '../../support/wait.js';

type Service = Awaited<ReturnType<typeof startService>>;

const { stores, redis, sql } = world();
let today: string;
let never: string;
const workers: TestWorker[] = [];

beforeAll(async () => {
  today = dayAt(Date.now());
  never = longAgo(today);
});

afterEach(async () => {
  await Promise.all(workers.splice(0).map((each) => each.end()));
});

async function worker(...more: [Parameters<typeof settlementWorker>[2]?]): Promise<TestWorker> {
  const made = await settlementWorker(stores, today, ...more);
  workers.push(made);
  return made;
}
const settled = (service: Service, daysOld: number) => oldPartner(service, sql, today, daysOld);
const made = (partnerId: number) => madeOf(sql, partnerId);

describe('the schedule of settlement reports', () => {
  test.each([
    ['0 2 * * *', '2026-03-10T01:59:59.999Z', '2026-03-08'],
    ['0 2 * * *', '2026-03-10T02:00:00.000Z', '2026-03-09'],
    ['0 2 * * *', '2026-03-10T02:00:00.001Z', '2026-03-09'],
    ['0 2 * * *', '2026-03-10T23:59:59.999Z', '2026-03-09'],
    ['0 2 * * *', '2026-01-01T02:00:00.000Z', '2025-12-31'],
    ['0 0 * * *', '2026-03-01T00:00:00.000Z', '2026-02-28'],
    ['* * * * *', '2024-03-01T00:00:30.000Z', '2024-02-29'],
    ['0 2 * * 1', '2026-03-12T12:00:00.000Z', '2026-03-08'],
  ])('computes the newest day that is due by the schedule %s at %s as %s', (cron, now, day) => {
    expect(dueDay(cron, new Date(now))).toBe(day);
  });

  test('refuses a SETTLEMENT_CRON that is invalid or never due, and names the variable', () => {
    for (const SETTLEMENT_CRON of [
      '',
      'x',
      '60 2 * * *',
      '0 0 2 * * *',
      '0 2 30 2 *',
      '2026-01-01T00:00:00',
    ]) {
      expect(() => readConfig({ SETTLEMENT_CRON }), SETTLEMENT_CRON).toThrow('SETTLEMENT_CRON');
    }
    expect(readConfig({}).SETTLEMENT_CRON).toBe('0 2 * * *');
    expect(readConfig({ SETTLEMENT_CRON: '30 4 * * *' }).SETTLEMENT_CRON).toBe('30 4 * * *');
  });
});

describe('daily settlement reports', () => {
  test('makes at its start the settlement reports of three days on which the service was down', async () => {
    const first = await startService(stores, { SETTLEMENT_CRON: never });
    const partner = await settled(first, 3);
    const spin = { gameId: partner.gameId, playerId: 'p', wagerUsd: 0.25 };
    expect((await first.spin(partner.key, spin)).status).toBe(200);
    await first.stop();
    expect(await made(partner.partnerId)).toEqual([]);

    const second = await startService(stores, { SETTLEMENT_CRON: '* * * * *' });
    try {
      await until(async () => (await made(partner.partnerId)).length === 3, 'three days are settled');
      const expected = [-3, -2, -1].map((days) => `${shift(today, days)} 1 GENERATED`);
      expect(await made(partner.partnerId)).toEqual(expected);
      let metrics = '';
      await until(async () => {
        metrics = await (await fetch(`http://127.0.0.1:${second.running.metricsPort}/metrics`)).text();
        return metrics.includes('spindle_settlement_reports_total{status="GENERATED"} 3');
      }, 'three reports are counted');
      expect(metrics).toMatch(/spindle_settlement_overdue_seconds 0\n/);
      expect(metrics).toContain('spindle_settlement_faults_total 0');
    } finally {
      await second.stop();
    }
  });

  test('makes each daily settlement report once, however many workers run at the same time', async () => {
    const service = await startService(stores, { SETTLEMENT_CRON: never });
    try {
      const partners = [];
      for (let i = 0; i < 3; i++) partners.push(await settled(service, 5));
      const ready: string[] = [];
      const onReport: OnReport = async (tx, report) => {
        await tx`SELECT 1`;
        ready.push(`${report.partnerId} ${report.report.reportDate}`);
      };
      const four = await Promise.all(Array.from({ length: 4 }, () => worker({ onReport })));
      await Promise.all(four.map(({ job }) => job.turn()));
      for (const { partnerId } of partners) {
        expect(await made(partnerId)).toEqual(
          [-5, -4, -3, -2, -1].map((days) => `${shift(today, days)} 1 GENERATED`),
        );
      }
      expect(new Set(ready).size).toBe(ready.length);
      expect(ready.length).toBe(15);
      // A second execution of the job makes no further reports.
      await Promise.all((await Promise.all([worker(), worker()])).map(({ job }) => job.turn()));
      for (const { partnerId } of partners) expect(await made(partnerId)).toHaveLength(5);
    } finally {
      await service.stop();
    }
  });

  test('leaves nothing of a failed settlement report behind, makes the other reports, and retries', async () => {
    const service = await startService(stores, { SETTLEMENT_CRON: never });
    try {
      const partner = await settled(service, 2);
      const [{ logged }] = (await sql`SELECT count(*)::int AS logged FROM audit_log`) as unknown as [
        { logged: number },
      ];
      const faults: unknown[] = [];
      const { job } = await worker({
        onReport: async (_tx, { report }) => {
          if (report.reportDate === shift(today, -2) && faults.length === 0) throw new Error('no event');
        },
        onFailed: ({ error, date }) => faults.push(`${error} ${date}`),
      });
      await job.turn();
      expect(faults).toEqual([`Error: no event ${shift(today, -2)}`]);
      expect(await made(partner.partnerId)).toEqual([`${shift(today, -1)} 1 GENERATED`]);
      const [{ now }] = (await sql`SELECT count(*)::int AS now FROM audit_log`) as unknown as [
        { now: number },
      ];
      expect(now).toBe(logged + 1);
      expect(job.overdueSeconds).toBe((DAY_MS + 2 * 3_600_000) / 1000);
      await job.turn();
      expect(await made(partner.partnerId)).toEqual([
        `${shift(today, -1)} 1 GENERATED`,
        `${shift(today, -2)} 1 GENERATED`,
      ]);
      expect(job.overdueSeconds).toBe(0);
    } finally {
      await service.stop();
    }
  });
});

describe('completeness of a settlement day', () => {
  test('makes one PENDING settlement report for an incomplete day, and a complete one once the day is complete', async () => {
    const worked = await startService(stores, { SETTLEMENT_CRON: never });
    await worked.stop();
    const front = await startService(stores, { ROLES: 'http' });
    try {
      const { partnerId } = await front.newPartner();
      const [row] = await sql`
        UPDATE partners SET created_at = ${`${shift(today, -2)}T12:00:00Z`} WHERE partner_id = ${partnerId} RETURNING cell`;
      const key = cellKey(row!.cell as number);
      const token = (await redis.hget(key, 'epoch'))!;
      await redis.hdel(key, 'epoch');
      const { job } = await worker();
      const pending = [-2, -1].map((days) => `${shift(today, days)} 1 PENDING`);
      for (let turn = 0; turn < 3; turn++) {
        await job.turn();
        expect(await made(partnerId)).toEqual(pending);
        expect(job.overdueSeconds).toBe((DAY_MS + 2 * 3_600_000) / 1000);
      }
      await redis.hset(key, 'epoch', token);
      const complete = [-2, -1].map((days) => `${shift(today, days)} 2 GENERATED`);
      for (let turn = 0; turn < 2; turn++) {
        await job.turn();
        expect(await made(partnerId)).toEqual([...pending, ...complete]);
        expect(job.overdueSeconds).toBe(0);
      }
    } finally {
      await front.stop();
    }
  });

  test('completes a day whose PENDING report was disputed, and keeps the dispute with the old revision', async () => {
    const worked = await startService(stores, { SETTLEMENT_CRON: never });
    const partner = await settled(worked, 1);
    await worked.stop();
    const front = await startService(stores, { ROLES: 'http' });
    try {
      const key = cellKey(partner.cell);
      const token = (await redis.hget(key, 'epoch'))!;
      await redis.hdel(key, 'epoch');
      const { job } = await worker();
      await job.turn();
      await sql`UPDATE settlement_reports SET status = 'DISPUTED', dispute_reason = 'too early', disputed_at = now()
        WHERE partner_id = ${partner.partnerId}`;
      await job.turn();
      expect(await made(partner.partnerId)).toEqual([`${shift(today, -1)} 1 DISPUTED`]);
      await redis.hset(key, 'epoch', token);
      for (let turn = 0; turn < 2; turn++) await job.turn();
      expect(await made(partner.partnerId)).toEqual(
        [1, 2].map(
          (revision) => `${shift(today, -1)} ${revision} ${['DISPUTED', 'GENERATED'][revision - 1]}`,
        ),
      );
      // The dispute stays open until an operator answers it.
      const open = async () => (await front.operator('GET', '/settlements?status=DISPUTED')).body.total;
      expect(await open()).toBe(1);
      const path = `/partners/${partner.partnerId}/settlements/${shift(today, -1)}`;
      expect((await front.operator('POST', path)).status).toBe(201);
      expect(await open()).toBe(1);
      expect((await front.operator('POST', `${path}?reason=complete+now`)).status).toBe(201);
      expect(await open()).toBe(0);
    } finally {
      await front.stop();
    }
  });

  test('a settlement day is complete only if its Redis is the one that was prepared, and has no uncommitted entry', async () => {
    const service = await startService(stores, { SETTLEMENT_CRON: never });
    const partner = await settled(service, 1);
    const { cell, partnerId } = partner;
    const date = shift(today, -1);
    const { settlements } = await worker();
    /**
     * Makes the first report of the day and returns its status. Existing reports are deleted before, because
     * a day that was complete once would stay complete.
     */
    const status = async (): Promise<string> => {
      await sql.begin(async (tx) => {
        // A trigger forbids deleting a report, so this test disables triggers.
        await tx`SET LOCAL session_replication_role = replica`;
        await tx`DELETE FROM settlement_reports WHERE partner_id = ${partnerId}`;
      });
      return (await settlements.makeNow(partnerId, date, 'test')).status;
    };
    expect(await status()).toBe('GENERATED');
    // The entries are added while no worker commits them.
    await service.stop();
    const front = await startService(stores, { ROLES: 'http' });
    try {
      expect(await status()).toBe('GENERATED');
      const token = (await redis.hget(cellKey(cell), 'epoch'))!;
      for (const wrong of [`${token}x`, token.replace(/:\d+:/, ':99:'), '']) {
        await redis.hset(cellKey(cell), 'epoch', wrong);
        expect(await status(), wrong).toBe('PENDING');
      }
      await redis.hdel(cellKey(cell), 'epoch');
      expect(await status()).toBe('PENDING');
      await redis.hset(cellKey(cell), 'epoch', token);
      expect(await status()).toBe('GENERATED');
      // An uncommitted entry of today does not make yesterday incomplete.
      const spin = { gameId: partner.gameId, playerId: 'p', wagerUsd: 0.25 };
      expect((await front.spin(partner.key, spin)).status).toBe(200);
      expect(await redis.xlen(outboxKey(cell))).toBe(1);
      expect(await status()).toBe('GENERATED');
      // The same batch is written to the outbox again, but its first entry now appears to be dealt in the
      // last millisecond of yesterday.
      const [[, fields]] = (await redis.xrangeBuffer(outboxKey(cell), '-', '+')) as [[Buffer, Buffer[]]];
      fields[1]!.writeBigUInt64LE(firstIdAt(startOf(today)) - 1n, OUTBOX.id);
      await redis.del(outboxKey(cell));
      await redis.xadd(outboxKey(cell), `${startOf(today)}-1`, ...fields);
      expect(await status()).toBe('PENDING');
      await redis.del(outboxKey(cell));
      expect(await status()).toBe('GENERATED');
    } finally {
      await front.stop();
    }
  });

  test('a complete day stays complete if Redis is down, and a PENDING report of an older version is completed', async () => {
    const worked = await startService(stores, { SETTLEMENT_CRON: never });
    const { partnerId } = await settled(worked, 1);
    await worked.stop();
    const front = await startService(stores, { ROLES: 'http' });
    try {
      const day = shift(today, -1);
      const { job, settlements } = await worker();
      await job.turn();
      expect(await made(partnerId)).toEqual([`${day} 1 GENERATED`]);
      const [row] = await sql`SELECT cell FROM partners WHERE partner_id = ${partnerId}`;
      const key = cellKey(row!.cell as number);
      const token = (await redis.hget(key, 'epoch'))!;
      await redis.hdel(key, 'epoch');
      await settlements.makeNow(partnerId, day, 'operator');
      expect((await made(partnerId)).at(-1)).toBe(`${day} 2 GENERATED`);
      await sql`
        INSERT INTO settlement_reports (partner_id, report_date, revision, status, is_complete, report, integrity_hash)
        SELECT partner_id, report_date, 3, 'PENDING', false, jsonb_set(report::jsonb, '{revision}', '3'), integrity_hash
        FROM settlement_reports WHERE partner_id = ${partnerId} AND revision = 2`;
      const { job: next } = await worker();
      for (let turn = 0; turn < 2; turn++) await next.turn();
      expect((await made(partnerId)).slice(2)).toEqual([`${day} 3 PENDING`, `${day} 4 GENERATED`]);
      await redis.hset(key, 'epoch', token);
    } finally {
      await front.stop();
    }
  });

  test.each(['played', 'quiet'])(
    'completes a settlement day once all clocks plus the allowed skew have passed it, for a partner that is %s',
    async (how) => {
      const service = await startService(stores, { SETTLEMENT_CRON: never });
      try {
        const { partnerId, key, gameId, cell } = await settled(service, 1);
        const day = shift(today, -1);
        if (how === 'played') {
          await service.spin(key, { gameId, playerId: 'p', wagerUsd: 0.25 });
          await bookedInto(sql, cell, today);
        }
        const clockSkewMaxMs = 10_000;
        const madeAt = async (afterMs: number): Promise<string> => {
          const { settlements } = await worker({ clockSkewMaxMs, now: () => startOf(today) + afterMs });
          return (await settlements.makeNow(partnerId, day, 'test')).status;
        };
        expect(await madeAt(5000)).toBe('PENDING');
        expect(await madeAt(clockSkewMaxMs - 1)).toBe('PENDING');
        expect(await madeAt(clockSkewMaxMs)).toBe('GENERATED');
      } finally {
        await service.stop();
      }
    },
  );
});

test('previews the report of today in the sandbox without storing it, and makes the report itself by the schedule', async () => {
  const service = await startService(stores, { ...ENTRIES_AHEAD, SETTLEMENT_CRON: never });
  try {
    const partner = await settled(service, 0);
    const spin = { gameId: partner.gameId, playerId: 'p', wagerUsd: 0.25 };
    for (let i = 0; i < 3; i++) expect((await service.spin(partner.key, spin)).status).toBe(200);
    let preview: Record<string, unknown> = {};
    await until(async () => {
      preview = (await service.partner('GET', '/sandbox/settlement-preview', partner.key)).body;
      return preview.totalSpins === 3;
    }, 'the preview has the spins');
    expect(preview).toMatchObject({
      reportDate: today,
      reportStatus: 'PREVIEW',
      revision: 0,
      totalWageredUsd: 0.75,
      previousHash: null,
    });
    expect(hashOf(preview)).toBe(preview.integrityHash);
    expect((await service.partner('GET', `/settlements/${today}`, partner.key)).status).toBe(404);
    expect((await service.partner('GET', '/settlements', partner.key)).body).toMatchObject({ total: 0 });

    const tomorrow = shift(today, 1);
    await runIntoMoment(redis, partner.cell, startOf(tomorrow), 0);
    expect((await service.spin(partner.key, spin)).status).toBe(200);
    await bookedInto(sql, partner.cell, tomorrow);
    workers.push(await settlementWorker(stores, tomorrow));
    await workers[0]!.job.turn();
    expect(await made(partner.partnerId)).toEqual([`${today} 1 GENERATED`]);
    const report = await service.partner('GET', `/settlements/${today}`, partner.key);
    expect(report.body).toMatchObject({
      totalSpins: 3,
      gameBreakdown: preview.gameBreakdown,
      previousHash: null,
    });

    const production = await service.newPartner({ environment: 'production' });
    const refused = await service.partner('GET', '/sandbox/settlement-preview', production.key);
    expect(refused).toMatchObject({ status: 404, body: { errorCode: 'KS-4215' } });
  } finally {
    await service.stop();
  }
});
