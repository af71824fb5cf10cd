/**
 * `npm run bench -- archive [--rows 10000000] [--days 30] [--keep 5] [--rate 500]`
 *
 * Fills a ledger of many days, archives the days while spins continue, verifies the files, compares their
 * sums with the settlement reports by DuckDB, and drops all but the newest days. Prints the cost of each step
 * and the latency of the spins beside it. Exits with 1 if anything failed. Needs Linux.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import postgres from 'postgres';
import { idsOfDay } from '../src/books/archive/ledgerDays.store.js';
import { checkArchives } from '../src/books/archive/readArchive.js';
import { connectPostgres } from '../src/postgres/connect.js';
import type { Sql } from '../src/postgres/connection.js';
import { type Cleanup, runToEnd } from '../test/support/cleanup.js';
import { docCode } from '../test/support/docBlocks.js';
import { rawRedis } from '../test/support/redis.js';
import { ROOT } from '../test/support/root.js';
import type { ServerProcess } from '../test/support/serverProcess.js';
import { environment, spawnService } from '../test/support/service.js';
import {
  bookedInto,
  dayAt,
  ENTRIES_AHEAD,
  longAgo,
  oldPartner,
  reportsOf,
  runIntoMoment,
  type SettledPartner,
  settlementWorker,
  shift,
  startOf,
} from '../test/support/settlement.js';
import { ownStores } from '../test/support/stores.js';
import { pause, until } from '../test/support/wait.js';
import type { StepOrder, StepResult } from './archiveStep.js';
import { type LoadResult, startGenerator, type Target } from './load.js';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '10000000' },
    days: { type: 'string', default: '30' },
    keep: { type: 'string', default: '5' },
    rate: { type: 'string', default: '500' },
  },
});
const [ROWS, DAYS, KEEP, RATE] = [values.rows, values.days, values.keep, values.rate].map(Number) as [
  number,
  number,
  number,
  number,
];
const DUCKDB = '@duckdb/node-api@1.5.6-r.1';
const PARTNERS = 2;
const PLAYERS = 20_000;
const CONNECTIONS = 64;
const RATE_CONNECTIONS = 32;
const CALM_SECONDS = 60;
const PIECE_SECONDS = 10;
const BOOKED_WITHIN_MS = 120_000;
const MB = 1_048_576;

const run = promisify(execFile);
const problems: string[] = [];
const expectThat = (isSo: boolean, problem: string): void => {
  if (!isSo) problems.push(problem);
  if (!isSo) console.log(`WRONG: ${problem}`);
};
const round = (value: number, digits = 2): number => Number(value.toFixed(digits));
const median = (numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!;

/** Generates load at a fixed rate (an open loop) until the function `end` is called. */
class Beside {
  readonly #p99s: number[] = [];
  #isOver = false;
  #spins = 0;
  #failed = 0;
  readonly #running: Promise<void>;

