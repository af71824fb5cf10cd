/** Tests how often a process announces what it reads of the catalog. */
import { test } from 'vitest';
import { Catalog } from '../../../src/engine/catalog/catalog.js';
import { CatalogAnnouncements } from '../../../src/engine/catalog/catalogAnnouncements.js';
import { EventEmitter } from '../../../src/engine/processEvents.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import { freshStores } from '../../setup/freshStores.js';
import { Cleanup } from '../../support/cleanup.js';
import { openNodes, rawRedis } from '../../support/redis.js';
import { startService } from '../../support/service.js';
import { until } from '../../support/wait.js';

test('a process that nobody else listens to polls Postgres, but seldom announces what it reads', async () => {
  const cleanup = new Cleanup();
  const stores = await freshStores();
  cleanup.add(() => stores.drop());
  // The service creates the schema.
  await (await startService(stores)).stop();
  const sql = connectPostgres(stores.databaseUrl, { max: 1, name: 'alone', onError: () => {} });
  cleanup.add(() => sql.end());
  const { nodes, close } = await openNodes(stores.redisUrl);
  cleanup.add(close);
  const heard: string[] = [];
  const [redis, listener] = [rawRedis(stores.redisUrl), rawRedis(stores.redisUrl)];
  cleanup.add(() => redis.disconnect());
  cleanup.add(() => listener.disconnect());
  const events = new EventEmitter(() => {});
  let reads = 0;
  events.on('CatalogRead', () => reads++);
  const catalog = new Catalog(sql, 20, events);
  await catalog.start();
  cleanup.add(() => catalog.stop());
  const options = { catalog, nodes, events, staleness: { heard: () => {} }, onError: () => {} };
  const announcements = new CatalogAnnouncements({ ...options, datasetId: 'alone' });
  await announcements.start();
  cleanup.add(() => announcements.stop());
  const published = async (): Promise<number> =>
    Number(/^cmdstat_publish:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1] ?? 0);
  try {
    await until(async () => {
      const [readsBefore, publishedBefore] = [reads, await published()];
      await until(() => reads >= readsBefore + 20, 'twenty reads are done');
      return (await published()) - publishedBefore <= 2;
    }, 'few reads are announced');
    await listener.subscribe('spindle:changes');
    listener.on('message', (_channel, message) => heard.push(message));
    await until(() => heard.length >= 10, 'the other process hears the announcements');
  } finally {
    await cleanup.run();
  }
});
