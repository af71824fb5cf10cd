/**
 * Defines the faults of the processes, stores and connections of a chaos run. Each fault heals itself before
 * it resolves.
 */
import type { Redis } from 'ioredis';
import postgres from 'postgres';
import { HOSTILE_SETTINGS } from '../support/hostileSettings.js';
import type { Cable } from '../support/proxy.js';
import type { Random } from '../support/random.js';
import { rawRedis } from '../support/redis.js';
import type { OwnStores } from '../support/stores.js';
import { pause } from '../support/wait.js';
import { FAILOVERS } from './failovers.js';
import type { Arena, FaultKind } from './faultKind.js';
import { LOG_FAULTS } from './logFaults.js';
import { DAMAGED_POSITION, RESTORES } from './restores.js';
import { STOPPED } from './stopped.js';
import { WRONG_CLOCKS } from './wrongClock.js';

/** Range in ms for which a process is stopped. It contains the 3 s of a worker's lease. */
const STOP_MS = [1000, 6000] as const;
/** Range in ms that is longer than a worker's lease. */
const STOP_WORKER_MS = [3600, 5200] as const;
const STORE_STOP_MS = [800, 4500] as const;
const AWAY_MS = [1500, 4000] as const;
const HOLD_MS = [600, 2500] as const;
/** Delay in ms that is longer than a call's deadline and shorter than the allowed clock difference. */
const LATE_MS = 8000;
const SWALLOW_MS = [300, 3800] as const;
const CUTS = [3, 8] as const;
const CUT_EVERY_MS = [20, 350] as const;
const DELAY_MS = [5, 300] as const;
const SPARE_MEMORY_BYTES = 65_536;
/** Range in ms for which the disk stays full. It is long enough that the store writes to the full disk. */
const DISK_FULL_MS = [300, 1200] as const;

export const FAULTS = {
  'kill-service': {
    subject: 'service',
    async run({ fleet }, random) {
      random.pick(fleet.fronts).kill();
    },
  },
  'stop-service': {
    subject: 'service',
    async run({ fleet }, random) {
      const front = random.pick(fleet.fronts);
      front.freeze();
      await pause(random.whole(...STOP_MS));
      front.thaw();
    },
  },
  // The fault kills whichever process currently writes the ledger.
  'kill-worker': {
    subject: 'service',
    async run({ fleet }) {
      (await fleet.owner()).kill();
    },
  },
  'stop-worker': {
    subject: 'service',
    async run({ fleet }, random) {
      const owner = await fleet.owner();
      owner.freeze();
      await pause(random.whole(...STOP_WORKER_MS));
      owner.thaw();
    },
  },
  'kill-redis': {
    subject: 'redis',
    async run({ stores }) {
      await stores.redis.kill();
    },
  },
  'stop-redis': {
    subject: 'redis',
    async run({ stores }, random) {
      await stores.redis.freeze();
      await pause(random.whole(...STORE_STOP_MS));
      stores.redis.thaw();
    },
  },
  'kill-postgres': {
    subject: 'postgres',
    async run({ stores }) {
      await stores.postgres.kill();
    },
  },
  'stop-postgres': {
    subject: 'postgres',
    async run({ stores }, random) {
      await stores.postgres.freeze();
      await pause(random.whole(...STORE_STOP_MS));
      stores.postgres.thaw();
    },
  },
  'postgres-away': {
    subject: 'postgres',
    async run({ stores }, random) {
      await stores.postgres.stop();
      await pause(random.whole(...AWAY_MS));
      await stores.postgres.start();
    },
  },
  'cut-redis': {
    subject: 'redis-cable',
    run: (arena, random) => cut(cables(arena, random, 'redis'), random),
  },
  'cut-postgres': {
    subject: 'postgres-cable',
    run: (arena, random) => cut(cables(arena, random, 'postgres'), random),
  },
  'slow-redis': {
    subject: 'redis-cable',
    run: (arena, random) => slow(cables(arena, random, 'redis'), random),
  },
  'slow-postgres': {
    subject: 'postgres-cable',
    run: (arena, random) => slow(cables(arena, random, 'postgres'), random),
  },
  'swallow-redis': {
    subject: 'redis-cable',
    run: (arena, random) => swallow(cables(arena, random, 'redis'), random),
  },
  'swallow-postgres': {
    subject: 'postgres-cable',
    run: (arena, random) => swallow(cables(arena, random, 'postgres'), random),
  },
  // A script call is delayed. It runs long after its caller timed out and the same request was sent again.
  'late-redis': {
    subject: 'redis-cable',
    async run(arena, random) {
      const [first] = cables(arena, random, 'redis') as [Cable];
      await Promise.race([first.holdLate(LATE_MS), pause(LATE_MS + HOLD_MS[1])]);
      first.disarm();
    },
  },
  // Every new session starts with settings that contradict those that the service depends on.
  'hostile-role': {
    subject: 'postgres',
    async run({ stores }, random) {
      await withRole(stores, HOSTILE_SETTINGS, () => pause(random.whole(...AWAY_MS)));
    },
  },
  'disk-full': {
    subject: 'redis',
    needsDisk: true,
    async run({ stores }, random) {
      await stores.fillDisk();
      await pause(random.whole(...DISK_FULL_MS));
      await stores.emptyDisk();
    },
  },
  'memory-full': {
    subject: 'redis',
    async run({ stores }, random) {
      await withRedis(stores, async (redis) => {
        const used = /^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1];
        await redis.config('SET', 'maxmemory', String(Number(used) + SPARE_MEMORY_BYTES));
        await pause(random.whole(...HOLD_MS));
        await redis.config('SET', 'maxmemory', '0');
      });
    },
  },
  // Redis answers reads and refuses every write, as after the loss of its replicas.
  'refuse-redis': {
    subject: 'redis',
    async run({ stores }, random) {
      await withRedis(stores, async (redis) => {
        await redis.config('SET', 'min-replicas-to-write', '1');
        await pause(random.whole(...HOLD_MS));
        await redis.config('SET', 'min-replicas-to-write', '0');
      });
    },
  },
  // Postgres answers reads and refuses every write, as a standby does.
  'read-only-postgres': {
    subject: 'postgres',
    async run({ stores }, random) {
      await withRole(stores, ['default_transaction_read_only = on'], () => pause(random.whole(...AWAY_MS)));
    },
  },
  'wipe-redis': {
    subject: 'redis',
    destroys: true,
    async run({ stores }) {
      await stores.redis.stop();
      await stores.wipeRedis();
      await stores.redis.start();
    },
  },
  'stale-redis': {
    subject: 'redis',
    destroys: true,
    prepare: ({ stores }) => stores.copyRedis(),
    async run({ stores }) {
      await stores.redis.stop();
      await stores.restoreRedis();
      await stores.redis.start();
    },
  },
  // Redis restarts with an older copy of its data. All processes are killed too, so no process remembers the
  // answers given since the copy.
  'stale-redis-restart': {
    subject: 'redis',
    destroys: true,
    prepare: ({ stores }) => stores.copyRedis(),
    async run({ stores, fleet }) {
      await stores.redis.stop();
      await stores.restoreRedis();
      for (const service of fleet.services) service.kill();
      await stores.redis.start();
    },
  },
  flushall: {
    subject: 'redis',
    destroys: true,
    async run({ stores }) {
      await withRedis(stores, (redis) => redis.flushall());
    },
  },
  ...FAILOVERS,
  ...LOG_FAULTS,
  ...STOPPED,
  ...WRONG_CLOCKS,
  ...RESTORES,
  ...DAMAGED_POSITION,
} as const satisfies Record<string, FaultKind>;

