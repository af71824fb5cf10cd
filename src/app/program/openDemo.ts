/** Creates the demo partner and its games at a start for trying out the service. */
import { join } from 'node:path';
import type { Store } from '../../api/api.store.js';
import { newKey } from '../../domain/apiKey.js';
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { Config } from '../config.js';
import { seedDemo } from '../demoSeed.js';
import { readOrCreateSecret } from '../embedded/index.js';
import { untilPlayable } from './playable.js';
import type { Running } from './running.js';

/**
 * Creates the demo if the stores are embedded, or if --demo is given. This needs the worker role, because
 * only a worker fills the queues of games.
 */
export async function openDemo(
  config: Config,
  store: Store,
  nodes: RedisNodes,
  catalog: Catalog,
): Promise<Running['demo']> {
  const isEmbedded = config.REDIS_URL === undefined || config.DATABASE_URL === undefined;
  if (!config.roles.worker || !(isEmbedded || process.argv.includes('--demo'))) return undefined;
  const apiKey = await readOrCreateSecret(join(config.dataDir, 'demo-api-key'), () => newKey('ks_'));
  const demo = { apiKey, ...(await seedDemo(store, apiKey)) };
  await catalog.refresh();
  for (const gameId of [demo.gameId, demo.raffleId]) await untilPlayable(nodes, gameId, catalog);
  return demo;
}
