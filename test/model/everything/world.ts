/** The service that sequences are played on, and what they do to it together. */
import { Redis } from 'ioredis';
import { constants, environment, spawnService } from '../../support/service.js';
import type { StoreUrls } from '../../support/stores.js';
import { until } from '../../support/wait.js';
import type { World } from './session.js';

/** Ends what would never come; how long a read takes is the machine's. */
const PATIENCE_MS = 60_000;
/** Characters of what services printed that are kept beyond their end. */
const LOG_KEPT = 100_000;

export interface WorldOptions {
  /** Where the build is; this project's unless told. */
  readonly root?: string;
  readonly isThorough?: boolean;
  readonly patienceMs?: number;
}

/** Starts the service. */
export async function newWorld(
  stores: StoreUrls,
  { root, isThorough = false, patienceMs = PATIENCE_MS }: WorldOptions = {},
): Promise<World & { end(signal?: NodeJS.Signals): Promise<void> }> {
  const start = () =>
    spawnService(
      environment(stores, {
        ...constants({ authFailureLimit: 1_000_000, flushIntervalMs: 10, catalogPollMs: 50 }),
        // Sequences go over releases of request ids.
        REQUEST_ID_WINDOW_S: '1',
        // What it says of a fault is told with the sequence that met it.
        LOG_LEVEL: 'warn',
      }),
      [],
      root,
    );
  let service = await start();
  let client = service.client;
  /** What the services before this one printed. */
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
    async end(signal) {
      redis.disconnect();
      await service.end(signal);
    },
  };
}
