/**
 * How long pages of the ledger by time take on 30 days of spins: of a partner with a tenth of them and of one with few, from the
 * first day, in the middle, of a game and of a player; which partitions a page reads; how fast all of a day is read. On an embedded
 * Postgres of its own. Prints one line of JSON. `node dist/bench/spinsByTime.js [ledger rows]`
 */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { readConfig } from '../src/config.js';
import { firstIdAt, idsIn } from '../src/domain/entryId.js';
import { DAY_MS, dayOf } from '../src/domain/settlement.js';
import { lockDataDir, startEmbeddedPostgres } from '../src/embedded/index.js';
import { connectPostgres, migrate } from '../src/postgres/client.js';
import { install } from '../src/postgres/installation.js';
import { ensurePartition } from '../src/postgres/ledger.js';
import {
  playerSpinsByTime,
  type SpinRange,
  type SpinsFound,
  spinsByTime,
} from '../src/postgres/spinsByTime.js';

const rows = Number(process.argv[2] ?? 10_000_000);
const DAYS = 30;
const PARTNERS = 10;
/** Has one row of this many. */
const FEW = 10_007;
const FEW_ID = PARTNERS + 1;
const GAMES = 5;
const PLAYERS = 1000;
const LIMIT = 100;
const LOOKS = 200;

const firstMs = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAYS * DAY_MS;
const endMs = firstMs + DAYS * DAY_MS;
const config = readConfig({});
const dataDir = await realpath(await mkdtemp(join(tmpdir(), 'spindle-bench-')));
const lock = await lockDataDir(dataDir);
const embedded = await startEmbeddedPostgres({
  dataDir: lock.dataDir,
  cacheDir: config.cacheDir,
  progress: () => {},
  onEvent: () => {},
});
try {
  await migrate(embedded.url, config.migrationsDir, () => {});
  const sql = connectPostgres(embedded.url, { max: 2, name: 'bench', onError: () => {} });
  const direct = postgres(embedded.url, { max: 1, onnotice: () => {}, types: { bigint: postgres.BigInt } });
  await install(sql, { cells: 1, idempotencyTtlSeconds: 86_400 });
  for (let ms = firstMs; ms < endMs; ms += DAY_MS)
    await ensurePartition(sql, dayOf(ms), { from: firstIdAt(ms), to: firstIdAt(ms + DAY_MS) });
  await fill(direct);
  process.stderr.write(`${rows} rows of ${DAYS} days are there\n`);

  const range = (more: Partial<SpinRange> = {}): SpinRange => ({
    ...{ partnerId: 3, cell: 0, fromId: firstIdAt(firstMs), toId: firstIdAt(endMs), gameId: undefined },
    ...more,
  });
  const anywhere = (): bigint => firstIdAt(firstMs + Math.floor(Math.random() * (DAYS - 1) * DAY_MS));
  const { newestId, entries } = await newestOf(direct);
  const player = {
    ...{ partnerId: 3, playerId: 'player-2', firstId: firstIdAt(firstMs) },
    newest: { id: newestId, entryNumber: entries },
  };
  const figures = {
    firstPage: await looks(() => spinsByTime(sql, range(), LIMIT)),
    anyPage: await looks(() => spinsByTime(sql, range({ fromId: anywhere() }), LIMIT)),
    game: await looks(() => spinsByTime(sql, range({ fromId: anywhere(), gameId: 14 }), LIMIT)),
    fewSpins: await looks(() => spinsByTime(sql, range({ partnerId: FEW_ID, fromId: anywhere() }), LIMIT)),
    player: await looks(() => playerSpinsByTime(sql, player, range({ fromId: anywhere() }), LIMIT)),
  };
  const day = range({ fromId: firstIdAt(firstMs + 9 * DAY_MS), toId: firstIdAt(firstMs + 10 * DAY_MS) });
  const plan = await direct.unsafe(`
    EXPLAIN SELECT * FROM ledger WHERE entry_id >= ${day.fromId} AND entry_id < ${day.toId} AND partner_id = 3
      AND kind IN (1) ORDER BY entry_id LIMIT ${LIMIT + 1}`);
  const partitions = new Set(JSON.stringify(plan).match(/ledger_\d{8}/g)).size;
  const started = performance.now();
  let spins = 0;
  for (let fromId: bigint | undefined = day.fromId; fromId !== undefined; ) {
    const found: SpinsFound = await spinsByTime(sql, { ...day, fromId }, 500);
    spins += found.entries.length;
    fromId = found.nextId;
  }
  const spinsPerSecond = Math.round((spins / (performance.now() - started)) * 1000);
  const whole = { spins, spinsPerSecond, partitionsOfADay: partitions };
  console.log(JSON.stringify({ bench: 'spinsByTime', node: process.version, rows, ...figures, ...whole }));
  await Promise.all([sql.end(), direct.end()]);
} finally {
  await embedded.stop();
  await lock.release();
  await rm(dataDir, { recursive: true, force: true });
}

