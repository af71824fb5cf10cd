/**
 * A Redis Cluster for one test, with three primaries and three replicas, in which the test can cause faults.
 */
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
  /** The addresses of all servers in one URL, in the form of REDIS_URL. */
  readonly url: string;
  /**
   * Servers in the order of their start. The first three begin as primaries. The replica of each primary is
   * three positions later.
   */
  readonly servers: readonly StoreServer[];
  /**
   * Sends a command to one server.
   * @throws Error with the error reply of the server
   */
  ask(server: StoreServer, ...words: (string | number)[]): Promise<string>;
  /**
   * Returns the first replica of a server.
   * @throws Error if it has none
   */
  replicaOf(server: StoreServer): Promise<StoreServer>;
  /** Whether the server claims to serve a hash slot. A server that is cut off may claim this wrongly. */
  serves(server: StoreServer, slot: number): Promise<boolean>;
  /** Returns the first server that claims to serve a hash slot, or undefined if none does. */
  primaryOf(slot: number): Promise<StoreServer | undefined>;
  drop(): Promise<void>;
}

export interface ClusterOptions {
  /** Whether primaries have replicas. If false, the cluster has primaries only. */
  readonly hasReplicas?: boolean;
  /** Number of primaries, at most 6; 3 with replicas. Default: 3. */
  readonly primaries?: number;
  /** A folder for the data, which is kept. By default a temporary folder is used and removed. */
  readonly folder?: string;
}

/**
 * Starts the servers and resolves once the cluster is complete. The servers end with this process, however it
 * ends.
 * @param settings returns further lines of a server's configuration for its folder; called before each start
 */
export async function ownCluster(
  settings?: (folder: string) => Promise<string>,
  { hasReplicas = true, primaries = 3, folder }: ClusterOptions = {},
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
    const members = (await clusterMembers(options, settings)).slice(0, hasReplicas ? 6 : primaries);
    const servers = await Promise.all(members.map(begin));
    const urls = servers.map(({ url }) => url);
    await formCluster(options, urls, primaries);
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

/**
 * Kills a server with SIGKILL and keeps it down until {@link StoreServer.start}. Resolves when another server
 * serves the hash slot of the killed server.
 */
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
