/**
 * How long the settlement of a large day takes: its reports (from the totals by day), a report read, and
 * `spindle settlement verify` (from the ledger's rows); and how long it takes to see that nothing is due in an installation
 * of a thousand partners and five years. On an embedded Postgres of its own. Prints one line of JSON.
 * `node dist/bench/settlement.js [ledger rows of the day] [partners]`
 */
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { readConfig } from '../src/config.js';
import { firstIdAt, idsIn } from '../src/domain/entryId.js';
import { DAY_MS, dayOf, startOf } from '../src/domain/settlement.js';
import { lockDataDir, startEmbeddedPostgres } from '../src/embedded/index.js';
import { newEvents } from '../src/events.js';
import { connectPostgres, migrate } from '../src/postgres/client.js';
import { install } from '../src/postgres/installation.js';
import { ensurePartition } from '../src/postgres/ledger.js';
import { openStore } from '../src/postgres/store.js';
import { fixedMap, RedisNodes } from '../src/redis/nodes.js';
import { SettlementJob } from '../src/settlement/job.js';
import { Settlements } from '../src/settlement/settlements.js';
import { verifySettlements } from '../src/settlement/verify.js';

const rows = Number(process.argv[2] ?? 10_000_000);
const partners = Number(process.argv[3] ?? 10);
const GAMES_EACH = 10;
const OLD_PARTNERS = 1000;
const OLD_DAYS = 5 * 365;

const day = dayOf(Date.now() - DAY_MS);
const fromMs = startOf(day);
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
  const direct = postgres(embedded.url, { max: 1, onnotice: () => {} });
  await install(sql, { cells: 16, idempotencyTtlSeconds: 86_400 });
  await ensurePartition(sql, day, { from: firstIdAt(fromMs), to: firstIdAt(fromMs + DAY_MS) });
  await fill(direct);
  process.stderr.write(`${rows} rows of ${day} are there\n`);

  const fail = (error: unknown): never => {
    throw error;
  };
  // Every cell has a booked entry of the day after: Redis need not be asked.
  const nodes = new RedisNodes(fixedMap([]));
  const store = openStore(sql);
  const events = newEvents(fail);
  events.on('TaskFailed', ({ error }) => fail(error));
  events.on('SettlementFailed', ({ error }) => fail(error));
  const settlements = new Settlements({ store, nodes, events });
  const job = new SettlementJob(settlements, { cron: '* * * * *', events });
  const turnSeconds = await timed(() => job.turn());
  const remadeSeconds = await timed(() => settlements.makeNow(1, day, 'bench'));
  const readSeconds = await timed(() => store.findReport(1, day));
  let verifyRows = 0;
  const verifySeconds = await timed(async () => {
    const verification = await verifySettlements(sql, undefined);
    if (verification.differences.length > 0) throw new Error(JSON.stringify(verification.differences[0]));
    verifyRows = verification.rows;
  });

  await direct`
    INSERT INTO partners (slug, name, environment, cell, spin_rate_limit, api_rate_limit, opening_balance_micros,
      balance_mode, large_win_threshold_micros, min_ready_blocks, changed, created_at)
    SELECT 'old-' || i, 'old', 'sandbox', i % 16, 1, 1, 0, 'track', 0, 2, 0, ${day}::date - ${OLD_DAYS}::int + interval '12 hours'
    FROM generate_series(1, ${OLD_PARTNERS}::int) i`;
  await direct`
    INSERT INTO settlement_reports (partner_id, report_date, revision, status, is_complete, report, integrity_hash)
    SELECT partner_id, d::date, 1, 'GENERATED', true, '{}', repeat('0', 64)
    FROM partners, generate_series(${day}::date - ${OLD_DAYS}::int, ${day}::date, interval '1 day') d
    WHERE slug LIKE 'old-%'`;
  await direct`ANALYZE settlement_reports`;
  const lookSeconds = await timed(async () => {
    const told = { isStopped: () => false, onFault: fail };
    const unsettled = await settlements.settle(undefined, day, told);
    if (unsettled !== undefined) throw new Error('Something is unsettled');
  });
  const version = process.version;
  const figures = { turnSeconds, remadeSeconds, readSeconds, verifySeconds, verifyRows, lookSeconds };
  console.log(JSON.stringify({ bench: 'settlement', node: version, rows, partners, ...figures }));
  await Promise.all([sql.end(), direct.end()]);
} finally {
  await embedded.stop();
  await lock.release();
  await rm(dataDir, { recursive: true, force: true });
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return Math.round(performance.now() - started) / 1000;
}

/** Partners, games, a day's ledger in which each pays 0.25 USD and each fourth gets 0.75, and its totals. */
async function fill(direct: postgres.Sql): Promise<void> {
  const created = new Date(fromMs);
  await direct`
    INSERT INTO partners (slug, name, environment, cell, spin_rate_limit, api_rate_limit, opening_balance_micros,
      balance_mode, large_win_threshold_micros, min_ready_blocks, changed, created_at)
    SELECT 'p-' || i, 'p', 'sandbox', i % 16, 1, 1, 0, 'track', 0, 2, 0, ${created} FROM generate_series(1, ${partners}::int) i`;
  await direct`
    INSERT INTO games (partner_id, game_type, config_name, display_name, changed, created_at)
    SELECT 1 + i % ${partners}::int, 'slot', 'G_' || i, 'Game ' || i, 0, ${created}
    FROM generate_series(0, ${partners * GAMES_EACH - 1}::int) i`;
  const games = partners * GAMES_EACH;
  const step = Math.floor(Number(idsIn(DAY_MS)) / rows);
  await direct.unsafe(`
    INSERT INTO ledger_${day.replaceAll('-', '')}
    SELECT ${firstIdAt(fromMs)}::bigint + i::bigint * ${step}, 0, 250000, CASE WHEN i % 4 = 0 THEN 750000 ELSE 0 END, 0,
      i / ${games}, 1 + i % ${partners}, 1 + i % ${games}, 1, 0, 1, 'player-' || i % 10000, 'request-' || i
    FROM generate_series(0, ${rows - 1}) i`);
  await direct`
    INSERT INTO game_days SELECT game_id, ${day}::date, partner_id, count(*), sum(wager_micros), sum(credit_micros)
    FROM ledger GROUP BY game_id, partner_id`;
  await direct`UPDATE cells SET cursor_id = ${String(firstIdAt(fromMs + DAY_MS))}::bigint`;
  await direct`VACUUM ANALYZE`;
}
