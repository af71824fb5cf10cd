/**
 * `npm run bench:archive -- [--rows 10000000] [--days 30] [--keep 5] [--rate 500]`
 *
 * A ledger of many days, which the service itself books: archived, verified, read by DuckDB and by hyparquet, and dropped but for some
 * days, while spins go on; each command is killed at each of its steps once and repeated. Then the books are audited, Redis is emptied
 * and rebuilt, and the reports of dropped days are verified from the archive. Exit status 0 only if all of it held. Needs Linux.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';
import postgres from 'postgres';
import { archiveTotals, checkArchives } from '../src/archive/readArchive.js';
import { audit } from '../src/audit/audit.js';
import { recover } from '../src/cli/recover.js';
import { connectPostgres, type Sql } from '../src/postgres/client.js';
import { idsOfDay } from '../src/postgres/ledgerDays.js';
import { verifySettlements } from '../src/settlement/verify.js';
import { type Cleanup, runToEnd } from '../test/support/cleanup.js';
import { openNodes, rawRedis } from '../test/support/redis.js';
import { ROOT } from '../test/support/root.js';
import type { ServerProcess } from '../test/support/serverProcess.js';
import { environment, spawnService } from '../test/support/service.js';
import {
  bookedInto,
  DAY_MS,
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
} from '../test/support/settlement.js';
import { ownStores } from '../test/support/stores.js';
import { until } from '../test/support/wait.js';
import type { StepOrder, StepResult } from './archiveStep.js';
import { startGenerator } from './generator.js';
import type { Target } from './load.js';

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
const PARTNERS = 2;
const PLAYERS = 20_000;
const CONNECTIONS = 64;
const RATE_CONNECTIONS = 32;
const CALM_SECONDS = 60;
const PIECE_SECONDS = 10;
const BOOKED_WITHIN_MS = 120_000;
const ARCHIVE_STEPS = ['archive.written', 'archive.read-back', 'archive.renamed', 'archive.recorded'];
const DROP_STEPS = ['drop.boundary', 'drop.detached', 'drop.dropped'];
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

/** Open-loop load until it is ended. */
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
      ...{ spins: this.#spins, failed: this.#failed },
      ...{ p99Ms: round(median(this.#p99s)), pieces: this.#p99s.length },
    };
  }
}

async function main(cleanup: Cleanup): Promise<boolean> {
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
  const days = Array.from({ length: DAYS }, (_, i) => shift(first, i));
  const today = shift(first, DAYS);
  const settings = {
    ...ENTRIES_AHEAD,
    ...{ CELLS: '1', LOG_LEVEL: 'warn', TEST_CONSTANTS: undefined, SETTLEMENT_CRON: longAgo(first) },
  };
  let service: ServerProcess = await spawnService(environment(stores, settings));
  cleanup.add(() => service.end('SIGKILL'));
  const partners: SettledPartner[] = [];
  const targets: Target[] = [];
  for (let i = 0; i < PARTNERS; i++) {
    const partner = await oldPartner(service.client, raw, first, 0);
    await raw`UPDATE partners SET spin_rate_limit = 1000000 WHERE partner_id = ${partner.partnerId}`;
    partners.push(partner);
    targets.push({ apiKey: partner.key, gameId: partner.gameId, wagerUsd: 0.25 });
  }
  const generator = await startGenerator(cleanup);
  console.log(`load: ${generator.name}`);
  const common = { targets, players: PLAYERS, hasRequestId: true };
  const flat = (seconds: number) =>
    generator.load({ ...common, base: service.base!, connections: CONNECTIONS, seconds, rate: undefined });
  const paced = (seconds: number) =>
    generator.load({ ...common, base: service.base!, connections: RATE_CONNECTIONS, seconds, rate: RATE });

  const cell = partners[0]!.cell;
  let rows = 0;
  let perSecond = (await flat(5)).spins / 5;
  const filling = performance.now();
  for (const day of days) {
    const made = await flat(Math.max(0.2, ROWS / DAYS / perSecond));
    rows += made.spins;
    perSecond = made.spins / made.seconds;
    await until(async () => (await redis.xlen(`{c${cell}}:outbox`)) === 0, 'all is booked', BOOKED_WITHIN_MS);
    await bookedInto(raw, cell, day);
    await runIntoMoment(redis, cell, startOf(shift(day, 1)), 0);
    console.log(`${day}: ${made.spins} spins at ${Math.round(perSecond)}/s`);
  }
  await flat(0.5);
  await bookedInto(raw, cell, today);
  console.log(`${rows} spins in ${Math.round((performance.now() - filling) / 1000)} s`);
  const worker = await settlementWorker(stores, today);
  await worker.job.turn();
  await worker.end();
  await raw`UPDATE cells SET binding_ms = ${startOf(today)}, bound_from_id = ${String(idsOfDay(shift(today, -KEEP)).from)}::bigint`;

  const calm = async (): Promise<number> => {
    const pieces = new Beside(paced);
    await new Promise((resolve) => setTimeout(resolve, CALM_SECONDS * 1000));
    return (await pieces.end()).p99Ms;
  };
  const command = async (
    order: Pick<StepOrder, 'command' | 'day' | 'killAt'>,
  ): Promise<StepResult | undefined> => {
    const whole: StepOrder = { ...order, databaseUrl: stores.databaseUrl, directory, today, keepDays: KEEP };
    try {
      const { stdout } = await run(process.execPath, [
        join(ROOT, 'dist', 'bench', 'archiveStep.js'),
        JSON.stringify(whole),
      ]);
      const result = JSON.parse(stdout) as StepResult;
      expectThat(result.refused === undefined, `${order.command} of ${order.day}: ${result.refused}`);
      return result;
    } catch (error) {
      const { signal } = error as { signal?: string };
      expectThat(signal === 'SIGKILL' && order.killAt !== undefined, `${order.command}: ${String(error)}`);
      return undefined;
    }
  };
  const filesOf = async (day: string): Promise<string> => {
    const digest = createHash('sha256');
    for (const name of (await readdir(join(directory, day))).sort())
      digest.update(name).update(await readFile(join(directory, day, name)));
    return digest.digest('hex');
  };

  const [tables] = await raw`
    SELECT sum(pg_relation_size(inhrelid)) AS heap, sum(pg_indexes_size(inhrelid)) AS indexes,
      (SELECT count(*) FROM ledger) AS rows
    FROM pg_inherits WHERE inhparent = 'ledger'::regclass`;
  console.log(
    `bytes a row in Postgres: ${round(Number(tables!.heap) / Number(tables!.rows), 1)}, indexes ${round(Number(tables!.indexes) / Number(tables!.rows), 1)}`,
  );

  const p99Before = await calm();
  let beside = new Beside(paced);
  const results: StepResult[] = [];
  for (const [i, day] of days.entries()) {
    for (const killAt of i === 0 ? ARCHIVE_STEPS : []) await command({ command: 'archive', day, killAt });
    results.push((await command({ command: 'archive', day }))!);
    if (i > 0) continue;
    const files = await filesOf(day);
    await command({ command: 'archive', day });
    expectThat(files === (await filesOf(day)), 'an archive that is repeated has other bytes');
  }
  const archiving = await beside.end();
  const p99After = await calm();
  const sum = (value: (result: StepResult) => number): number =>
    results.reduce((total, each) => total + value(each), 0);
  const entries = sum((each) => each.entries);
  console.log(
    JSON.stringify({
      ...{ entries, rowsPerSecond: Math.round(entries / sum((each) => each.seconds)) },
      cpuMicrosARow: round((sum((each) => each.cpuMs) * 1000) / entries),
      bytesARow: round(sum((each) => each.bytes) / entries, 1),
      memoryMB: Math.round(Math.max(...results.map((each) => each.memoryBytes)) / MB),
      p99Ms: { before: p99Before, archiving: archiving.p99Ms, after: p99After },
      besideArchive: archiving,
    }),
  );
  expectThat(archiving.failed === 0, `${archiving.failed} spins failed beside the archive`);

  const verifying = performance.now();
  const check = await checkArchives(directory);
  expectThat(check.faults.length === 0, `the archive is not whole: ${JSON.stringify(check.faults[0])}`);
  console.log(`verified ${check.entries} entries in ${Math.round((performance.now() - verifying) / 1000)} s`);
  await compareSums(raw, partners, directory);

  beside = new Beside(paced);
  const dropped = days.slice(0, -KEEP);
  const drops: number[] = [];
  for (const [i, day] of dropped.entries()) {
    for (const killAt of i === 0 ? DROP_STEPS : []) await command({ command: 'drop', day, killAt });
    const done = await command({ command: 'drop', day });
    if (done !== undefined) drops.push(done.seconds);
  }
  const dropping = await beside.end();
  console.log(
    JSON.stringify({
      days: dropped.length,
      secondsADay: round(median(drops)),
      p99Ms: dropping.p99Ms,
      beside: dropping,
    }),
  );
  expectThat(dropping.failed === 0, `${dropping.failed} spins failed beside the drop`);

  await until(async () => (await redis.xlen(`{c${cell}}:outbox`)) === 0, 'all is booked', BOOKED_WITHIN_MS);
  await audited(stores.redisUrl, sql, 'after the drop');
  await service.end();
  await redis.flushdb();
  const { nodes, close } = await openNodes(stores.redisUrl);
  const states = await recover(sql, nodes, {
    ...{ isCheck: false, isToReplace: true, isVolatileAllowed: true, resume: [], progress: () => {} },
    clocks: { now: Date.now, skewMaxMs: 366 * DAY_MS },
  });
  close();
  expectThat(!states.some(({ state }) => state === 'failed'), 'a cell could not be rebuilt');
  service = await spawnService(environment(stores, settings));
  const again = await paced(PIECE_SECONDS);
  expectThat(again.spins > 0 && again.errors === 0, 'no spin is answered after the rebuild');
  await until(async () => (await redis.xlen(`{c${cell}}:outbox`)) === 0, 'all is booked', BOOKED_WITHIN_MS);
  await audited(stores.redisUrl, sql, 'after the rebuild');
  const { differences, reports } = await verifySettlements(sql, undefined, {
    archive: archiveTotals(directory),
  });
  expectThat(differences.length === 0, `settlement differs: ${JSON.stringify(differences[0])}`);
  console.log(`${reports} reports verified, those of dropped days from the archive`);
  console.log(problems.length === 0 ? 'ALL HELD' : `${problems.length} PROBLEMS`);
  return problems.length === 0;
}

/** DuckDB's sums of the files are those of the settlement reports. */
async function compareSums(
  raw: postgres.Sql,
  partners: readonly SettledPartner[],
  directory: string,
): Promise<void> {
  const duck = await (await DuckDBInstance.create()).connect();
  const startedMs = performance.now();
  const reader = await duck.runAndReadAll(`
    SELECT strftime(make_timestamp((entry_id >> 22) * 1000), '%Y-%m-%d') AS day, partner_id, count(*) AS spins,
      CAST(sum(wager_micros) AS VARCHAR) AS wagered, CAST(sum(credit_micros) AS VARCHAR) AS paid
    FROM read_parquet('${directory}/*/ledger.parquet') WHERE kind = 1 GROUP BY ALL`);
  const found = new Map(
    reader.getRows().map(([day, partner, ...sums]) => [`${day}/${partner}`, sums.map(String)]),
  );
  console.log(`DuckDB read them in ${round((performance.now() - startedMs) / 1000)} s`);
  let compared = 0;
  for (const { partnerId } of partners) {
    for (const { date, report } of await reportsOf(raw, partnerId)) {
      const expected = [
        report.totalSpins,
        microsOf(report.totalWageredUsd),
        microsOf(report.totalPaidOutUsd),
      ].map(String);
      const sums = found.get(`${date}/${partnerId}`) ?? ['0', '0', '0'];
      expectThat(
        sums.join() === expected.join(),
        `DuckDB ${date}: ${sums.join()} in place of ${expected.join()}`,
      );
      compared++;
    }
  }
  expectThat(compared >= partners.length * DAYS, 'there are fewer reports than days');
  console.log(`${compared} reports have DuckDB's sums`);
}

async function audited(redisUrl: string, sql: Sql, when: string): Promise<void> {
  const startedMs = performance.now();
  const nodes = await openNodes(redisUrl);
  const report = await audit(sql, nodes.nodes, { limit: 3, redraw: undefined, onProgress: () => {} });
  nodes.close();
  const { violations, interrupted, checks } = report;
  expectThat(
    violations === 0 && interrupted === undefined,
    `audit ${when}: ${interrupted ?? JSON.stringify(checks.flatMap(({ listed }) => listed))}`,
  );
  console.log(
    `audit ${when}: ${violations} violations, ${Math.round((performance.now() - startedMs) / 1000)} s`,
  );
}

await runToEnd(main);
