/**
 * Tests the reads of the ledger by time: pages and CSV of many spins over many days, while more spins are
 * dealt. `npm run test:scale` uses a million spins and measures the memory of an export; the normal run uses
 * a fiftieth of that.
 */
import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import autocannon from 'autocannon';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SpinHistory, type SpinsFound } from '../../../src/api/spins/spinHistory.store.js';
import { firstIdAt } from '../../../src/domain/entryId.js';
import { ensurePartition } from '../../../src/engine/ledger/ledger.store.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import type { TestPartner } from '../../support/client.js';
import { csvRecords } from '../../support/csv.js';
import { IS_WHOLE } from '../../support/root.js';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import type { TestStores } from '../../support/stores.js';
import { pause, until } from '../../support/wait.js';

const ROWS = IS_WHOLE ? 1_000_000 : 8000;
const MADE_MEANWHILE = IS_WHOLE ? 5000 : 200;
const DAYS = 30;
const DAY_MS = 86_400_000;
const PLAYERS = 100;
const WAGER = 0.25;
const MEMORY_MAX_BYTES = 50 * 1024 * 1024;

let stores: TestStores;
let books: postgres.Sql;
let service: ServerProcess;
let partner: TestPartner;
let other: TestPartner;
let games: number[];
/** UTC midnight before the first spin, in ms. */
const firstMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAYS * DAY_MS;
const iso = (ms: number): string => new Date(ms).toISOString();

interface Spin {
  spinId: string;
  createdAt: string;
  gameId: number;
  playerId: string;
  requestId?: string;
  outcomeIndex: number | null;
  balance: { balanceUsd: number };
  outcome: { payoutUsd: number; prizeTier: number };
}
interface SpinPage {
  spins: Spin[];
  nextCursor: string | null;
}

beforeAll(async () => {
  stores = await freshStores();
  books = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
  service = await spawnService(environment(stores));
  [partner, other] = [await service.client.newPartner(), await service.client.newPartner()];
  games = [
    await service.client.newGame(partner.key, parSheet('classic-3-reel')),
    await service.client.newGame(partner.key, parSheet('double-strike')),
  ];
  await fillLedger();
}, 300_000);
afterAll(async () => {
  await service?.end();
  await books?.end();
  await stores?.drop();
});

/**
 * Fills the ledger: spin i belongs to player i mod PLAYERS and game i mod 2. Every third row belongs to
 * another partner.
 */
async function fillLedger(): Promise<void> {
  const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'test', onError: () => {} });
  for (let ms = firstMs; ms < firstMs + DAYS * DAY_MS; ms += DAY_MS)
    await ensurePartition(sql, iso(ms).slice(0, 10), { from: firstIdAt(ms), to: firstIdAt(ms + DAY_MS) });
  await sql.end();
  const id = (i: string) =>
    `(((${firstMs}::bigint + ${i}::bigint * ${Math.floor((DAYS * DAY_MS) / ROWS)}) << 22) + (i % 3))`;
  await books.unsafe(`
    INSERT INTO ledger
    SELECT ${id('i')}, CASE WHEN i < ${PLAYERS} THEN 0 ELSE ${id(`(i - ${PLAYERS})`)} END, 250000, 0, 5000000, i,
      ${partner.partnerId}, CASE i % 2 WHEN 0 THEN ${games[0]} ELSE ${games[1]} END, i / ${PLAYERS} + 2, 0, 1,
      'old-' || i % ${PLAYERS}, CASE i % 5 WHEN 0 THEN '=r"' || i END
    FROM generate_series(0, ${ROWS - 1}) AS i`);
  await books.unsafe(`
    INSERT INTO ledger
    SELECT ${id('i')} + 100, 0, 250000, 0, 5000000, i, ${other.partnerId}, ${games[0]}, i + 2, 0, 1, 'theirs', NULL
    FROM generate_series(0, ${ROWS - 1}, 2) AS i`);
  await books`
    INSERT INTO game_days SELECT game_id, to_timestamp((entry_id >> 22) / 1000.0)::date, partner_id, count(*), sum(wager_micros), 0
    FROM ledger WHERE partner_id = ${partner.partnerId} GROUP BY 1, 2, 3`;
  await books`ANALYZE ledger`;
}