export type FaultName = keyof typeof FAULTS;
export const FAULT_NAMES = Object.keys(FAULTS) as FaultName[];
export const faultKind = (name: FaultName): FaultKind => FAULTS[name];

/** Runs a callback with a Redis connection that bypasses the proxies. */
export async function withRedis<T>(
  { redis: { url } }: Pick<OwnStores, 'redis'>,
  use: (redis: Redis) => Promise<T>,
): Promise<T> {
  const redis = rawRedis(url);
  try {
    return await use(redis);
  } finally {
    redis.disconnect();
  }
}

/** Runs a callback while every new session of the database begins with some settings. */
async function withRole(
  { databaseUrl }: OwnStores,
  settings: readonly string[],
  use: () => Promise<unknown>,
): Promise<void> {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  const name = new URL(databaseUrl).pathname.slice(1);
  const alter = (text: string) => sql.unsafe(`ALTER DATABASE "${name}" ${text}`);
  const reconnect = () => sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'spindle'`;
  try {
    for (const setting of settings) await alter(`SET ${setting}`);
    await reconnect();
    await use();
  } finally {
    await alter('RESET ALL');
    await reconnect();
    await sql.end();
  }
}

/** Returns the proxied connections of all processes or of one random process. */
function cables({ fleet }: Arena, random: Random, store: 'redis' | 'postgres'): Cable[] {
  const services = random.chance(0.5) ? fleet.services : [random.pick(fleet.services)];
  return services.map((service) => service[store]);
}

async function cut(chosen: readonly Cable[], random: Random): Promise<void> {
  for (let left = random.whole(...CUTS); left > 0; left--) {
    const isTorn = random.chance(0.5);
    for (const cable of chosen) {
      if (isTorn) cable.tear();
      else cable.cut();
    }
    await pause(random.whole(...CUT_EVERY_MS));
  }
  // The cut includes connections that carried no data during the fault.
  for (const cable of chosen) cable.cut();
}

async function slow(chosen: readonly Cable[], random: Random): Promise<void> {
  for (const cable of chosen) cable.delayMs = () => random.whole(...DELAY_MS);
  await pause(random.whole(...HOLD_MS));
  for (const cable of chosen) cable.delayMs = () => 0;
}

async function swallow(chosen: readonly Cable[], random: Random): Promise<void> {
  for (const cable of chosen) cable.answers = false;
  await pause(random.whole(...SWALLOW_MS));
  for (const cable of chosen) {
    cable.answers = true;
    // The connection is cut, because later replies on it would be taken for the missing replies.
    cable.cut();
  }
}
