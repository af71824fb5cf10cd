/**
 * Tests that days of the ledger can be archived, verified and dropped. The remaining data stays exact, and
 * every change to an archive is reported.
 */
import { copyFile, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { archiveDay } from '../../../src/books/archive/archiveDay.js';
import { archivedRound } from '../../../src/books/archive/archivedRound.js';
import { COLUMNS } from '../../../src/books/archive/columns.js';
import { dropDay } from '../../../src/books/archive/dropDay.js';
import { idsOfDay, LedgerDays } from '../../../src/books/archive/ledgerDays.store.js';
import { readGroups } from '../../../src/books/archive/parquetFile.js';
import { archiveTotals, checkArchives } from '../../../src/books/archive/readArchive.js';
import { audit } from '../../../src/books/audit/audit.js';
import { verifySettlements } from '../../../src/books/settlement/verify.js';
import { recover } from '../../../src/cli/recover.js';
import { ARCHIVE_FILES, fileName, MANIFEST, manifestText, sha256 } from '../../../src/domain/ledgerDay.js';
import { SpinIds } from '../../../src/domain/spinId.js';
import { installation } from '../../../src/engine/recovery/installation.store.js';
import { writeRun } from '../../../src/engine/requestIds/requestRuns.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { freshStores } from '../../setup/freshStores.js';
import { type Client, OPERATOR_KEY } from '../../support/client.js';
import { docCode } from '../../support/docBlocks.js';
import { openNodes } from '../../support/redis.js';
import { deal, dealUntil, newTable, playOut } from '../../support/rounds.js';
import { startService } from '../../support/service.js';
import {
  bookedInto,
  dayAt,
  ENTRIES_AHEAD,
  longAgo,
  microsOf,
  oldPartner,
  reportsOf,
  runIntoMoment,
  type SettledPartner,
  settlementWorker,
  shift,
  startOf,
} from '../../support/settlement.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

/** Number of complete days with spins, starting today. Their ledger entries have times in the future. */
const DAYS = 5;
const KEEP_DAYS = 3;
const PLAYERS = ['ann', 'bob', 'cy'];

let stores: TestStores;
let directory: string;
let sql: Sql;
let raw: postgres.Sql;
let partnerId: number;
let key: string;
let gameId: number;
let days: string[];
/** The day after the last complete day. The tests use it as the current day. */
let today: string;
/**
 * Adapts an SQL statement of docs/archive.md to a Postgres table that holds the rows of the archive files.
 */
const inPostgres = (statement: string): string =>
  statement.replace(/read_parquet\('\/archive\/[^/]+\/ledger\.parquet'\)/, 'archived_ledger');

/** Loads the archived entries of a day into a Postgres table. */
async function loadArchived(day: string): Promise<void> {
  const archived: Record<string, string | null>[] = [];
  const columns = COLUMNS.ledger.map(({ name }) => name);
  const text = (value: unknown): string | null => (value === null ? null : String(value));
  await readGroups(join(directory, day, 'ledger.parquet'), columns, (group, rows) => {
    for (let i = 0; i < rows; i++)
      archived.push(Object.fromEntries(columns.map((name) => [name, text(group.get(name)![i])])));
  });
  await raw`
    INSERT INTO archived_ledger
    SELECT * FROM json_populate_recordset(NULL::ledger, ${JSON.stringify(archived)}::text::json)`;
}

/** Ids of the spins of the first day. */
const firstDay: string[] = [];
/** The response to an adjustment on the first day. */
let adjusted: unknown;
/** A ticket and a round of the first day. */
let played: { readonly ticket: unknown; readonly roundId: string };
let other: SettledPartner;
let raffleId: number;

const adjust = (service: Client) =>
  service.operator('POST', `/partners/${partnerId}/players/ann/adjustments`, {
    amountUsd: 5,
    reason: 'goodwill',
    requestId: 'gift-1',
  });

const buyTicket = (client: Client) =>
  client.spin(other.key, { gameId: raffleId, playerId: 'dee', wagerUsd: 1, requestId: 'ticket-1' });

/**
 * Buys a ticket and plays rounds of a second partner: two rounds are completed, one of them with a second
 * stake, and one round is voided.
 */
async function playOther(client: Client): Promise<typeof played> {
  const prizes = [{ prizeName: 'Cup', prizeTier: 1, valueUsd: 5, count: 1 }];
  raffleId = await client.api.newRaffle(other.partnerId, 'kept', { ticketPriceUsd: 1, poolSize: 10, prizes });
  const tableId = await newTable(client, other.partnerId);
  const ticket = await buyTicket(client);
  expect(ticket.status).toBe(200);
  const round = await playOut(client, other.key, (await deal(client, other.key, tableId, 'dee')).body);
  const dealOpen = () => dealUntil(client, other.key, tableId, 'opener', ({ status }) => status === 'OPEN');
  expect((await playOut(client, other.key, await dealOpen())).wageredUsd).toBeGreaterThan(0.25);
  const open = await dealOpen();
  const voided = await client.operator('POST', `/rounds/${open.roundId}/void`, { reason: 'a test' });
  expect(voided.status, voided.text).toBe(200);
  return { ticket: ticket.body, roundId: round.roundId };
}

async function service<T>(run: (client: Awaited<ReturnType<typeof startService>>) => Promise<T>): Promise<T> {
  const settings = { ...ENTRIES_AHEAD, CELLS: '1', SETTLEMENT_CRON: longAgo(days[0]!) };
  const client = await startService(stores, settings);
  try {
    return await run(client);
  } finally {
    await client.stop();
  }
}

beforeAll(async () => {
  stores = await freshStores();
  directory = await mkdtemp(join(tmpdir(), 'spindle-archive-'));
  sql = connectPostgres(stores.databaseUrl, { max: 3, name: 'test', onError: () => {} });
  raw = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  const first = dayAt(Date.now());
  days = Array.from({ length: DAYS }, (_, i) => shift(first, i));
  today = shift(first, DAYS);
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  await service(async (client) => {
    const partner = await oldPartner(client, raw, first, 0);
    ({ partnerId, key, gameId } = partner);
    other = await oldPartner(client, raw, today, DAYS);
    played = await playOther(client);
    for (const [i, day] of [...days, today].entries()) {
      for (const playerId of PLAYERS.slice(0, i === 0 ? 3 : 1 + (i % 2))) {
        const spins = Array.from({ length: 15 }, (_, n) =>
          client.spin(key, { gameId, playerId, wagerUsd: 0.25, requestId: `${day}-${playerId}-${n}` }),
        );
        for (const { status, body } of await Promise.all(spins)) {
          expect(status).toBe(200);
          if (i === 0) firstDay.push((body as { spinId: string }).spinId);
        }
      }
      if (i === 0) {
        const answer = await adjust(client);
        expect(answer.status).toBe(200);
        adjusted = answer.body;
      }
      await bookedInto(raw, partner.cell, day);
      if (day !== today) await runIntoMoment(redis, partner.cell, startOf(shift(day, 1)), 0);
    }
  });
  redis.disconnect();
  const worker = await settlementWorker(stores, today);
  await worker.job.turn();
  await worker.end();
  await bindFrom(shift(today, -KEEP_DAYS));
  await handOverAll();
}, 180_000);

afterAll(async () => {
  await sql?.end();
  await raw?.end();
  await rm(directory, { recursive: true, force: true });
  await stores?.drop();
});

/**
 * Makes cells behave as if {@link today} had begun, which follows the last complete day of the ledger, and as
 * if the request ids of the given day and later days were the only ones that still bind.
 */
const bindFrom = (day: string) =>
  raw`UPDATE cells SET binding_ms = ${startOf(today)}, bound_from_id = ${String(idsOfDay(day).from)}::bigint`;

/** Releases the request ids of all days into one run of request ids. */
async function handOverAll(): Promise<void> {
  const [cell] = await sql<{ fence: bigint; handedOverId: bigint; cursorId: bigint }[]>`
    SELECT fence, handed_over_id, cursor_id FROM cells WHERE cell = 0`;
  const { fence, handedOverId: from, cursorId: to } = cell!;
  const pause = async (): Promise<void> => {};
  await writeRun(sql, [{ cell: 0, fence, from, to }], pause, () => {});
}

const archiveOf = (day: string, to = directory) =>
  archiveDay(sql, { day, directory: to, actor: 'test', today });
const dropOf = (day: string, from = directory) =>
  dropDay(sql, { day, directory: from, keepDays: KEEP_DAYS, actor: 'test', today });
const bytesOf = (day: string, to = directory): Promise<Buffer[]> =>
  Promise.all([...ARCHIVE_FILES.map(fileName), MANIFEST].map((file) => readFile(join(to, day, file))));

async function violations(): Promise<unknown[]> {
  const { nodes, close } = await openNodes(stores.redisUrl);
  try {
    const report = await audit(sql, nodes, { limit: 10, onProgress: () => {} });
    expect(report.interrupted).toBeUndefined();
    return report.checks.flatMap(({ listed }) => listed);
  } finally {
    close();
  }
}

/** Aborts an operation at one of its steps, as a crash would. */
const endAt = (wanted: string) => (step: string) => {
  if (step === wanted) throw new Error(`ended at ${step}`);
};

describe.sequential('a week of archived ledger days', () => {
  test('archives a ledger day only once its entries are committed and all older days are archived', async () => {
    const states = (await new LedgerDays(sql).list(today)).map(({ state }) => state);
    expect(states).toEqual([...days.map(() => 'BOOKED'), 'OPEN']);
    // A small day is counted exactly, not estimated.
    const listed = await new LedgerDays(sql).list(today);
    for (const { day, entries, isEstimate } of listed) {
      const [row] =
        await raw`SELECT count(*)::int AS entries FROM ${raw(`ledger_${day.replaceAll('-', '')}`)}`;
      expect({ entries, isEstimate }).toEqual({ entries: row!.entries, isEstimate: false });
      expect(entries).toBeGreaterThan(0);
    }
    await expect(archiveOf(days[1]!)).rejects.toThrow(`${days[0]} must be archived before`);
    await expect(archiveOf(today)).rejects.toThrow();
  });

  test.each(['archive.written', 'archive.read-back', 'archive.renamed', 'archive.recorded'])(
    'repeats an archive that was aborted at %s with the same bytes',
    async (step) => {
      const day = days[0]!;
      const options = { day, directory, actor: 'test', today };
      await expect(archiveDay(sql, { ...options, onFailpoint: endAt(step) })).rejects.toThrow(
        `ended at ${step}`,
      );
      await archiveOf(day);
      const bytes = await bytesOf(day);
      const again = await archiveOf(day);
      expect(again.isRepeated).toBe(true);
      expect(await bytesOf(day)).toEqual(bytes);
    },
  );

  test('writes an archive manifest with the same member names as all versions', async () => {
    const manifest = JSON.parse(await readFile(join(directory, days[0]!, MANIFEST), 'utf8'));
    expect(Object.keys(manifest)).toEqual([
      'datasetId',
      'day',
      'files',
      'fromId',
      'largeWinMicros',
      'previous',
      'reports',
      'schema',
      'toId',
      'totals',
    ]);
    expect(Object.keys(manifest.files).sort()).toEqual(['large_wins', 'ledger', 'rounds', 'voids']);
    for (const seal of Object.values<object>(manifest.files))
      expect(Object.keys(seal)).toEqual(['bytes', 'rows', 'sha256']);
    expect(Object.keys(manifest.totals[0])).toEqual([
      'creditedMicros',
      'entries',
      'gameId',
      'kind',
      'partnerId',
      'wageredMicros',
    ]);
    expect(Object.keys(manifest.reports[0])).toEqual(['integrityHash', 'partnerId', 'revision']);
  });

  test('refuses to overwrite an archive of another ledger state, and keeps the old archive if told to replace it', async () => {
    const day = days[0]!;
    const options = { day, actor: 'test', today };
    const to = await mkdtemp(join(tmpdir(), 'spindle-fuller-'));
    await cp(join(directory, day), join(to, day), { recursive: true });
    const path = join(to, day, MANIFEST);
    const manifest = JSON.parse(await readFile(path, 'utf8'));
    manifest.files.ledger.rows += 15;
    await writeFile(path, manifestText(manifest));
    const fuller = await bytesOf(day, to);
    const refused = archiveDay(sql, { ...options, directory: to });
    await expect(refused).rejects.toThrow(`with ${manifest.files.ledger.rows} entries`);
    await expect(refused).rejects.toThrow(sha256(manifestText(manifest)));
    expect(await bytesOf(day, to)).toEqual(fuller);
    expect((await readdir(join(to, day))).sort()).toEqual([...ARCHIVE_FILES.map(fileName), MANIFEST].sort());

    const { replaced } = await archiveDay(sql, { ...options, directory: to, isToReplace: true });
    expect(await bytesOf(basename(replaced!), to)).toEqual(fuller);
    expect(await bytesOf(day, to)).toEqual(await bytesOf(day));
    expect((await checkArchives(to)).faults).toEqual([]);
    await rm(to, { recursive: true });
  });

  test('refuses to write an archive next to archives of another dataset', async () => {
    const to = await mkdtemp(join(tmpdir(), 'spindle-stranger-'));
    await cp(join(directory, days[0]!), join(to, days[0]!), { recursive: true });
    const path = join(to, days[0]!, MANIFEST);
    const manifest = JSON.parse(await readFile(path, 'utf8'));
    await writeFile(path, manifestText({ ...manifest, datasetId: 'another' }));
    const options = { day: days[1]!, directory: to, actor: 'test', today, isToReplace: true };
    await expect(archiveDay(sql, options)).rejects.toThrow('dataset another');
    await rm(to, { recursive: true });
  });

  test('archives a ledger whose sums equal the settlement reports', async () => {
    for (const day of days) await archiveOf(day);
    expect((await checkArchives(directory)).faults).toEqual([]);
    for (const { date, report } of await reportsOf(raw, partnerId)) {
      let [wagered, paid, spins] = [0n, 0n, 0];
      await readGroups(
        join(directory, date, 'ledger.parquet'),
        ['kind', 'game_id', 'wager_micros', 'credit_micros'],
        (group, rows) => {
          for (let i = 0; i < rows; i++) {
            if (group.get('kind')![i] !== 1 || group.get('game_id')![i] !== gameId) continue;
            spins++;
            wagered += group.get('wager_micros')![i] as bigint;
            paid += group.get('credit_micros')![i] as bigint;
          }
        },
      );
      expect([spins, wagered, paid]).toEqual([
        report.totalSpins,
        microsOf(report.totalWageredUsd),
        microsOf(report.totalPaidOutUsd),
      ]);
    }
  });

  test('the SQL in the archive document gives the figures of the settlement reports, including blackjack', async () => {
    const [sums, ofPlayer] = docCode('docs/archive.md', 'sql').map(inPostgres);
    await raw`CREATE TEMPORARY TABLE archived_ledger (LIKE ledger)`;
    for (const day of days) await loadArchived(day);
    const rows = await raw.unsafe<Record<string, unknown>[]>(sums!);
    const found = new Map(
      rows.map(({ day, partner_id: partner, spins, wagered_usd: wagered, paid_usd: paid }) => [
        `${dayAt(Number(day))}/${partner}`,
        [spins, wagered, paid].map(Number),
      ]),
    );
    for (const each of [partnerId, other.partnerId]) {
      for (const { date, report } of await reportsOf(raw, each)) {
        const figures = [report.totalSpins, report.totalWageredUsd, report.totalPaidOutUsd].map(Number);
        expect(found.get(`${date}/${each}`) ?? [0, 0, 0]).toEqual(figures);
        found.delete(`${date}/${each}`);
      }
    }
    expect([...found]).toEqual([]);
    const kinds = await raw`SELECT DISTINCT kind FROM archived_ledger ORDER BY kind`;
    expect(kinds.map(({ kind }) => kind)).toEqual([1, 2, 3, 6, 7, 8]);
    expect(await raw.unsafe(ofPlayer!.replace('alice', 'ann'))).toHaveLength(15 * DAYS + 2);
  });

  describe('faults in a copy of the archive', () => {
    let copy: string;
    const copied = async (): Promise<string> => {
      copy = await mkdtemp(join(tmpdir(), 'spindle-copy-'));
      await cp(directory, copy, { recursive: true });
      return copy;
    };

    test.each([...ARCHIVE_FILES.map(fileName), MANIFEST])(
      'names the archive file %s in which a byte was flipped',
      async (file) => {
        const path = join(await copied(), days[1]!, file);
        const bytes = await readFile(path);
        bytes[Math.floor(bytes.length / 2)]! ^= 1;
        await writeFile(path, bytes);
        const { faults } = await checkArchives(copy);
        expect(faults).toContainEqual(
          expect.objectContaining(file === MANIFEST ? { file } : { day: days[1], file }),
        );
        await rm(copy, { recursive: true });
      },
    );

    test.each(['ledger.parquet', 'rounds.parquet', MANIFEST])(
      'names the archive file %s that is missing, and drops no day',
      async (file) => {
        await rm(join(await copied(), days[0]!, file));
        expect((await checkArchives(copy)).faults[0]).toMatchObject({ day: days[0], file });
        expect((await dropOf(days[0]!, copy)).faults).not.toEqual([]);
        expect((await new LedgerDays(sql).list(today))[0]!.state).toBe('ARCHIVED');
        await rm(copy, { recursive: true });
      },
    );

    test('detects a manifest of another day by the chain, and a changed one by the database record', async () => {
      const last = days.at(-1)!;
      const path = join(await copied(), last, MANIFEST);
      await copyFile(join(copy, days[1]!, MANIFEST), path);
      expect((await checkArchives(copy)).faults).toContainEqual(
        expect.objectContaining({ day: last, file: MANIFEST }),
      );
      const manifest = JSON.parse(await readFile(join(directory, days[0]!, MANIFEST), 'utf8'));
      manifest.reports = [];
      await writeFile(join(copy, days[0]!, MANIFEST), JSON.stringify(manifest));
      expect((await dropOf(days[0]!, copy)).faults).toContainEqual(
        expect.objectContaining({ day: days[0], file: MANIFEST }),
      );
      await rm(copy, { recursive: true });
    });
  });

  test('drops archived days oldest first, and never while they must be kept or may still bind request ids', async () => {
    expect(await dropOf(days[1]!)).toMatchObject({
      refused: expect.stringContaining('oldest day is dropped first'),
    });
    expect(await dropOf(days.at(-1)!)).toMatchObject({ refused: expect.stringContaining('must be kept') });
    await bindFrom(days[0]!);
    expect(await dropOf(days[0]!)).toMatchObject({ refused: expect.stringContaining('may still bind') });
    await bindFrom(shift(today, -KEEP_DAYS));
  });

  test('keeps an archived day while the newest settlement report for it is PENDING', async () => {
    const [report] = await raw`
      SELECT report_id, status FROM settlement_reports WHERE report_date = ${days[0]!}::date AND partner_id = ${partnerId}
      ORDER BY revision DESC LIMIT 1`;
    const put = (status: string) =>
      raw.begin(async (tx) => {
        // A trigger forbids changes to a report, so this test disables triggers.
        await tx`SET LOCAL session_replication_role = replica`;
        await tx`UPDATE settlement_reports SET status = ${status} WHERE report_id = ${report!.report_id}`;
      });
    await put('PENDING');
    expect(await dropOf(days[0]!)).toMatchObject({ refused: expect.stringContaining('is not complete') });
    await put(report!.status);
  });

  test.each(['drop.boundary', 'drop.detached'])(
    'repeats the drop of a day that was aborted at %s',
    async (step) => {
      const day = days[0]!;
      const options = { day, directory, keepDays: KEEP_DAYS, actor: 'test', today };
      await expect(dropDay(sql, { ...options, onFailpoint: endAt(step) })).rejects.toThrow(
        `ended at ${step}`,
      );
      expect((await new LedgerDays(sql).list(today))[0]!.state).toBe(
        step === 'drop.boundary' ? 'ARCHIVED' : 'DROPPED',
      );
    },
  );

  test('dropping an archived day leaves consistent books, as the audit confirms', async () => {
    expect(await dropOf(days[0]!)).toEqual({ faults: [] });
    const [table] = await raw`SELECT to_regclass(${`ledger_${days[0]!.replaceAll('-', '')}`})::text AS name`;
    expect(table!.name).toBeNull();
    // A run of request ids is only deleted as a whole, so this run still has the request ids of the dropped
    // day.
    const { to } = idsOfDay(days[0]!);
    const runs =
      await raw`SELECT 1 FROM request_runs WHERE from_id < ${String(to)}::bigint AND to_id >= ${String(to)}::bigint`;
    expect(runs).toHaveLength(1);
    expect(await service(() => violations())).toEqual([]);
  });

  test('the API distinguishes a spin of a dropped day from a spin that never existed', async () => {
    const keptFrom = `${days[1]}T00:00:00.000Z`;
    await service(async (client) => {
      const ask = (path: string) => client.partner<Record<string, unknown>>('GET', path, key);
      const gone = await ask(`/spins/${firstDay[0]}`);
      expect(gone.body).toMatchObject({ errorCode: 'KS-4215', details: [{ reason: 'ARCHIVED' }] });
      const unproven = await ask(`/spins/${firstDay[0]}/proof`);
      expect(unproven.body).toMatchObject({ errorCode: 'KS-4219', details: [{ reason: 'ARCHIVED' }] });
      const shown = await client.operator('GET', `/spins/${firstDay[0]}`);
      expect(shown.body).toMatchObject({ errorCode: 'KS-4215', details: [{ reason: 'ARCHIVED' }] });
      const page = await ask('/players/ann/spins?limit=100');
      expect(page.body).toMatchObject({ total: 15 * DAYS });
      expect((page.body as { spins: unknown[] }).spins.length).toBe(15 * DAYS);
      expect((await ask('/players/cy/spins')).body).toMatchObject({ total: 0, spins: [] });
      const totals = await client.operator<{ days: unknown[] }>('GET', `/games/${gameId}/days`);
      expect(totals.body.days.at(-1)).toMatchObject({ day: days[0], spins: firstDay.length });
      const lines: unknown[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const part: { body: { entries: unknown[]; nextCursor: string | null } } = await client.operator(
          'GET',
          `/partners/${partnerId}/players/ann/statement?limit=1${cursor && `&cursor=${cursor}`}`,
        );
        expect(part.body.entries.length).toBe(1);
        lines.push(...part.body.entries);
        cursor = part.body.nextCursor;
      }
      expect(lines.length).toBe(15 * DAYS);
      const statement = `/partners/${partnerId}/players/cy/statement`;
      expect((await client.operator('GET', statement)).body).toMatchObject({
        entries: [],
        nextCursor: null,
        completeFrom: keptFrom,
      });
      const statementCsv = await client.request('GET', `/api/operator/v1${statement}`, {
        key: OPERATOR_KEY,
        headers: { Accept: 'text/csv' },
      });
      expect(statementCsv.headers.get('x-complete-from')).toBe(keptFrom);
      expect(statementCsv.text.split('\r\n')).toHaveLength(2);
      expect((await ask('/players/cy/recall')).body).toEqual({ games: [], adjustments: [] });
      const { adjustmentId, balanceUsd } = adjusted as { adjustmentId: string; balanceUsd: number };
      expect((await ask('/adjustments')).body).toMatchObject({
        adjustments: [{ entryId: adjustmentId, balanceAfterUsd: balanceUsd }],
        nextCursor: null,
      });
      expect((await ask('/rounds')).body).toMatchObject({ completeFrom: keptFrom });
      const all = await ask(`/spins?from=${days[0]}T00:00:00Z&limit=1`);
      expect(all.body).toMatchObject({ completeFrom: keptFrom, spins: [{ playerId: 'ann' }] });
      expect((all.body as { spins: { createdAt: string }[] }).spins[0]!.createdAt >= keptFrom).toBe(true);
      const csv = await client.request('GET', '/api/partner/v1/spins', {
        key,
        headers: { Accept: 'text/csv' },
      });
      expect(csv.headers.get('x-complete-from')).toBe(keptFrom);
      expect(csv.text.split('\r\n').length - 2).toBe(15 * (2 + 1 + 2 + 1 + 2));
      const listed = await client.operator<{ days: Record<string, unknown>[]; keepDays: number }>(
        'GET',
        '/ledger/days',
      );
      expect(listed.body.keepDays).toBe(400);
      expect(listed.body.days[0]).toMatchObject({
        day: days[0],
        state: 'DROPPED',
        isDroppable: false,
      });
    });
  });

  test('replays a raffle ticket of a dropped day, but no longer finds a blackjack round of that day', async () => {
    await service(async (client) => {
      expect((await buyTicket(client)).body).toEqual(played.ticket);
      const path = `/api/play/blackjack/rounds/${played.roundId}`;
      const round = await client.request('GET', path, { key: other.key });
      expect(round.body).toMatchObject({ errorCode: 'KS-4221' });
    });
  });

  test('proves a blackjack round of a dropped day from the archive, using only the shoe of that round', async () => {
    const { entryId } = new SpinIds((await installation(sql)).spinIdKey).decode(played.roundId)!;
    const prove = () => archivedRound(sql, directory, { dealId: entryId, roundId: played.roundId });
    const flip = () =>
      raw`UPDATE blocks SET seed = set_byte(seed, 0, get_byte(seed, 0) # 85) WHERE log_number = 0`;
    expect(await prove()).toMatchObject({ record: { playerId: 'dee' }, faults: [] });
    await flip();
    expect(await prove()).not.toMatchObject({ faults: [] });
    await flip();
  });

  test('the audit detects a changed balance or total at the boundary of the dropped days', async () => {
    await raw`UPDATE boundary_players SET balance_micros = balance_micros + 1 WHERE player_id = 'cy'`;
    expect(await service(() => violations())).not.toEqual([]);
    await raw`UPDATE boundary_players SET balance_micros = balance_micros - 1 WHERE player_id = 'cy'`;
    await raw`UPDATE game_days SET paid_micros = paid_micros + 1 WHERE day = ${days[0]!}`;
    expect(await service(() => violations())).not.toEqual([]);
    await raw`UPDATE game_days SET paid_micros = paid_micros - 1 WHERE day = ${days[0]!}`;
  });

  test('rebuilds Redis with the same balances after a drop, and replays an adjustment of a dropped day', async () => {
    const balances = (client: Client) =>
      Promise.all(
        PLAYERS.map((playerId) =>
          client.partner('GET', `/players/${playerId}`, key).then(({ body }) => body),
        ),
      );
    const before = await service(balances);
    const redis = new Redis(stores.redisUrl, { protocol: 2 });
    await redis.flushdb();
    redis.disconnect();
    const { nodes, close } = await openNodes(stores.redisUrl);
    const states = await recover(sql, nodes, {
      isCheck: false,
      isToReplace: true,
      isVolatileAllowed: true,
      resume: [],
      progress: () => {},
      clocks: { now: Date.now, skewMaxMs: 31_536_000_000 },
    });
    close();
    expect(states.map(({ state }) => state)).not.toContain('failed');
    await service(async (client) => {
      expect(await balances(client)).toEqual(before);
      const again = await adjust(client);
      expect(again.body).toEqual(adjusted);
      expect((await buyTicket(client)).body).toEqual(played.ticket);
      const spin = { gameId, playerId: 'cy', wagerUsd: 0.25 };
      await until(async () => (await client.spin(key, spin)).status === 200, 'the game is dealt from again');
      expect(await violations()).toEqual([]);
    });
  });

  test('verifies settlement reports of dropped days against the database record and against the archive', async () => {
    expect((await verifySettlements(sql, undefined)).differences).toEqual([]);
    const dropped = { archive: archiveTotals(directory) };
    expect((await verifySettlements(sql, undefined, dropped)).differences).toEqual([]);
    const [record] = await raw`SELECT manifest FROM ledger_days WHERE day = ${days[0]!}`;
    const forged = record!.manifest.replace(/"wageredMicros":"[1-9]/, '"wageredMicros":"9');
    await raw`UPDATE ledger_days SET manifest = ${forged} WHERE day = ${days[0]!}`;
    expect((await verifySettlements(sql, undefined)).differences).not.toEqual([]);
    expect((await verifySettlements(sql, undefined, dropped)).differences).toEqual([]);
  });
});