/** Milliseconds of a page, and how many spins pages had on average. */
async function looks(
  look: () => Promise<SpinsFound>,
): Promise<{ p50Ms: number; maxMs: number; spins: number }> {
  const times: number[] = [];
  let spins = 0;
  for (let i = 0; i < LOOKS; i++) {
    const started = performance.now();
    spins += (await look()).entries.length;
    times.push(performance.now() - started);
  }
  times.sort((a, b) => a - b);
  const tenths = (ms: number): number => Math.round(ms * 10) / 10;
  return { p50Ms: tenths(times[LOOKS / 2]!), maxMs: tenths(times.at(-1)!), spins: Math.round(spins / LOOKS) };
}

/** Row i is of partner 1 + i mod PARTNERS (each FEW-th of another one), at even distances over the days. */
async function fill(direct: postgres.Sql<{ bigint: bigint }>): Promise<void> {
  const step = Math.floor(Number(idsIn(DAYS * DAY_MS)) / rows);
  const lap = PARTNERS * PLAYERS;
  const id = (i: string) => `${firstIdAt(firstMs)}::bigint + (${i})::bigint * ${step}`;
  await direct.unsafe(`
    INSERT INTO ledger
    SELECT ${id('i')}, CASE WHEN i < ${lap} THEN 0 ELSE ${id(`i - ${lap}`)} END, 250000,
      CASE WHEN i % 4 = 0 THEN 750000 ELSE 0 END, 0, i, CASE WHEN i % ${FEW} = 0 THEN ${FEW_ID} ELSE 1 + i % ${PARTNERS} END,
      1 + (i % ${PARTNERS}) * ${GAMES} + (i / ${PARTNERS}) % ${GAMES}, i / ${lap} + 1, 0, 1,
      'player-' || (i / ${PARTNERS}) % ${PLAYERS}, 'request-' || i
    FROM generate_series(0, ${rows - 1}) i`);
  await direct`
    INSERT INTO game_days SELECT game_id, to_timestamp((entry_id >> 22) / 1000.0)::date, min(partner_id), count(*), 0, 0
    FROM ledger GROUP BY 1, 2`;
  await direct`
    INSERT INTO game_days SELECT 999, to_timestamp((entry_id >> 22) / 1000.0)::date, ${FEW_ID}, count(*), 0, 0
    FROM ledger WHERE partner_id = ${FEW_ID} GROUP BY 2`;
  await direct`UPDATE cells SET cursor_id = ${String(firstIdAt(endMs))}::bigint`;
  await direct`VACUUM ANALYZE`;
}

async function newestOf(
  direct: postgres.Sql<{ bigint: bigint }>,
): Promise<{ newestId: bigint; entries: number }> {
  const [row] = await direct<{ entry_id: bigint; entry_number: number }[]>`
    SELECT entry_id, entry_number FROM ledger WHERE partner_id = 3 AND player_id = 'player-2'
    ORDER BY entry_id DESC LIMIT 1`;
  return { newestId: row!.entry_id, entries: row!.entry_number };
}