const ask = async (query: Record<string, string | number>, key = partner.key): Promise<SpinPage> => {
  const parameters = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, `${value}`]),
  );
  const answer = await service.client.partner<SpinPage>('GET', `/spins?${parameters}`, key);
  expect(answer.status, answer.text).toBe(200);
  return answer.body;
};

/** Reads all spins of a range, page by page. */
async function all(query: Record<string, string | number>, limit = 100): Promise<Spin[]> {
  const spins: Spin[] = [];
  for (let cursor: string | undefined; ; ) {
    const page: SpinPage = await ask({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) });
    spins.push(...page.spins);
    if (page.nextCursor === null) return spins;
    cursor = page.nextCursor;
  }
}

const idsOf = (spins: readonly Spin[]): string[] => spins.map(({ spinId }) => spinId);

const load = (amount: number) =>
  autocannon({
    url: `${service.client.base}/api/partner/v1/spin`,
    method: 'POST',
    headers: { 'X-API-Key': partner.key },
    body: JSON.stringify({ gameId: games[0], playerId: 'new', wagerUsd: WAGER }),
    amount,
    connections: 4,
    ...(IS_WHOLE ? { overallRate: 100 } : {}),
  });

test(`pages through ${ROWS.toLocaleString('en')} spins, each once, while ${MADE_MEANWHILE} more are made, which come after them`, async () => {
  const started = performance.now();
  const making = load(MADE_MEANWHILE);
  const ids = new Set<string>();
  let old = 0;
  let pages = 0;
  let slowestMs = 0;
  let lastAt = '';
  let cursor: string | undefined;
  const read = async (): Promise<void> => {
    for (;;) {
      const before = performance.now();
      const page = await ask({ limit: 100, ...(cursor === undefined ? {} : { cursor }) });
      slowestMs = Math.max(slowestMs, performance.now() - before);
      pages++;
      for (const { spinId, createdAt, playerId } of page.spins) {
        expect(ids.has(spinId)).toBe(false);
        ids.add(spinId);
        if (playerId.startsWith('old-')) old++;
        expect(createdAt >= lastAt).toBe(true);
        lastAt = createdAt;
      }
      cursor = page.nextCursor ?? page.spins.at(-1)?.spinId ?? cursor;
      if (page.nextCursor === null) return;
    }
  };
  await read();
  const seconds = (performance.now() - started) / 1000;
  expect(old).toBe(ROWS);
  expect((await making)['2xx']).toBe(MADE_MEANWHILE);
  // A read that starts after the response to a spin includes that spin.
  await read();
  expect(ids.size).toBe(ROWS + MADE_MEANWHILE);
  console.log(`${pages} pages in ${seconds.toFixed(1)} s, the slowest ${slowestMs.toFixed(0)} ms`);
}, 600_000);

