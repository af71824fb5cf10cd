/**
 * Promises of the service on a cluster. Each is tested on real servers with a given build. A build that
 * breaks a promise fails an expectation.
 */
import { join } from 'node:path';
import postgres from 'postgres';
import { expect } from 'vitest';
import { cellToken } from '../../src/engine/redis/cellRecords.js';
import { cellKey, gamesKey, idempotencyKey } from '../../src/engine/redis/keys.js';
import { Scripts } from '../../src/engine/redis/scripts.js';
import { slotOfCell } from '../../src/engine/redis/slots.js';
import { freshStores } from '../setup/freshStores.js';
import type { Cleanup } from '../support/cleanup.js';
import type { Answer, Client } from '../support/client.js';
import type { TestCluster } from '../support/cluster.js';
import { CELL, dealOnce, GAME_ID, item, OUTBOX_MAX } from '../support/dealing.js';
import { allIsBooked, wereRepaired } from '../support/failover.js';
import { proxy } from '../support/proxy.js';
import { openNodes, ownRedis, rawRedis } from '../support/redis.js';
import { CLAIMED, openedAt } from '../support/requestSegments.js';
import type { ServerProcess } from '../support/serverProcess.js';
import { environment, spawnService } from '../support/service.js';
import { parSheet } from '../support/sheets.js';
import { beginSlotMove, endSlotMove, migrateKeys } from '../support/slotMove.js';
import type { StoreServer } from '../support/storeServer.js';
import { until } from '../support/wait.js';

export interface Ground {
  readonly cluster: TestCluster;
  readonly root: string;
  readonly cleanup: Cleanup;
}
interface Played {
  readonly redisUrl: string;
  readonly sql: postgres.Sql<{ bigint: bigint }>;
  readonly service: ServerProcess;
  readonly client: Client;
  /** Sends a spin that cell 0 must deal. */
  spin(requestId: string, from?: Client): Promise<Answer>;
}

/** Deadline of a spin in ms. It is so long that a spin that is still refused then is refused permanently. */
const DEADLINE_MS = 3000;
const REPAIRED_WITHIN_MS = 20_000;
const SLOT = slotOfCell(0);
/** Hash slots of two of the three primaries that the cluster starts with. */
const SLOTS_OF_PRIMARIES = [8000, 16_000];
const SETTINGS = { CELLS: '1', SPIN_DEADLINE_MS: String(DEADLINE_MS) };

/** Starts a service with a partner and a game on empty stores. */
async function play(
  { root, cleanup }: Ground,
  redisUrl: string,
  settings: NodeJS.ProcessEnv = {},
): Promise<Played> {
  const { databaseUrl, drop } = await freshStores();
  cleanup.add(drop);
  const sql = postgres(databaseUrl, { max: 2, types: { bigint: postgres.BigInt }, onnotice: () => {} });
  cleanup.add(() => sql.end());
  const env = environment({ redisUrl, databaseUrl }, { ...SETTINGS, ...settings });
  const service = await spawnService(env, [], root);
  cleanup.add(() => service.end('SIGKILL'));
  const { client } = service;
  const partner = await client.newPartner({ openingBalanceUsd: 1000 });
  const gameId = await client.newGame(partner.key, parSheet('classic-3-reel'));
  const spin = (requestId: string, from = client): Promise<Answer> =>
    from.spin(partner.key, { gameId, playerId: 'p', wagerUsd: 0.25, requestId });
  let tries = 0;
  await until(async () => (await spin(`first-${tries++}`)).status === 200, 'spins are dealt');
  return { redisUrl, sql, service, client, spin };
}

async function playOnCluster(ground: Ground, settings: NodeJS.ProcessEnv = {}): Promise<Played> {
  const { cluster } = ground;
  for (const server of cluster.servers) await cluster.ask(server, 'FLUSHALL').catch(() => {});
  return play(ground, cluster.url, settings);
}

const follows = async (cluster: TestCluster, server: StoreServer): Promise<boolean> =>
  (await cluster.ask(server, 'INFO', 'replication')).includes('master_link_status:up');

async function aloneAcknowledgesNothing(ground: Ground): Promise<void> {
  const { cluster, cleanup } = ground;
  const { sql, spin } = await playOnCluster(ground, { ACK: 'replica' });
  const replica = await cluster.replicaOf((await cluster.primaryOf(SLOT))!);
  cleanup.add(() => replica.thaw());
  await replica.freeze();
  await sql.begin(async (tx) => {
    await tx`LOCK TABLE ledger IN SHARE MODE`;
    const answer = await spin('nowhere');
    expect([answer.status, answer.body.errorCode]).toEqual([409, 'KS-4110']);
  });
  replica.thaw();
  await until(async () => (await spin('nowhere')).status === 200, 'it is answered');
}

