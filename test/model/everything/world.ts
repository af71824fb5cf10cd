/** The services that sequences are played on: one that all share, or one that is started anew under them. */
import { Redis } from 'ioredis';
import type { ServerProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import type { StoreUrls } from '../../support/stores.js';
import { until } from '../../support/wait.js';
import type { World } from './session.js';

/** Ends what would never come; how long a read takes is the machine's. */
const PATIENCE_MS = 60_000;

/** Starts the service from a build. */
export const start = (stores: StoreUrls, root?: string): Promise<ServerProcess> =>
  spawnService(
    environment(stores, {
      AUTH_FAILURE_LIMIT: '1000000',
      FLUSH_INTERVAL_MS: '10',
      DIRECTORY_POLL_MS: '50',
      // Sequences go over hand-overs of request ids.
      REQUEST_ID_WINDOW_S: '1',
    }),
    [],
    root,
  );

/** Many sequences on one service. */
export const shared = (service: ServerProcess, patienceMs = PATIENCE_MS): World => ({
  client: () => service.client,
  seen: new Map(),
  patienceMs,
});

/** One sequence at a time on a service of its own, which it may start anew. */
export async function lone(stores: StoreUrls): Promise<World & { end(): Promise<void> }> {
  let service = await start(stores);
  const redis = new Redis(stores.redisUrl, { protocol: 2 });
  return {
    client: () => service.client,
    seen: new Map(),
    patienceMs: PATIENCE_MS,
    async restart() {
      await service.end();
      service = await start(stores);
    },
    handedOver: () =>
      until(async () => (await redis.keys('{c*}:idem:*')).length === 0, 'Redis holds no request id'),
    async end() {
      redis.disconnect();
      await service.end();
    },
  };
}
