/**
 * What processes that have nothing to do ask of the stores: `npm run bench:idle -- 1 10` (numbers of front ends, beside one worker),
 * and what that costs Redis and Postgres. Needs Linux, and 100 MB of memory for each front end.
 */
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { Cleanup } from '../test/support/cleanup.js';
import { environment, spawnService } from '../test/support/service.js';
import { ownStores } from '../test/support/stores.js';
import { pause } from '../test/support/wait.js';
import { CpuMeter, cpuBetween } from './measure.js';
import { residentBytes } from './memory.js';

const SECONDS = 30;
const SETTLED_AFTER_MS = 5000;
/** Front ends that start at once. */
const STARTS = 4;

const numbers = process.argv.slice(2).map(Number);
const cleanup = new Cleanup();
try {
  const stores = await ownStores();
  cleanup.add(() => stores.drop());
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  cleanup.add(() => redis.disconnect());
  const sql = postgres(stores.databaseUrl, { max: 1, onnotice: () => {} });
  cleanup.add(() => sql.end());

  /** Calls of each command, those within scripts included. */
  const commands = async (): Promise<Map<string, number>> =>
    new Map(
      [...(await redis.info('commandstats')).matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(
        ([, name, calls]) => [name!, Number(calls)],
      ),
    );
  const transactions = async (): Promise<number> => {
    const [row] =
      await sql`SELECT xact_commit + xact_rollback AS n FROM pg_stat_database WHERE datname = current_database()`;
    return Number(row!.n);
  };

  const start = async (more: NodeJS.ProcessEnv): Promise<number> => {
    const service = await spawnService(
      environment(stores, { SPIN_DEADLINE_MS: '3000', TEST_CONSTANTS: undefined, ...more }),
    );
    cleanup.add(() => service.stop());
    return service.pid;
  };
  await start({ ROLES: 'worker' });
  const fronts: number[] = [];
  for (const number of numbers) {
    while (fronts.length < number) {
      const starts = Array.from({ length: Math.min(STARTS, number - fronts.length) }, () =>
        start({ ROLES: 'http' }),
      );
      fronts.push(...(await Promise.all(starts)));
    }
    await pause(SETTLED_AFTER_MS);
    const meter = new CpuMeter({ redis: [stores.redis.pid()!], postgres: [stores.postgres.pid()!], fronts });
    const before = { commands: await commands(), transactions: await transactions(), cpu: meter.sample() };
    const from = performance.now();
    await pause(SECONDS * 1000);
    const seconds = (performance.now() - from) / 1000;
    const cpu = cpuBetween(before.cpu, meter.sample());
    const done = (await transactions()) - before.transactions;
    const rates = [...(await commands())]
      .map(([name, calls]) => [name, (calls - (before.commands.get(name) ?? 0)) / seconds] as const)
      .filter(([, rate]) => rate >= 0.1)
      .sort(([, a], [, b]) => b - a);
    const all = rates.reduce((sum, [, rate]) => sum + rate, 0);
    const share = (name: string): string => `${(cpu[name]! / seconds / 1e4).toFixed(2)} %`;
    const megabytes = fronts.reduce((sum, pid) => sum + residentBytes(pid), 0) / number / 1e6;
    process.stdout.write(
      `1 worker, ${number} front ends: ${(done / seconds).toFixed(1)} transactions/s, ${all.toFixed(1)} Redis commands/s ` +
        `(${rates.map(([name, rate]) => `${name} ${rate.toFixed(1)}`).join(', ')}); of a core Redis ${share('redis')}, ` +
        `Postgres ${share('postgres')}, the front ends ${share('fronts')}; ${megabytes.toFixed(0)} MB a front end\n`,
    );
  }
} finally {
  await cleanup.run();
}