async function replicaInBetweenIsRepaired(ground: Ground): Promise<void> {
  const { cluster } = ground;
  const { sql, service, spin } = await playOnCluster(ground);
  const primary = (await cluster.primaryOf(SLOT))!;
  const replica = await cluster.replicaOf(primary);
  await until(() => follows(cluster, replica), 'the replica follows');
  // The service is paused, so that it never finds the other server as the primary.
  service.child.kill('SIGSTOP');
  try {
    for (const [old, next] of [
      [primary, replica],
      [replica, primary],
    ] as const) {
      await cluster.ask(next, 'CLUSTER', 'FAILOVER', 'TAKEOVER');
      await until(() => cluster.serves(next, SLOT), 'the replica has taken over');
      await until(() => follows(cluster, old), 'the former primary follows');
    }
  } finally {
    service.child.kill('SIGCONT');
  }
  let tries = 0;
  await until(async () => (await spin(`again-${tries++}`)).status === 200, 'spins are dealt again');
  const isRepaired = async (): Promise<boolean> => (await wereRepaired(sql, [0])).length > 0;
  await until(() => isRepaired().catch(() => false), 'the cell is repaired', REPAIRED_WITHIN_MS);
}

async function halfMovedIsNotDealtFrom(ground: Ground): Promise<void> {
  const { cluster } = ground;
  const { redisUrl, spin } = await playOnCluster(ground);
  const { text } = await spin('before');
  await allIsBooked(redisUrl, [0]);
  const from = (await cluster.primaryOf(SLOT))!;
  const primaries = await Promise.all(SLOTS_OF_PRIMARIES.map((slot) => cluster.primaryOf(slot)));
  const to = primaries.find((server) => server !== from)!;
  const move = { slot: SLOT, from, to };
  const { nodes, close } = await openNodes(redisUrl);
  const ids = idempotencyKey(nodes.nameOf(0), 0).slice(0, -1);
  close();
  await beginSlotMove(cluster, move);
  await migrateKeys(move, (key) => !key.startsWith(ids));
  // The binding of the spin's requestId is still on the node from which the hash slot moves.
  const answer = await spin('before');
  expect([answer.status, answer.body.errorCode]).toEqual([503, 'KS-5002']);
  while ((await migrateKeys(move)) > 0);
  await endSlotMove(cluster, move);
  let again = answer;
  await until(async () => {
    again = await spin('before');
    return again.status === 200;
  }, 'the cell is dealt from where it is now');
  expect(again.text).toBe(text);
}

async function repeatedOperationWrites({ root, cleanup }: Ground): Promise<void> {
  const { url } = await ownRedis(cleanup);
  const redis = rawRedis(url);
  cleanup.add(() => redis.disconnect());
  const { nodes, node, close } = await openNodes(url, join(root, 'lua'));
  cleanup.add(close);
  await redis.hset(cellKey(CELL), openedAt(cellToken('1', node.serverId!)));
  await nodes.cell(CELL).loadBlock(CLAIMED, GAME_ID, 0, Buffer.from(Uint16Array.from([0, 1, 2]).buffer));
  expect(await redis.hexists(gamesKey(CELL), String(GAME_ID))).toBe(1);
  const scripts = new Scripts(nodes, { outboxMax: OUTBOX_MAX });
  const changes = async (): Promise<number> =>
    Number(/^rdb_changes_since_last_save:(\d+)/m.exec(await redis.info('persistence'))![1]);
  const first = await dealOnce(scripts, [item()], { operation: 1 });
  const before = await changes();
  expect((await dealOnce(scripts, [item()], { operation: 1 })).buffer).toEqual(first.buffer);
  expect(await changes()).toBe(before + 1);
}

async function lostAnswerLeavesDoubt(ground: Ground): Promise<void> {
  const { cleanup } = ground;
  const { url } = await ownRedis(cleanup);
  const redis = rawRedis(url);
  cleanup.add(() => redis.disconnect());
  const cable = await proxy(url);
  cleanup.add(() => cable.close());
  const { spin } = await play(ground, cable.url);
  // The script runs but its reply is lost, and the next call is refused because memory is full.
  cable.beforeRequest = (chunk) => {
    if (!/evalsha/i.test(chunk.toString('latin1')) || !chunk.includes('in-doubt')) return;
    cable.beforeRequest = () => {};
    void cable.cutAfter('answers', 0).then(() => {
      cable.accepts = false;
      void redis.config('SET', 'maxmemory', '1').then(() => {
        cable.accepts = true;
      });
    });
  };
  const answer = await spin('in-doubt');
  expect([answer.status, answer.body.errorCode]).toEqual([409, 'KS-4110']);
  await redis.config('SET', 'maxmemory', '0');
  let again = answer;
  await until(async () => {
    again = await spin('in-doubt');
    return again.status === 200;
  }, 'it is answered');
  expect(again.headers.get('idempotent-replayed')).toBe('true');
}

export const CLUSTER_SCENARIOS = {
  'a primary that is alone acknowledges nothing': aloneAcknowledgesNothing,
  'a primary that was a replica in between is repaired': replicaInBetweenIsRepaired,
  'a slot that is half moved is not dealt from': halfMovedIsNotDealtFrom,
  'a repeated operation writes': repeatedOperationWrites,
  'an error after a lost answer leaves the spin in doubt': lostAnswerLeavesDoubt,
} satisfies Readonly<Record<string, (ground: Ground) => Promise<void>>>;
export type ClusterScenario = keyof typeof CLUSTER_SCENARIOS;
