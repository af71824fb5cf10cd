/** Runs the service on which the sequences are played. */
import { Redis } from 'ioredis';
import { constants, environment, spawnService } from '../../support/service.js';
import type { StoreUrls } from '../../support/stores.js';
import { until } from '../../support/wait.js';
import type { World } from './session.js';

/**
 * Timeout in ms for effects that never appear. It is long because the duration of a read depends on the
 * machine.
 */
const PATIENCE_MS = 60_000;
/** Number of characters of the output of earlier services that are stored. */
const LOG_KEPT = 100_000;

export interface WorldOptions {
  /** Root folder of the build; the default is this project. */
  readonly root?: string;
  readonly isThorough?: boolean;
  readonly patienceMs?: number;
}

export async function newWorld(
  stores: StoreUrls,
  { root, isThorough = false, patienceMs = PATIENCE_MS }: WorldOptions = {},
): Promise<World & { end(signal?: NodeJS.Signals): Promise<void> }> {
  const start = () =>
    spawnService(
      environment(stores, {
        ...constants({ authFailureLimit: 1_000_000, flushIntervalMs: 10, catalogPollMs: 50 }),
        // A window of one second makes the service release request ids during a sequence.
        REQUEST_ID_WINDOW_S: '1',
        // A failure is printed with its sequence and with this log.
        LOG_LEVEL: 'warn',
      }),
      [],
      root,
    );
  let service = await start();
  let client = service.client;
  /** Output of the earlier service processes. */
  let earlier = '';
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  return {
    client: () => client,
    seen: new Map(),
    patienceMs,
    isThorough,
    log: () => earlier + service.output(),
    async restart() {
      await service.end();
      earlier = (earlier + service.output()).slice(-LOG_KEPT);
      service = await start();
      client = service.client;
    },
    requestIds: () =>
      until(async () => (await redis.keys('{c*}:idem:*')).length === 0, 'Redis holds no request id'),
    async refusing(during) {
      await redis.config('SET', 'maxmemory', '1');
      try {
        await during();
      } finally {
        await redis.config('SET', 'maxmemory', '0');
      }
      await until(
        async () => (await client.request('GET', '/statusz')).status === 200,
        'the service is well again',
      );
    },
    async end(signal) {
      redis.disconnect();
      await service.end(signal);
    },
  };
}
