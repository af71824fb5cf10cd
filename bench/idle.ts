/**
 * Measures what idle processes use and what they request from the stores: CPU time of all threads,
 * transactions, commands (including commands within scripts), wake-ups of the main threads, and memory. The
 * measurement starts after the initial activity has ended. On a machine with other work, only figures from
 * the same run are comparable. Needs Linux, and 100 MB of memory for each process.
 *
 * `npm run bench -- idle [--seconds 30] 1 10`       numbers of front ends, beside one worker
 * `npm run bench -- idle --embedded [other builds]`  one process with embedded stores, compared with
 *                                                    other builds (folders) at the same time
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { STORES_FILE } from '../src/platform/storesFile.js';
import { type Cleanup, runToEnd } from '../test/support/cleanup.js';
import { mainOf, ROOT } from '../test/support/root.js';
import { environment, spawnService } from '../test/support/service.js';
import { ownStores } from '../test/support/stores.js';
import { pause } from '../test/support/wait.js';
import { CpuMeter, cpuBetween, type Processes, requireProc, residentBytes } from './measure.js';
import { startServerProcess } from './service.js';
import { wholeNumber } from './shape.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    embedded: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '60' },
    settle: { type: 'string', default: '80' },
  },
});
const SECONDS = wholeNumber('seconds', values.seconds);
const SETTLE_SECONDS = wholeNumber('settle', values.settle, 0);
/** Number of front ends that start at the same time. */
const STARTS = 4;
const LEAST_SHOWN = 0.1;

interface Idle {
  readonly name: string;
  readonly redis: Redis;
  readonly sql: postgres.Sql;
  /** Processes by name: `server`, `redis`, `postgres`, and `worker` if it is a separate process. */
  readonly processes: Processes;
}

function open(
  name: string,
  stores: { readonly redisUrl: string; readonly databaseUrl: string },
  processes: Processes,
  cleanup: Cleanup,
): Idle {
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  cleanup.add(() => redis.disconnect());
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  cleanup.add(() => sql.end());
  return { name, redis, sql, processes };
}

/** Returns counters of a service and its stores by name, such as the number of transactions. */
async function countsOf({ redis, sql, processes }: Idle): Promise<Map<string, number>> {
  const [row] =
    await sql`SELECT xact_commit + xact_rollback AS n FROM pg_stat_database WHERE datname = current_database()`;
  const commands = (await redis.info('commandstats')).matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm);
  const wakeUps = processes.server!.map((pid) =>
    number(/^voluntary_ctxt_switches:\s+(\d+)/m, readFileSync(`/proc/${pid}/status`, 'utf8')),
  );
  return new Map([
    ['transactions', Number(row!.n)],
    ['wake-ups of the main threads', wakeUps.reduce((sum, each) => sum + each, 0)],
    ...[...commands].map(([, name, calls]): [string, number] => [name!, Number(calls)]),
  ]);
}

/** Measures all idle services over the same seconds. */
async function measure(services: readonly Idle[]): Promise<void> {
  await pause(SETTLE_SECONDS * 1000);
  const meters = services.map(({ processes }) => new CpuMeter(processes));
  const sample = () =>
    Promise.all(
      services.map(async (service, at) => ({ counts: await countsOf(service), cpu: meters[at]!.sample() })),
    );
  const before = await sample();
  const from = performance.now();
  await pause(SECONDS * 1000);
  const seconds = (performance.now() - from) / 1000;
  const after = await sample();
  for (const [at, { name, processes }] of services.entries()) {
    const micros = Object.entries(cpuBetween(before[at]!.cpu, after[at]!.cpu));
    const total = micros.reduce((sum, [, each]) => sum + each, 0);
    const cpu = [...micros, ['total', total] as const].map(
      ([process, each]) => `${process} ${(each / seconds / 1e4).toFixed(2)} %`,
    );
    const rates = [...after[at]!.counts]
      .map(([what, count]) => [what, (count - (before[at]!.counts.get(what) ?? 0)) / seconds] as const)
      .filter(([, rate]) => rate >= LEAST_SHOWN)
      .map(([what, rate]) => `${what} ${rate.toFixed(1)}`);
    const megabytes = processes.server!.map((pid) => (residentBytes(pid) / 1e6).toFixed(0));
    console.log(
      `${name}: CPU as a share of one core ${cpu.join(', ')}; per second ${rates.join(', ')}; memory in MB ${megabytes.join(', ')}`,
    );
  }
}

async function frontEnds(cleanup: Cleanup): Promise<void> {
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  const start = async (ROLES: string): Promise<number> => {
    const env = environment(stores, { SPIN_DEADLINE_MS: '3000', TEST_CONSTANTS: undefined, ROLES });
    const service = await spawnService(env);
    cleanup.add(() => service.stop());
    return service.pid;
  };
  const worker = [await start('worker')];
  const server: number[] = [];
  const processes = { worker, server, redis: [stores.redis.pid()!], postgres: [stores.postgres.pid()!] };
  for (const count of positionals.map((each) => wholeNumber('front ends', each))) {
    while (server.length < count) {
      const starts = Array.from({ length: Math.min(STARTS, count - server.length) }, () => start('http'));
      server.push(...(await Promise.all(starts)));
    }
    await measure([open(`1 worker, ${count} front ends`, stores, processes, cleanup)]);
  }
}

async function startEmbedded(root: string, cleanup: Cleanup): Promise<Idle> {
  const dataDir = await mkdtemp(join(tmpdir(), 'spindle-bench-'));
  cleanup.add(() => rm(dataDir, { recursive: true, force: true }));
  const env = { DATA_DIR: dataDir, PORT: '0', METRICS_PORT: '0', LOG_LEVEL: 'warn' };
  const { pid } = await startServerProcess({ program: mainOf(root), env }, cleanup);
  const stores = JSON.parse(readFileSync(join(dataDir, STORES_FILE), 'utf8')) as {
    readonly redisUrl: string;
    readonly databaseUrl: string;
  };
  const asked = open(root, stores, {}, cleanup);
  const [row] = await asked.sql`SELECT current_setting('data_directory') AS folder`;
  const redis = [number(/^process_id:(\d+)/m, await asked.redis.info('server'))];
  const main = [number(/^(\d+)$/m, readFileSync(join(row!.folder, 'postmaster.pid'), 'utf8'))];
  return { ...asked, processes: { server: [pid], redis, postgres: main } };
}

function number(pattern: RegExp, text: string): number {
  const match = pattern.exec(text);
  if (match === null) throw new Error(`${pattern} was not found in: ${text}`);
  return Number(match[1]);
}

await runToEnd(async (cleanup) => {
  requireProc();
  if (values.embedded) {
    const services: Idle[] = [];
    for (const root of [...positionals, ROOT]) services.push(await startEmbedded(root, cleanup));
    await measure(services);
  } else await frontEnds(cleanup);
  return true;
});
