/** A Redis Cluster of one test's own, three primaries and three replicas, to which faults can be done. */
import { chmod, mkdtemp, realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  clusterMembers,
  clusterUrl,
  type EmbeddedStore,
  formCluster,
  lockDataDir,
} from '../../src/app/embedded/index.js';
import { askRedis } from '../../src/app/embedded/redisQuestion.js';
import { Cleanup } from './cleanup.js';
import { storesParent } from './disk.js';
import { ROOT } from './root.js';
import { StoreServer } from './storeServer.js';
import { until } from './wait.js';

export interface TestCluster {
  /** All servers in one address, as REDIS_URL takes it. */
  readonly url: string;
  /** The first three begin as primaries, each with the replica that is three places on. */
  readonly servers: readonly StoreServer[];
  /** Asks one server. @throws its error reply. */
  ask(server: StoreServer, ...words: (string | number)[]): Promise<string>;
  /** The first server that replicates another. @throws where none does. */
  replicaOf(server: StoreServer): Promise<StoreServer>;
  /** As the server says of itself: one that is cut off may say so wrongly. */
  serves(server: StoreServer, slot: number): Promise<boolean>;
  /** The first server that says that it serves a slot; undefined: none does. */
  primaryOf(slot: number): Promise<StoreServer | undefined>;
  drop(): Promise<void>;
}

export interface ClusterOptions {
  /** Else the primaries have none. */
  readonly hasReplicas?: boolean;
  /** Where the data are, and stay; else in a folder that is removed. */
  readonly folder?: string;
}

/**
 * Starts the servers, which end with this process in whatever way it ends; resolves once the cluster is whole.
 * @param settings further lines of a server's configuration, by its folder; asked before each start
 */
export async function ownCluster(
  settings?: (folder: string) => Promise<string>,
  { hasReplicas = true, folder }: ClusterOptions = {},
): Promise<TestCluster> {
  const undo = new Cleanup();
  const dataDir = folder ?? (await realpath(await mkdtemp(join(await storesParent(), 'spindle-cluster-'))));
  if (folder === undefined) undo.add(() => rm(dataDir, { recursive: true, force: true, maxRetries: 5 }));
  try {
    await chmod(dataDir, 0o755);
    const lock = await lockDataDir(dataDir);
    undo.add(() => lock.release());
    const options = { dataDir, cacheDir: join(ROOT, '.cache'), progress: () => {}, onEvent: () => {} };
    const begin = async (start: () => Promise<EmbeddedStore>): Promise<StoreServer> => {
      const server = await StoreServer.begin(start);
      undo.add(() => server.close());
      return server;
    };
    const members = (await clusterMembers(options, settings)).slice(0, hasReplicas ? 6 : 3);
    const servers = await Promise.all(members.map(begin));
    const urls = servers.map(({ url }) => url);
    await formCluster(options, urls);
    return {
      url: clusterUrl(urls),
      servers,
      ask: ({ url }, ...words) => askRedis(url, words),
      replicaOf: (server) => replicaOf(servers, server),
      serves,
      primaryOf: (slot) => primaryOf(servers, slot),
      drop: () => undo.run(),
    };
  } catch (error) {
    await undo.run();
    throw error;
  }
}

async function serves(server: StoreServer, slot: number): Promise<boolean> {
  if (server.pid() === undefined) return false;
  const nodes = await askRedis(server.url, ['CLUSTER', 'NODES']).catch(() => '');
  const own = nodes.split('\n').find((line) => line.includes('myself,master'));
  const ranges = (own?.split(' ').slice(8) ?? []).map((range) => range.split('-').map(Number));
  return ranges.some(([first, last = first]) => first! <= slot && slot <= last!);
}

async function primaryOf(servers: readonly StoreServer[], slot: number): Promise<StoreServer | undefined> {
  for (const server of servers) if (await serves(server, slot)) return server;
  return undefined;
}

async function replicaOf(servers: readonly StoreServer[], primary: StoreServer): Promise<StoreServer> {
  const replication = ({ url }: StoreServer): Promise<string> => askRedis(url, ['INFO', 'replication']);
  const [history] = /^master_replid:\w+/m.exec(await replication(primary))!;
  for (const server of servers) {
    if (server.pid() === undefined) continue;
    const role = await replication(server).catch(() => '');
    if (role.includes('role:slave') && role.includes(history)) return server;
  }
  throw new Error(`nobody replicates ${primary.url}`);
}

/** Kills a server with SIGKILL and keeps it away until {@link StoreServer.start}; resolves when another serves its slot. */
export async function replaceByReplica(cluster: TestCluster, slot: number): Promise<StoreServer> {
  const old = await cluster.primaryOf(slot);
  if (old === undefined) throw new Error(`no server has slot ${slot}`);
  await old.killForGood();
  await until(async () => {
    const now = await cluster.primaryOf(slot);
    return now !== undefined && now !== old;
  }, `another server has slot ${slot}`);
  return old;
}
