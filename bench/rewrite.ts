/**
 * `npm run bench:rewrite -- [--players 10000000] [--seconds 20] [--rounds 3] [--share 0.5] [--redis NAME=VALUE …]`
 *
 * How much later answers come while Redis rewrites its log: an open loop at a share of capacity on a data set of about a
 * gigabyte (10,000,000 players), in each round once without and once with a rewrite, which begins after a second. `--redis`
 * sets a setting of the server first. Prints p99.9, the longest answer, how long the fork and the rewrite took, and each slow second
 * with what happened in it. Needs Linux.
 */
import { parseArgs } from 'node:util';
import { Cleanup } from '../test/support/cleanup.js';
import { pause } from '../test/support/wait.js';
import { startGenerator } from './generator.js';
import { grow } from './grow.js';
import { requireProc } from './measure.js';
import { measurePeriod } from './period.js';
import { type Service, startService } from './service.js';
import { renderSlowSeconds } from './slowSeconds.js';
import { median } from './summary.js';

const CONNECTIONS = 64;
const CAPACITY_SECONDS = 6;
const WARM_UP_SECONDS = 2;
/** From the begin of the load until the log is rewritten. */
const REWRITE_AFTER_MS = 1000 * (WARM_UP_SECONDS + 1);
const MB = 1_048_576;

function readOptions() {
  const { values } = parseArgs({
    options: {
      players: { type: 'string', default: '10000000' },
      seconds: { type: 'string', default: '20' },
      rounds: { type: 'string', default: '3' },
      share: { type: 'string', default: '0.5' },
      redis: { type: 'string', multiple: true, default: [] },
    },
  });
  const positive = (name: 'players' | 'seconds' | 'rounds' | 'share'): number => {
    const value = Number(values[name]);
    if (!(value > 0)) throw new Error(`--${name} must be a number above 0`);
    return value;
  };
  return {
    players: positive('players'),
    seconds: positive('seconds'),
    rounds: positive('rounds'),
    share: positive('share'),
    settings: values.redis.map((setting) => setting.split('=') as [string, string]),
  };
}

async function measure(cleanup: Cleanup): Promise<void> {
  const { players, seconds, rounds, share, settings } = readOptions();
  const service = await startService(
    { ack: 'redis', frontEnds: 0, partners: 1, games: 1, gameType: 'slot' },
    cleanup,
  );
  const { redis } = service.stores;
  // It is rewritten when this program says so, and not because it has grown.
  await redis.config('SET', 'auto-aof-rewrite-percentage', '0');
  for (const [name, value] of settings) await redis.config('SET', name, value);
  const generator = await startGenerator(cleanup);
  const order = {
    base: service.base,
    targets: service.targets,
    connections: CONNECTIONS,
    players,
    hasRequestId: true,
  };
  const closed = { ...order, rate: undefined };
  await grow(service, { players });
  const full = await measurePeriod(service, generator, closed, {
    seconds: CAPACITY_SECONDS,
    warmUpSeconds: WARM_UP_SECONDS,
  });
  const rate = Math.round(full.spinsPerSecond * share);
  const usedMb = Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))![1]) / MB;
  console.log(
    `${usedMb.toFixed(0)} MB in Redis, capacity ${full.spinsPerSecond.toFixed(0)} spins/s, load ${rate} spins/s`,
  );
  const added: number[] = [];
  const open = (rewriting: Promise<string> | undefined) =>
    measureOnce({ ...service, service }, generator, { ...order, rate }, seconds, rewriting);
  for (let round = 1; round <= rounds; round++) {
    const without = await open(undefined);
    console.log(`round ${round}, without a rewrite: ${without.text}`);
    const during = await open(rewrite(service));
    console.log(`round ${round}, with a rewrite:    ${during.text}`);
    added.push(during.p999Ms - without.p999Ms);
  }
  console.log(`p99.9 with a rewrite less that without: median ${median(added).toFixed(1)} ms`);
}

async function measureOnce(
  server: Parameters<typeof measurePeriod>[0],
  generator: Parameters<typeof measurePeriod>[1],
  order: Parameters<typeof measurePeriod>[2],
  seconds: number,
  rewriting: Promise<string> | undefined,
): Promise<{ readonly p999Ms: number; readonly text: string }> {
  const { load, slowSeconds = [] } = await measurePeriod(server, generator, order, {
    seconds,
    warmUpSeconds: WARM_UP_SECONDS,
  });
  const facts = (await rewriting) ?? '';
  const { p50Ms, p99Ms, p999Ms, maxMs } = load;
  const times = `p50 ${p50Ms.toFixed(1)}, p99 ${p99Ms.toFixed(1)}, p99.9 ${p999Ms.toFixed(1)}, longest ${maxMs.toFixed(1)} ms`;
  const slow = slowSeconds.length === 0 ? [] : renderSlowSeconds(slowSeconds, seconds);
  return { p999Ms, text: [`${times}${facts}`, ...slow].join('\n') };
}

/** Has the log rewritten a second into the load. @returns how long it took */
async function rewrite({ stores: { redis } }: Service): Promise<string> {
  await pause(REWRITE_AFTER_MS);
  const started = performance.now();
  await redis.bgrewriteaof();
  const read = async (section: string, name: string): Promise<string> =>
    new RegExp(`^${name}:(\\S+)`, 'm').exec(await redis.info(section))![1]!;
  do await pause(50);
  while (
    (await read('persistence', 'aof_rewrite_in_progress')) === '1' ||
    (await read('persistence', 'aof_rewrite_scheduled')) === '1'
  );
  const status = await read('persistence', 'aof_last_bgrewrite_status');
  const forkMs = Number(await read('stats', 'latest_fork_usec')) / 1000;
  const tookS = (performance.now() - started) / 1000;
  return `; fork ${forkMs.toFixed(1)} ms, rewrite ${tookS.toFixed(1)} s (${status})`;
}

const cleanup = new Cleanup();
const interrupted = (): void => {
  cleanup.run().finally(() => process.exit(130));
};
process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
try {
  requireProc();
  await measure(cleanup);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await cleanup.run();
}
