/**
 * Runs the whole service on one Redis Cluster of three primaries and three replicas. All tests share the
 * cluster, because starting it takes most of the time. The tests of failures are in failovers.ts, those of
 * acknowledgement in replicas.ts and those of moving partners in moves.ts.
 */
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { askRedis } from '../../../src/app/embedded/redisQuestion.js';
import { seedsOf } from '../../../src/domain/storeUrl.js';
import { freshStores } from '../../setup/freshStores.js';
import { opensslMissing } from '../../support/certificates.js';
import { Cleanup } from '../../support/cleanup.js';
import { storesParent } from '../../support/disk.js';
import { openNodes, rawRedis } from '../../support/redis.js';
import { REDIS_USER } from '../../support/redisUser.js';
import { endProcess } from '../../support/serverProcess.js';
import { environment, spawnService } from '../../support/service.js';
import type { StoreUrls } from '../../support/stores.js';
import { until } from '../../support/wait.js';
import { lossTests, takeOverTests } from './failovers.js';
import { moveTests } from './moves.js';
import { replicaTests } from './replicas.js';
import { Stage } from './stage.js';

const cleanup = new Cleanup();
let stage: Stage;
const open = (): Stage => stage;

beforeAll(async () => {
  stage = await Stage.open(cleanup);
});
afterEach(() => stage.endPlayers());
afterAll(() => cleanup.run());

test('a start with --cluster also starts six Redis servers, which stop with the service', async () => {
  const dataDir = await realpath(await mkdtemp(join(await storesParent(), 'spindle-embedded-')));
  cleanup.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  const { REDIS_URL: _, ...env } = environment({
    redisUrl: '',
    databaseUrl: (await freshStores()).databaseUrl,
  });
  const server = await spawnService({ PATH: process.env.PATH, ...env, DATA_DIR: dataDir }, ['--cluster']);
  cleanup.add(() => endProcess(server.child));
  const { redisUrl } = JSON.parse(await readFile(join(dataDir, 'stores.json'), 'utf8')) as StoreUrls;
  const servers = seedsOf(redisUrl);
  expect(servers).toHaveLength(6);
  expect(await askRedis(servers[0]!, ['CLUSTER', 'INFO'])).toContain('cluster_size:3');
  await until(async () => (await fetch(`${server.base}/statusz`)).status === 200, 'it serves');
  await endProcess(server.child);
  for (const each of servers) await expect(askRedis(each, ['PING'])).rejects.toThrow('ECONNREFUSED');
});

test('deals, adjusts, sells raffle tickets and replays in cells of all cluster nodes', async () => {
  const { nodes, close } = await openNodes(stage.stores.redisUrl);
  expect(new Set(stage.seats.map(({ cell }) => nodes.of(cell))).size).toBe(3);
  close();
  const quick = await stage.spinAll(stage.service, stage.seats, 'quick', 20);
  await stage.replaysHold(quick);
  const carefully = await stage.spinAll(stage.careful, stage.seats, 'careful', 10);
  await stage.replaysHold(carefully);
  for (const { partner } of stage.seats) {
    const terms = {
      ticketPriceUsd: 1,
      poolSize: 2,
      prizes: [{ prizeName: 'Car', prizeTier: 6, valueUsd: 50, count: 1 }],
    };
    const gameId = await stage.service.api.newRaffle(partner.partnerId, `raffle-${partner.partnerId}`, terms);
    for (const requestId of ['ticket-1', 'ticket-2']) {
      const ticket = { gameId, playerId: 'p', wagerUsd: 1, requestId };
      expect((await stage.service.spin(partner.key, ticket)).status).toBe(200);
    }
    const path = `/partners/${partner.partnerId}/players/p/adjustments`;
    const body = { requestId: 'gift', amountUsd: 5, reason: 'a gift' };
    expect((await stage.service.operator('POST', path, body)).status).toBe(200);
  }
  await stage.areReleased(stage.seats);
  await stage.replaysHold([...quick, ...carefully]);
  await stage.allHolds();
});

lossTests(open);
takeOverTests(open);
moveTests(open);
replicaTests(open);

test('the service runs over TLS with the documented Redis permissions, and no command is denied', async ({
  skip,
}) => {
  const missing = opensslMissing();
  if (missing !== undefined) return skip(missing);
  const encrypted = new Set<string>();
  for (const server of stage.cluster.servers) {
    const redis = rawRedis(server.url);
    const denied = (await redis.call('ACL', 'LOG')) as unknown[][];
    redis.disconnect();
    expect(denied.filter((entry) => entry.includes(REDIS_USER.name))).toEqual([]);
    const clients = await stage.cluster.ask(server, 'CLIENT', 'LIST');
    if (clients.includes(`user=${REDIS_USER.name} `)) encrypted.add(server.url);
  }
  // The service must be connected to all three primaries over TLS.
  expect(encrypted.size).toBeGreaterThanOrEqual(3);
});
