/**
 * Functions that test settlement without waiting for days: entry ids never decrease, so a test can move the
 * ids of a cell ahead of the clock.
 */
import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import type postgres from 'postgres';
import { openStore } from '../../src/api/api.store.js';
import { RtpJudging } from '../../src/books/returns/rtpJudging.js';
import { SettlementJob } from '../../src/books/settlement/job.js';
import { SettlementReports } from '../../src/books/settlement/settlementReports.js';
import type { OnReport } from '../../src/books/settlement/settlements.store.js';
import { firstIdAt } from '../../src/domain/entryId.js';
import { EventEmitter, type Events } from '../../src/engine/processEvents.js';
import { cellKey } from '../../src/engine/redis/keys.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Client, TestPartner } from './client.js';
import { openNodes } from './redis.js';
import { parSheet } from './sheets.js';
import type { TestStores } from './stores.js';
import { until } from './wait.js';

type Json = Record<string, unknown>;

export const DAY_MS = 86_400_000;
/** Number of entries that a cell can have in one millisecond. */
const SEQUENCES = 16_384;

export const dayAt = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
export const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);
/** Returns the day that is a number of days after another day, or before it if the number is negative. */
export const shift = (day: string, days: number): string => dayAt(startOf(day) + days * DAY_MS);

/**
 * Returns a cron expression whose latest time was about half a year ago, so that no report is due during a
 * test.
 */
export const longAgo = (today: string): string => `0 0 1 ${((Number(today.slice(5, 7)) + 5) % 12) + 1} *`;

export interface SettledPartner extends TestPartner {
  readonly gameId: number;
  readonly cell: number;
}

/** Creates a partner with a game, both with a creation date that is a number of days before a day. */
export async function oldPartner(
  client: Client,
  sql: postgres.Sql,
  today: string,
  daysOld: number,
): Promise<SettledPartner> {
  const partner = await client.newPartner();
  const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
  const [row] = await sql`
    UPDATE partners SET created_at = ${`${shift(today, -daysOld)}T12:00:00Z`}
    WHERE partner_id = ${partner.partnerId} RETURNING cell`;
  return { ...partner, gameId, cell: row!.cell as number };
}

export interface TestWorker {
  readonly job: SettlementJob;
  readonly settlements: SettlementReports;
  end(): Promise<void>;
}

/**
 * Creates the settlement of a worker with separate connections and a clock at 02:00 of a day. Failures are
 * thrown.
 */
export async function settlementWorker(
  stores: TestStores,
  date: string,
  more: {
    onReport?: OnReport;
    onFailed?: (failed: Events['SettlementFailed']) => void;
    /** The clock, by default 02:00 of the day. */
    now?: () => number;
    /** Allowed clock skew in ms; the default is the skew in {@link ENTRIES_AHEAD}. */
    clockSkewMaxMs?: number;
  } = {},
): Promise<TestWorker> {
  const redis = await openNodes(stores.redisUrl);
  const sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
  const fail = (error: unknown): never => {
    throw error;
  };
  const events = new EventEmitter(fail);
  events.on('TaskFailed', ({ error }) => fail(error));
  events.on('SettlementFailed', more.onFailed ?? (({ error }) => fail(error)));
  const settlements = new SettlementReports({
    store: openStore(sql),
    nodes: redis.nodes,
    now: () => new Date(more.now?.() ?? startOf(date) + 2 * 3_600_000),
    clocks: { skewMaxMs: more.clockSkewMaxMs ?? Number(ENTRIES_AHEAD.CLOCK_SKEW_MAX_S) * 1000 },
    events,
    ...(more.onReport === undefined ? {} : { onReport: more.onReport }),
  });
  return {
    job: new SettlementJob(settlements, {
      cron: '0 2 * * *',
      everyMs: 60_000,
      events,
      judging: new RtpJudging(openStore(sql)),
    }),
    settlements,
    async end() {
      redis.close();
      await sql.end();
    },
  };
}

export interface MadeReport {
  readonly date: string;
  readonly revision: number;
  readonly status: string;
  readonly report: Json;
}

/** Returns a partner's reports in the order of their creation. */
export async function reportsOf(sql: postgres.Sql, partnerId: number): Promise<MadeReport[]> {
  const rows = await sql`
    SELECT report_date::text AS date, revision, status, report FROM settlement_reports
    WHERE partner_id = ${partnerId} ORDER BY report_id`;
  return [...rows] as unknown as MadeReport[];
}

/** Returns the date, revision and status of each report as text. */
export const madeOf = async (sql: postgres.Sql, partnerId: number): Promise<string[]> =>
  (await reportsOf(sql, partnerId)).map(({ date, revision, status }) => `${date} ${revision} ${status}`);

/** Environment of a service whose entries a test moves ahead of the clock. */
export const ENTRIES_AHEAD = { CLOCK_SKEW_MAX_S: '31536000' };

/**
 * Moves the ledger entries of a cell to a time: a number of next entries fall into the last millisecond
 * before it, and later entries come after it.
 */
export async function runIntoMoment(redis: Redis, cell: number, ms: number, entries: number): Promise<void> {
  const last = (await redis.hgetBuffer(cellKey(cell), 'last'))!;
  last.writeUIntLE(ms - 1, 0, 6);
  last.writeUInt16LE(SEQUENCES - 1 - entries, 6);
  await redis.hset(cellKey(cell), 'last', last);
}

/** Waits until a cell has a committed entry of a day or of a later day. */
export async function bookedInto(sql: postgres.Sql, cell: number, day: string): Promise<void> {
  await until(async () => {
    const [row] = await sql`SELECT cursor_id >= ${String(firstIdAt(startOf(day)))}::bigint AS is_there
      FROM cells WHERE cell = ${cell}`;
    return row!.is_there as boolean;
  }, `the ledger has come to ${day}`);
}

/**
 * Implements RFC 8785 independently of the service, with ECMAScript's numbers and strings, and names in
 * UTF-16 order.
 */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical((value as Json)[name])}`).join(',')}}`;
}

/** Computes the integrityHash of a received report, as any partner can. */
export function hashOf(report: Json): string {
  const { integrityHash, reportStatus, acknowledgedAt, disputedAt, disputeReason, ...hashed } = report;
  return createHash('sha256').update(canonical(hashed)).digest('hex');
}

/** Converts a decimal amount of JSON to micro-USD. */
export function microsOf(usd: unknown): bigint {
  const [whole = '0', fraction = ''] = String(usd).replace('-', '').split('.');
  const micros = BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0'));
  return String(usd).startsWith('-') ? -micros : micros;
}