describe('filters of the ledger by time', () => {
  const day = 10;
  const [fromMs, toMs] = [firstMs + day * DAY_MS, firstMs + (day + 1) * DAY_MS];
  const range = { from: iso(fromMs), to: iso(toMs) };

  test('includes the first moment of a time range but not the last, with any time offset', async () => {
    const spins = await all(range);
    expect(spins.length).toBe(ROWS / DAYS - ((ROWS / DAYS) % 1) + (spins.length > ROWS / DAYS ? 1 : 0));
    expect(spins.every(({ createdAt }) => createdAt >= range.from && createdAt < range.to)).toBe(true);
    const first = spins[0]!.createdAt;
    expect((await ask({ from: first, to: first })).spins).toEqual([]);
    expect((await ask({ from: first, limit: 1 })).spins).toEqual([spins[0]]);
    const shifted = `${iso(fromMs + 7_200_000).slice(0, -1)}+02:00`;
    expect((await ask({ from: shifted, limit: 1 })).spins).toEqual([spins[0]]);
  });

  test('filtering spins by game, by player or by both returns exactly the matching spins of the range', async () => {
    const spins = await all(range);
    const ofGame = spins.filter(({ gameId }) => gameId === games[1]);
    const ofPlayer = spins.filter(({ playerId }) => playerId === 'old-7');
    expect(ofGame.length).toBeGreaterThan(0);
    expect(await all({ ...range, gameId: games[1]! }, 7)).toEqual(ofGame);
    expect(await all({ ...range, gameId: 2_147_483_647 })).toEqual([]);
    expect(await all({ ...range, playerId: 'nobody' })).toEqual([]);
    // Players inserted by SQL are not in Redis. The player of the new spins is in Redis, so these spins are
    // found along the player's own entries.
    expect(ofPlayer.length).toBeGreaterThan(0);
    const mine = (await all({ from: iso(firstMs + DAYS * DAY_MS) })).filter(
      ({ playerId }) => playerId === 'new',
    );
    expect(mine.length).toBe(MADE_MEANWHILE);
    expect(idsOf(await all({ playerId: 'new' }, 33))).toEqual(idsOf(mine));
    const middle = mine[100]!;
    const rest = await all({ playerId: 'new', from: middle.createdAt, gameId: games[0]! });
    expect(idsOf(rest)).toEqual(idsOf(mine.filter(({ createdAt }) => createdAt >= middle.createdAt)));
    expect(await all({ playerId: 'new', gameId: games[1]! })).toEqual([]);
    expect(await all({ playerId: 'new', to: range.to })).toEqual([]);
  });

  test('a page of spins reads hardly more rows than it returns, whatever other partners play', async () => {
    const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'pages', onError: () => {} });
    const busyMs = firstMs - DAY_MS;
    await ensurePartition(sql, iso(busyMs).slice(0, 10), { from: firstIdAt(busyMs), to: firstIdAt(firstMs) });
    await books`
      INSERT INTO ledger SELECT ${String(firstIdAt(busyMs))}::bigint + 4194304::bigint * i, 0, 250000, 0, 5000000, i,
        CASE i % 100 WHEN 0 THEN ${partner.partnerId}::int ELSE ${other.partnerId}::int END, ${games[0]!}, i + 2, 0, 1, 'busy', NULL
      FROM generate_series(0, 49999) AS i`;
    await books`ANALYZE ledger`;
    const rowsRead = async (): Promise<number> => {
      await sql`SELECT pg_stat_force_next_flush()`;
      const [row] = await books`
        SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read)::float8 AS rows FROM pg_stat_user_tables WHERE relname LIKE 'ledger\\_2%'`;
      return row!.rows;
    };
    const history = new SpinHistory(sql);
    const before = await rowsRead();
    const [fromId, toId] = [firstIdAt(busyMs), firstIdAt(busyMs + DAY_MS)];
    const range = { partnerId: partner.partnerId, fromId, toId, gameId: undefined };
    let returned = 0;
    for (let nextId: bigint | undefined = fromId; nextId !== undefined; ) {
      const page: SpinsFound = await history.spinsByTime({ ...range, fromId: nextId }, 100);
      returned += page.entries.length;
      nextId = page.nextId;
    }
    const read = (await rowsRead()) - before;
    await sql.end();
    expect(returned).toBe(500);
    expect(read).toBeGreaterThanOrEqual(returned);
    expect(read).toBeLessThanOrEqual(1.1 * returned);
  });

  test('one page of spins covers many days with one spin each', async () => {
    const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'days', onError: () => {} });
    const [place] = await books`SELECT cell FROM partners WHERE partner_id = ${partner.partnerId}`;
    const rare = await service.client.newPartner({ cell: place!.cell as number });
    const endMs = firstMs - 20 * DAY_MS;
    for (let ms = endMs - 10 * DAY_MS; ms < endMs; ms += DAY_MS) {
      await ensurePartition(sql, iso(ms).slice(0, 10), { from: firstIdAt(ms), to: firstIdAt(ms + DAY_MS) });
      await books`
        INSERT INTO ledger VALUES (${String(firstIdAt(ms))}, 0, 250000, 0, 5000000, ${ms}, ${rare.partnerId}, ${games[0]!}, 2, 0, 1, 'rare', NULL)`;
      await books`INSERT INTO game_days VALUES (${games[0]!}, ${iso(ms)}, ${rare.partnerId}, 1, 250000, 0)`;
    }
    const range = { partnerId: rare.partnerId, fromId: firstIdAt(endMs - 10 * DAY_MS), gameId: undefined };
    const page = await new SpinHistory(sql).spinsByTime({ ...range, toId: firstIdAt(endMs) }, 100);
    await sql.end();
    expect([page.entries.length, page.nextId]).toEqual([10, undefined]);
  });

  test('lists a spin as in its response, and never to another partner', async () => {
    const answer = await service.client.spin<Spin>(partner.key, {
      gameId: games[0],
      playerId: 'Ünï "🎰"',
      wagerUsd: WAGER,
      requestId: 'r',
    });
    const { spins } = await ask({ playerId: 'Ünï "🎰"' });
    expect(spins).toEqual([
      {
        ...answer.body,
        createdAt: spins[0]!.createdAt,
        gameId: games[0],
        playerId: 'Ünï "🎰"',
        wagerUsd: WAGER,
        balanceBeforeUsd: expect.any(Number),
        outcomeIndex: expect.any(Number),
        balanceAfterUsd: answer.body.balance.balanceUsd,
      },
    ]);
    expect(await ask({ from: iso(firstMs + DAYS * DAY_MS) }, other.key)).toEqual({
      spins: [],
      nextCursor: null,
    });
    const stolen = await service.client.partner('GET', `/spins?cursor=${answer.body.spinId}`, other.key);
    expect(stolen).toMatchObject({
      status: 400,
      body: { errorCode: 'KS-4101', details: [{ path: '/cursor' }] },
    });
  });
});