  constructor(
    load: (seconds: number) => Promise<{ spins: number; non2xx: number; errors: number; p99Ms: number }>,
  ) {
    this.#running = (async () => {
      while (!this.#isOver) {
        const { spins, non2xx, errors, p99Ms } = await load(PIECE_SECONDS);
        this.#spins += spins;
        this.#failed += non2xx + errors;
        this.#p99s.push(p99Ms);
      }
    })();
  }

  async end(): Promise<{ spins: number; failed: number; p99Ms: number; pieces: number }> {
    this.#isOver = true;
    await this.#running;
    return {
      spins: this.#spins,
      failed: this.#failed,
      p99Ms: round(median(this.#p99s)),
      pieces: this.#p99s.length,
    };
  }
}

interface Stage {
  readonly stores: Awaited<ReturnType<typeof ownStores>>;
  readonly directory: string;
  readonly sql: Sql;
  readonly raw: postgres.Sql;
  readonly redis: ReturnType<typeof rawRedis>;
  readonly days: readonly string[];
  readonly today: string;
  readonly partners: SettledPartner[];
  readonly cell: number;
  service: ServerProcess;
  restart(): Promise<void>;
  flat(seconds: number): Promise<LoadResult>;
  paced(seconds: number): Promise<LoadResult>;
}

async function setUp(cleanup: Cleanup): Promise<Stage> {
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  const directory = await mkdtemp(join(tmpdir(), 'spindle-archives-'));
  cleanup.add(() => rm(directory, { recursive: true, force: true }));
  const sql = connectPostgres(stores.databaseUrl, { max: 3, name: 'bench', onError: () => {} });
  cleanup.add(() => sql.end());
  const raw = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  cleanup.add(() => raw.end());
  const redis = rawRedis(stores.redisUrl);
  cleanup.add(() => redis.disconnect());
  const first = dayAt(Date.now());
  const settings = {
    ...ENTRIES_AHEAD,
    CELLS: '1',
    LOG_LEVEL: 'warn',
    TEST_CONSTANTS: undefined,
    SETTLEMENT_CRON: longAgo(first),
  };
  const start = () => spawnService(environment(stores, settings));
  const service = await start();
  const partners: SettledPartner[] = [];
  const targets: Target[] = [];
  for (let i = 0; i < PARTNERS; i++) {
    const partner = await oldPartner(service.client, raw, first, 0);
    await raw`UPDATE partners SET spin_rate_limit = 1000000 WHERE partner_id = ${partner.partnerId}`;
    partners.push(partner);
    targets.push({ apiKey: partner.key, gameId: partner.gameId, wagerUsd: 0.25 });
  }
  const generator = startGenerator(cleanup);
  const load = (seconds: number, connections: number, rate: number | undefined) => {
    const order = { targets, players: PLAYERS, hasRequestId: true, connections, seconds, rate };
    return generator.load({ ...order, base: stage.service.base! });
  };
  const stage: Stage = {
    stores,
    directory,
    sql,
    raw,
    redis,
    partners,
    service,
    cell: partners[0]!.cell,
    days: Array.from({ length: DAYS }, (_, i) => shift(first, i)),
    today: shift(first, DAYS),
    restart: async () => {
      stage.service = await start();
    },
    flat: (seconds) => load(seconds, CONNECTIONS, undefined),
    paced: (seconds) => load(seconds, RATE_CONNECTIONS, RATE),
  };
  cleanup.add(() => stage.service.end('SIGKILL'));
  return stage;
}

const allBooked = ({ redis, cell }: Stage) =>
  until(
    async () => (await redis.xlen(`{c${cell}}:outbox`)) === 0,
    'all entries are committed',
    BOOKED_WITHIN_MS,
  );

/**
 * Fills all days with spins. The ids of a cell contain a time and never go back. So after the spins of each
 * day, the newest id of the cell is set to the start of the next day, ahead of the clock.
 */
async function fill(stage: Stage): Promise<void> {
  const { raw, redis, cell, days, today, flat } = stage;
  let perSecond = (await flat(5)).spins / 5;
  const startedMs = performance.now();
  let spins = 0;
  for (const day of days) {
    const made = await flat(Math.max(0.2, ROWS / DAYS / perSecond));
    spins += made.spins;
    perSecond = made.spins / made.seconds;
    await allBooked(stage);
    await bookedInto(raw, cell, day);
    await runIntoMoment(redis, cell, startOf(shift(day, 1)), 0);
  }
  await flat(0.5);
  await bookedInto(raw, cell, today);
  console.log(`${spins} spins in ${Math.round((performance.now() - startedMs) / 1000)} s`);
  const worker = await settlementWorker(stage.stores, today);
  await worker.job.turn();
  await worker.end();
  const bindFrom = String(idsOfDay(shift(today, -KEEP)).from);
  await raw`UPDATE cells SET binding_ms = ${startOf(today)}, bound_from_id = ${bindFrom}::bigint`;
  const [tables] = await raw`
    SELECT sum(pg_relation_size(inhrelid)) AS heap, sum(pg_indexes_size(inhrelid)) AS indexes,
      (SELECT count(*) FROM ledger) AS rows
    FROM pg_inherits WHERE inhparent = 'ledger'::regclass`;
  const [heap, indexes] = [Number(tables!.heap), Number(tables!.indexes)].map((bytes) =>
    round(bytes / Number(tables!.rows), 1),
  );
  console.log(`bytes per row in Postgres: table ${heap}, indexes ${indexes}`);
}

async function calm({ paced }: Stage): Promise<number> {
  const pieces = new Beside(paced);
  await pause(CALM_SECONDS * 1000);
  return (await pieces.end()).p99Ms;
}

/** Runs an archive command in its own process. */
async function command(
  { stores, directory, today }: Stage,
  name: StepOrder['command'],
  day: string,
): Promise<StepResult> {
  const order: StepOrder = {
    command: name,
    day,
    databaseUrl: stores.databaseUrl,
    directory,
    today,
    keepDays: KEEP,
  };
  const program = join(ROOT, 'dist', 'bench', 'archiveStep.js');
  const { stdout } = await run(process.execPath, [program, JSON.stringify(order)]);
  const result = JSON.parse(stdout) as StepResult;
  expectThat(result.refused === undefined, `${name} of ${day}: ${result.refused}`);
  return result;
}

async function archiveAll(stage: Stage): Promise<void> {
  const before = await calm(stage);
  const beside = new Beside(stage.paced);
  const results: StepResult[] = [];
  for (const day of stage.days) results.push(await command(stage, 'archive', day));
  const archiving = await beside.end();
  const p99Ms = { before, archiving: archiving.p99Ms, after: await calm(stage) };
  const sum = (value: (result: StepResult) => number): number =>
    results.reduce((total, each) => total + value(each), 0);
  const entries = sum((each) => each.entries);
  const figures = {
    entries,
    rowsPerSecond: Math.round(entries / sum((each) => each.seconds)),
    cpuMicrosARow: round((sum((each) => each.cpuMs) * 1000) / entries),
    bytesARow: round(sum((each) => each.bytes) / entries, 1),
    memoryMB: Math.round(Math.max(...results.map((each) => each.memoryBytes)) / MB),
    p99Ms,
    beside: archiving,
  };
  console.log(JSON.stringify(figures));
  expectThat(archiving.failed === 0, `${archiving.failed} spins failed during the archiving`);
  const verifying = performance.now();
  const check = await checkArchives(stage.directory);
  expectThat(check.faults.length === 0, `the archive has a fault: ${JSON.stringify(check.faults[0])}`);
  console.log(`verified ${check.entries} entries in ${round((performance.now() - verifying) / 1000)} s`);
}

async function dropAll(stage: Stage): Promise<void> {
  const beside = new Beside(stage.paced);
  const seconds: number[] = [];
  for (const day of stage.days.slice(0, -KEEP)) seconds.push((await command(stage, 'drop', day)).seconds);
  const dropping = await beside.end();
  console.log(
    JSON.stringify({ days: seconds.length, secondsADay: round(median(seconds)), beside: dropping }),
  );
  expectThat(dropping.failed === 0, `${dropping.failed} spins failed during the drop`);
}

async function main(cleanup: Cleanup): Promise<boolean> {
  const stage = await setUp(cleanup);
  await fill(stage);
  await archiveAll(stage);
  await compareSums(stage);
  await dropAll(stage);
  await allBooked(stage);
  console.log(problems.length === 0 ? 'ALL HELD' : `${problems.length} PROBLEMS`);
  return problems.length === 0;
}

/** The part of DuckDB's API that this benchmark uses. */
interface DuckDb {
  readonly DuckDBInstance: {
    create(): Promise<{
      connect(): Promise<{ runAndReadAll(sql: string): Promise<{ getRows(): unknown[][] }> }>;
    }>;
  };
}

/** DuckDB's package has 70 MB and only this program needs it, so it is installed into the cache once. */
async function duckDb(): Promise<DuckDb> {
  const folder = join(ROOT, '.cache', 'duckdb');
  const program = join(folder, 'node_modules', '@duckdb', 'node-api', 'lib', 'index.js');
  if (!existsSync(program)) {
    await mkdir(folder, { recursive: true });
    await run('npm', ['install', '--no-save', '--prefix', folder, DUCKDB]);
  }
  return (await import(pathToFileURL(program).href)) as DuckDb;
}

/** Verifies that DuckDB's sums over the archive files equal the sums of the settlement reports. */
async function compareSums({ raw, partners, directory }: Stage): Promise<void> {
  const { DuckDBInstance } = await duckDb();
  const duck = await (await DuckDBInstance.create()).connect();
  const startedMs = performance.now();
  const [statement] = docCode('docs/archive.md', 'sql');
  const reader = await duck.runAndReadAll(statement!.replaceAll('/archive/', `${directory}/`));
  const found = new Map(
    reader.getRows().map(([day, partner, ...sums]) => [`${day}/${partner}`, sums.map(Number)]),
  );
  console.log(`DuckDB read the files in ${round((performance.now() - startedMs) / 1000)} s`);
  let compared = 0;
  for (const { partnerId } of partners) {
    for (const { date, report } of await reportsOf(raw, partnerId)) {
      const expected = [report.totalSpins, report.totalWageredUsd, report.totalPaidOutUsd].map(Number);
      const sums = found.get(`${date}/${partnerId}`) ?? [0, 0, 0];
      expectThat(
        sums.join() === expected.join(),
        `DuckDB ${date}: found ${sums.join()}, expected ${expected.join()}`,
      );
      compared++;
    }
  }
  expectThat(compared >= partners.length * DAYS, 'the number of reports is smaller than the number of days');
  console.log(`the sums of ${compared} reports match DuckDB`);
}

await runToEnd(main);
