/**
 * Defines faults in which a store fails over behind its address: the address leads to another server, while
 * the old server keeps its connections and answers reads.
 */
import { Cleanup } from '../support/cleanup.js';
import type { Random } from '../support/random.js';
import { ownRedis, rawRedis } from '../support/redis.js';
import { startStandby } from '../support/stores.js';
import { pause, until } from '../support/wait.js';
import type { Arena, FaultKind } from './faultKind.js';

const AWAY_MS = [1500, 4000] as const;
const FAILED_OVER_WITHIN_MS = 20_000;

/** Makes a replica of Redis take over, and after a while the first server again. No write is lost. */
async function thereAndBack({ stores, fleet }: Arena, random: Random): Promise<void> {
  const cleanup = new Cleanup();
  try {
    const replica = await ownRedis(cleanup);
    const from = new URL(stores.redis.url);
    const to = new URL(replica.url);
    const [first, second] = [rawRedis(from.href), rawRedis(to.href)];
    cleanup.add(() => first.disconnect());
    cleanup.add(() => second.disconnect());
    // One address has one password.
    await second.config('SET', 'requirepass', from.password);
    to.password = from.password;
    for (const redis of [first, second]) await redis.config('SET', 'masterauth', from.password);
    await second.replicaof(from.hostname, from.port);
    const lead = async (leader: typeof first, follower: typeof first, url: URL): Promise<void> => {
      const isLinked = async () => (await follower.info()).includes('master_link_status:up');
      await until(isLinked, 'the replica follows', FAILED_OVER_WITHIN_MS);
      await leader.call('FAILOVER', 'TO', url.hostname, url.port);
      const leads = async () => (await follower.info()).includes('role:master');
      await until(leads, 'the replica has taken over', FAILED_OVER_WITHIN_MS);
      // The old server still answers on the connections that it has.
      await pause(random.whole(0, 500));
      for (const { redis } of fleet.services) redis.target = url.href;
    };
    await lead(first, second, to);
    await pause(random.whole(...AWAY_MS));
    await lead(second, first, from);
    await first.config('SET', 'masterauth', '');
  } finally {
    for (const { redis } of fleet.services) redis.target = stores.redis.url;
    await cleanup.run();
  }
}

/** Leads new connections to a standby of Postgres for a while, which keeps them when that is over. */
async function toStandby({ stores, fleet }: Arena, random: Random): Promise<void> {
  const standby = await startStandby(stores);
  try {
    for (const { postgres } of fleet.services) {
      postgres.target = standby.url;
      postgres.cut();
    }
    await pause(random.whole(...AWAY_MS));
    for (const { postgres } of fleet.services) postgres.target = stores.postgres.url;
    await pause(random.whole(...AWAY_MS));
  } finally {
    for (const { postgres } of fleet.services) postgres.target = stores.postgres.url;
    await standby.end();
  }
}

export const FAILOVERS = {
  'failover-redis': { subject: 'redis', run: thereAndBack },
  'failover-postgres': { subject: 'postgres', run: toStandby },
} as const satisfies Record<string, FaultKind>;
