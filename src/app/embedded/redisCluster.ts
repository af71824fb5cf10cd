/**
 * Redis Cluster on loopback ports, for demonstrations and tests: three primaries with one replica each. All
 * servers run on one machine, so the cluster does not protect against a failure of the machine.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { keptPort, readText, writeFileAtomic } from './dataDir.js';
import { keptPassword, startRedisServer } from './redis.js';
import { askRedis } from './redisQuestion.js';
import type { EmbeddedOptions, EmbeddedStore } from './store.js';

const PRIMARIES = 3;
const SLOTS = 16_384;
const POLL_MS = 50;
const FORMED_WITHIN_MS = 120_000;
/**
 * Time after which a silent primary is replaced by its replica, in ms. With a shorter time, a busy machine
 * would be mistaken for a failed one.
 */
const NODE_TIMEOUT_MS = 5000;

/** Starts one server of the cluster with its existing data and port. */
export type StartMember = () => Promise<EmbeddedStore>;

/**
 * Starts the servers on their data in `<dataDir>/redis-cluster` and forms a new cluster if none exists. The
 * caller must hold the lock of the data folder.
 */
export async function startEmbeddedCluster(options: EmbeddedOptions): Promise<EmbeddedStore> {
  options.progress('Starting a Redis Cluster …');
  const started = await Promise.allSettled((await clusterMembers(options)).map((start) => start()));
  const servers = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const stop = async (): Promise<void> => void (await Promise.all(servers.map((server) => server.stop())));
  const urls = servers.map(({ url }) => url);
  try {
    for (const each of started) if (each.status === 'rejected') throw each.reason;
    await formCluster(options, urls);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: clusterUrl(urls), pid: () => servers[0]!.pid(), stop };
}

export function clusterUrl(urls: readonly string[]): string {
  const [first, ...others] = urls.map((url) => new URL(url));
  const hosts = [first!, ...others].map(({ host }) => host).join(',');
  return `${first!.protocol}//:${first!.password}@${hosts}/0`;
}

/**
 * Returns the servers of the cluster, primaries first. Each can be started separately and repeatedly.
 * @param settings returns further configuration lines of the server in a folder; called before each start
 */
export async function clusterMembers(
  options: EmbeddedOptions,
  settings: (folder: string) => Promise<string> = async () => '',
): Promise<StartMember[]> {
  const folder = folderOf(options);
  // An incompletely formed cluster has never held data, so it is created again.
  if ((await readText(formedFile(options))) === undefined) await rm(folder, { recursive: true, force: true });
  const password = await keptPassword(folder);
  return Array.from({ length: 2 * PRIMARIES }, (_, i) => {
    const own = join(folder, String(i));
    return () =>
      startRedisServer(options, {
        folder: own,
        password,
        settings: async () => (await clusterSettings(own, password)) + (await settings(own)),
      });
  });
}

const folderOf = ({ dataDir }: EmbeddedOptions): string => join(dataDir, 'redis-cluster');
const formedFile = (options: EmbeddedOptions): string => join(folderOf(options), 'formed');

const clusterSettings = async (folder: string, password: string): Promise<string> => `
masterauth ${password}
cluster-enabled yes
cluster-config-file nodes.conf
cluster-port ${await keptPort(join(folder, 'bus-port'), join(folder, 'port'))}
cluster-node-timeout ${NODE_TIMEOUT_MS}
# A node that is gone takes its own cells away, not those of the others.
cluster-require-full-coverage no
# A replica that was cut off for long does not take over.
cluster-replica-validity-factor 10
cluster-allow-replica-migration no
repl-diskless-sync-delay 0
# What is acknowledged is in the log of the server itself: it need not wait for replicas that end with it.
shutdown-timeout 0
`;

/**
 * Forms a Redis Cluster of the servers if they are not one yet, and waits until the cluster is complete. The
 * first servers become primaries, and the others replicas of them in the same order.
 */
export async function formCluster(
  options: EmbeddedOptions,
  urls: readonly string[],
  primaries = PRIMARIES,
): Promise<void> {
  const ask = (i: number, ...words: (string | number)[]): Promise<string> => askRedis(urls[i]!, words);
  const deadline = performance.now() + FORMED_WITHIN_MS;
  const everywhere = async (text: string, ...question: string[]): Promise<void> => {
    for (let i = 0; i < urls.length; ) {
      // A server that is being restarted does not answer, so its error is ignored and the question is
      // repeated.
      if ((await ask(i, ...question).catch(() => '')).includes(text)) i++;
      else if (performance.now() < deadline) await delay(POLL_MS);
      else
        throw new Error(`The Redis Cluster was not complete within ${FORMED_WITHIN_MS / 1000} s (${text})`);
    }
  };
  if ((await readText(formedFile(options))) === undefined) {
    for (let i = 0; i < urls.length; i++) await ask(i, 'CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    for (let i = 0; i < primaries; i++) await ask(i, 'CLUSTER', 'ADDSLOTSRANGE', ...slotsOf(i, primaries));
    for (let i = 1; i < urls.length; i++) {
      const busPort = await readText(join(folderOf(options), String(i), 'bus-port'));
      await ask(0, 'CLUSTER', 'MEET', '127.0.0.1', new URL(urls[i]!).port, Number(busPort));
    }
    await everywhere(`cluster_known_nodes:${urls.length}`, 'CLUSTER', 'INFO');
    for (let i = primaries; i < urls.length; i++)
      await ask(i, 'CLUSTER', 'REPLICATE', await ask(i - primaries, 'CLUSTER', 'MYID'));
    await everywhere(`cluster_slots_assigned:${SLOTS}`, 'CLUSTER', 'INFO');
  }
  await everywhere('cluster_state:ok', 'CLUSTER', 'INFO');
  for (let i = primaries; i < urls.length; i++) await linked(() => ask(i, 'INFO', 'replication'), deadline);
  await writeFileAtomic(formedFile(options), '');
}

const slotsOf = (primary: number, primaries: number): [number, number] => [
  Math.ceil((primary * SLOTS) / primaries),
  Math.ceil(((primary + 1) * SLOTS) / primaries) - 1,
];

/** Waits until a server is a primary, or a replica that is in sync with its primary. */
async function linked(replication: () => Promise<string>, deadline: number): Promise<void> {
  while (!/role:master|master_link_status:up/.test(await replication().catch(() => ''))) {
    if (performance.now() > deadline)
      throw new Error('A replica of the Redis Cluster is not connected to its primary');
    await delay(POLL_MS);
  }
}
