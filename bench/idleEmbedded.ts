/**
 * What a service with embedded stores takes while nobody asks anything: `npm run bench:idle:embedded [-- other builds]`. Each argument is the
 * folder of another build, whose service idles at the same time: on a machine that does other work only figures of one time compare.
 * User and system time of all threads, from some time after the start, when its rush is over. Needs Linux.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { STORES_FILE } from '../src/storesFile.js';
import { Cleanup } from '../test/support/cleanup.js';
import { mainOf, ROOT } from '../test/support/root.js';
import { pause } from '../test/support/wait.js';
import { CpuMeter, cpuBetween, requireProc } from './measure.js';
import { residentBytes } from './memory.js';
import { startServerProcess } from './processes.js';

const SETTLED_AFTER_MS = 80_000;
const SECONDS = 60;

interface Idle {
  readonly root: string;
  readonly pid: number;
  readonly cpu: CpuMeter;
  /** Since the stores' start: transactions of Postgres, commands of Redis, wake-ups of the server's main thread. */
  readonly counts: () => Promise<readonly number[]>;
}

const COUNTED = ['transactions', 'Redis commands', 'wake-ups of the main thread'];

requireProc();
const cleanup = new Cleanup();
try {
  const services: Idle[] = [];
  for (const root of [...process.argv.slice(2), ROOT]) services.push(await startIdle(root));
  await pause(SETTLED_AFTER_MS);
  const sample = () =>
    Promise.all(services.map(async ({ cpu, counts }) => ({ counts: await counts(), cpu: cpu.sample() })));
  const before = await sample();
  const from = performance.now();
  await pause(SECONDS * 1000);
  const seconds = (performance.now() - from) / 1000;
  const after = await sample();
  for (const [at, { root, pid }] of services.entries()) {
    const cpu = Object.entries(cpuBetween(before[at]!.cpu, after[at]!.cpu)).map(
      ([name, micros]) => [name, micros / seconds / 1e4] as const,
    );
    const total = cpu.reduce((sum, [, share]) => sum + share, 0);
    const rates = COUNTED.map((name, i) => {
      const rate = (after[at]!.counts[i]! - before[at]!.counts[i]!) / seconds;
      return `${name} ${rate.toFixed(1)}`;
    });
    process.stdout.write(
      `${root}: of a core ${[...cpu, ['total', total] as const].map(([name, share]) => `${name} ${share.toFixed(2)} %`).join(', ')}; ` +
        `a second ${rates.join(', ')}; ${(residentBytes(pid) / 1e6).toFixed(0)} MB\n`,
    );
  }
} finally {
  await cleanup.run();
}

async function startIdle(root: string): Promise<Idle> {
  const dataDir = await mkdtemp(join(tmpdir(), 'spindle-bench-'));
  cleanup.add(() => rm(dataDir, { recursive: true, force: true }));
  const env = { DATA_DIR: dataDir, PORT: '0', METRICS_PORT: '0', LOG_LEVEL: 'warn' };
  const { pid } = await startServerProcess({ program: mainOf(root), env }, cleanup);
  const { redisUrl, databaseUrl } = JSON.parse(readFileSync(join(dataDir, STORES_FILE), 'utf8')) as {
    readonly redisUrl: string;
    readonly databaseUrl: string;
  };
  const redis = new Redis(redisUrl);
  cleanup.add(() => redis.disconnect());
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  cleanup.add(() => sql.end());
  const [{ data }] = (await sql`SELECT current_setting('data_directory') AS data`) as [{ data: string }];
  const processes = {
    server: [pid],
    redis: [number(/^process_id:(\d+)/m, await redis.info('server'))],
    postgres: [number(/^(\d+)$/m, readFileSync(join(data, 'postmaster.pid'), 'utf8'))],
  };
  const counts = async (): Promise<readonly number[]> => {
    const [row] = (await sql`
      SELECT xact_commit + xact_rollback AS n FROM pg_stat_database WHERE datname = current_database()`) as [
      { n: string },
    ];
    return [
      Number(row.n),
      number(/^total_commands_processed:(\d+)/m, await redis.info('stats')),
      number(/^voluntary_ctxt_switches:\s+(\d+)/m, readFileSync(`/proc/${pid}/status`, 'utf8')),
    ];
  };
  return { root, pid, cpu: new CpuMeter(processes), counts };
}

function number(pattern: RegExp, text: string): number {
  const match = pattern.exec(text);
  if (match === null) throw new Error(`${pattern} is not in: ${text}`);
  return Number(match[1]);
}