/** Returns the resident memory of the service in bytes. */
const memory = (): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))![1]) * 1024;

/** Reads an export, but leaves its first bytes unread in the connection for a while. */
async function exportOf(
  query: string,
  waitMs: number,
): Promise<{ lines: number; first: string[]; peak: number }> {
  const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    get(
      `${service.client.base}/api/partner/v1/spins?${query}`,
      { headers: { 'X-API-Key': partner.key, Accept: 'text/csv' }, agent: false },
      resolve,
    ).on('error', reject);
  });
  expect(response.statusCode).toBe(200);
  expect(response.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
  let peak = memory();
  // The service must not buffer rows that the client doesn't read.
  await pause(waitMs);
  peak = Math.max(peak, memory());
  let lines = 0;
  let rest = '';
  const first: string[] = [];
  for await (const chunk of response.setEncoding('utf8')) {
    const parts = (rest + chunk).split('\r\n');
    rest = parts.pop()!;
    lines += parts.length;
    if (first.length < 200) first.push(...parts);
    peak = Math.max(peak, memory());
  }
  expect(rest).toBe('');
  return { lines, first, peak };
}

describe('exports of spins as CSV', () => {
  const range = `to=${iso(firstMs + DAYS * DAY_MS)}`;

  test('exports a whole time range in one CSV answer, with the same rows as its pages', async () => {
    const before = memory();
    const { lines, first, peak } = await exportOf(range, IS_WHOLE ? 5000 : 200);
    expect(lines).toBe(ROWS + 1);
    const { spins } = await ask({ limit: 100 });
    const records = csvRecords(first.map((line) => `${line}\r\n`).join(''));
    spins.forEach((spin, i) => {
      const { payoutUsd, prizeTier } = spin.outcome;
      expect(records[i]).toMatchObject({
        spinId: spin.spinId,
        createdAt: spin.createdAt,
        gameId: `${spin.gameId}`,
        playerId: spin.playerId,
        requestId: spin.requestId ?? '',
        wagerUsd: '0.25',
        payoutUsd: '0',
        prizeTier: `${prizeTier}`,
        balanceUsd: '5',
        sandbox: '',
        outcomeIndex: `${spin.outcomeIndex}`,
      });
      expect(payoutUsd >= 0).toBe(true);
    });
    console.log(`${ROWS} rows of CSV: ${((peak - before) / 1048576).toFixed(1)} MB more memory`);
    if (IS_WHOLE) expect(peak - before).toBeLessThan(MEMORY_MAX_BYTES);
  }, 300_000);

  test('refuses a fifth concurrent CSV export of a partner, and completes the other four', async () => {
    const headers = { Accept: 'text/csv' };
    const path = `/api/partner/v1/spins?${range}`;
    const asked = await books.begin(async (sql) => {
      // Each export waits for the lock on the days of its range until this transaction ends.
      await sql`LOCK TABLE game_days IN ACCESS EXCLUSIVE MODE`;
      const five = Array.from({ length: 5 }, () =>
        service.client.request('GET', path, { key: partner.key, headers }),
      );
      const first = await Promise.race(five);
      expect(first).toMatchObject({ status: 429, body: { errorCode: 'KS-4292' } });
      return { five };
    });
    const statuses = (await Promise.all(asked.five)).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 200, 200, 200, 429]);
  });

  test('aborts a CSV export if a day of its range is dropped meanwhile, so no row is missing unnoticed', async () => {
    const headers = { Accept: 'text/csv' };
    const asked = await books.begin(async (sql) => {
      await sql`LOCK TABLE game_days IN ACCESS EXCLUSIVE MODE`;
      const answer = service.client.request('GET', `/api/partner/v1/spins?${range}`, {
        key: partner.key,
        headers,
      });
      await until(async () => {
        const waiting = await sql`
          SELECT 1 FROM pg_locks WHERE relation = 'game_days'::regclass AND NOT granted`;
        return waiting.length > 0;
      }, 'the export waits');
      await sql`
        INSERT INTO ledger_days (day, entries, archive_bytes, manifest, manifest_hash, dropped_at)
        VALUES (${iso(firstMs).slice(0, 10)}, 0, 0, '', repeat('0', 64), now())`;
      return { answer };
    });
    expect((await asked.answer).status).toBe(500);
    await books`DELETE FROM ledger_days`;
    expect((await exportOf(range, 0)).lines).toBe(ROWS + 1);
  });

  test('allows a partner four concurrent CSV exports, and frees one if a client disconnects', async () => {
    const open = () =>
      service.client.request('GET', `/api/partner/v1/spins?${range}&playerId=x`, {
        key: partner.key,
        headers: { Accept: 'text/csv' },
      });
    expect((await open()).text.split('\r\n')).toHaveLength(2);
    const held = await Promise.all(
      Array.from(
        { length: 4 },
        () =>
          new Promise<import('node:http').IncomingMessage>((resolve) => {
            const headers = { 'X-API-Key': partner.key, Accept: 'text/csv' };
            get(`${service.client.base}/api/partner/v1/spins?${range}`, { headers, agent: false }, resolve);
          }),
      ),
    );
    for (const response of held) response.pause();
    for (const response of held) response.destroy();
    await until(async () => (await open()).status === 200, 'there is room again');
  });
});

test('shows the certified return, the hit frequency and the top prize of slots in GET /games', async () => {
  const { body } = await service.client.partner<{ games: Record<string, unknown>[] }>(
    'GET',
    '/games',
    partner.key,
  );
  const sheet = parSheet('classic-3-reel') as {
    certifiedRtp: number;
    denominationUsd: number;
    combinations: { comboProbability: number; payMultiplier: number }[];
  };
  const winning = sheet.combinations.filter(({ payMultiplier }) => payMultiplier > 0);
  const hits = winning.reduce((sum, { comboProbability }) => sum + comboProbability, 0);
  expect(body.games[0]).toMatchObject({
    certifiedRtp: sheet.certifiedRtp,
    topPrizeUsd: Math.max(...winning.map(({ payMultiplier }) => payMultiplier)) * sheet.denominationUsd,
  });
  expect(body.games[0]!.hitFrequency).toBeCloseTo(hits, 6);
});
