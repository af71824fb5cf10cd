/** What a chaos run does to the servers of its Redis Cluster. Each fault heals itself before it resolves. */
import { slotOfCell } from '../../src/redis/slots.js';
import type { TestCluster } from '../support/cluster.js';
import type { StoreServer } from '../support/storeServer.js';
import { pause, until } from '../support/wait.js';
import type { Random } from './random.js';

export interface ClusterFault {
  readonly cluster: TestCluster;
  readonly postgres: StoreServer;
  readonly random: Random;
  /** The cells that are played in. */
  readonly cells: number;
  /** Called when cells lose their server. */
  onStruck(): void;
}

/** Spins go on meanwhile that a replica does not get. */
const LAG_MS = [400, 2500] as const;
const ZOMBIE_MS = [200, 3000] as const;
const AWAY_MS = [200, 1500] as const;
/** Redis gives a failover up after 5 s. */
const FAILOVER_EVERY_MS = 6000;
const TAKEN_OVER_WITHIN_MS = 60_000;

interface Struck {
  readonly slot: number;
  readonly primary: StoreServer;
  readonly replica: StoreServer;
}

/** A primary that holds cells, and its replica. */
async function pick({ cluster, random, cells }: ClusterFault): Promise<Struck> {
  const slot = slotOfCell(random.whole(0, cells - 1));
  const primary = await cluster.primaryOf(slot);
  if (primary === undefined) throw new Error(`nobody serves slot ${slot}`);
  await until(() => isInSync(cluster, primary), 'a replica is in sync');
  return { slot, primary, replica: await cluster.replicaOf(primary) };
}

const isInSync = async (cluster: TestCluster, primary: StoreServer): Promise<boolean> =>
  (await cluster.ask(primary, 'INFO', 'replication').catch(() => '')).includes('state=online');

const takenOver = ({ cluster }: ClusterFault, { slot, primary }: Struck): Promise<void> =>
  until(
    async () => {
      const now = await cluster.primaryOf(slot);
      return now !== undefined && now !== primary;
    },
    'the replica has taken over',
    TAKEN_OVER_WITHIN_MS,
  );

/** Until the replica goes on, and even then, it lacks what is written from now on. */
async function cutReplica({ cluster }: ClusterFault, { primary, replica }: Struck): Promise<void> {
  await replica.freeze();
  // What the system has taken for the replica would still come to it.
  await cluster.ask(primary, 'CLIENT', 'KILL', 'TYPE', 'replica');
}

export const CLUSTER_FAULTS: Readonly<Record<string, (fault: ClusterFault) => Promise<void>>> = {
  async 'kill-primary'(fault) {
    const struck = await pick(fault);
    fault.onStruck();
    await struck.primary.killForGood();
    await takenOver(fault, struck);
    await pause(fault.random.whole(...AWAY_MS));
    await struck.primary.start();
  },
  /** It is back before its replica has missed it. */
  async 'restart-primary'(fault) {
    const { primary } = await pick(fault);
    fault.onStruck();
    await primary.kill();
  },
  /** It believes to be the primary until it hears of the other. */
  async zombie(fault) {
    const struck = await pick(fault);
    fault.onStruck();
    await struck.primary.freeze();
    await takenOver(fault, struck);
    await pause(fault.random.whole(...ZOMBIE_MS));
    struck.primary.thaw();
  },
  /** The replica lacks seconds of what was acknowledged, and takes over all the same. */
  async 'stale-promotion'(fault) {
    const struck = await pick(fault);
    await cutReplica(fault, struck);
    await pause(fault.random.whole(...LAG_MS));
    fault.onStruck();
    await struck.primary.killForGood();
    struck.replica.thaw();
    await takenOver(fault, struck);
    await struck.primary.start();
  },
  async failover(fault) {
    const struck = await pick(fault);
    fault.onStruck();
    // Servers that are busy may let the time for it pass: it is asked for again.
    const again = setInterval(() => {
      fault.cluster.ask(struck.replica, 'CLUSTER', 'FAILOVER').catch(() => {});
    }, FAILOVER_EVERY_MS);
    try {
      await fault.cluster.ask(struck.replica, 'CLUSTER', 'FAILOVER');
      await takenOver(fault, struck);
    } finally {
      clearInterval(again);
    }
  },
  /** The replica takes over without asking anybody, while its primary serves. */
  async takeover(fault) {
    const struck = await pick(fault);
    await cutReplica(fault, struck);
    await pause(fault.random.whole(...LAG_MS));
    fault.onStruck();
    struck.replica.thaw();
    await fault.cluster.ask(struck.replica, 'CLUSTER', 'FAILOVER', 'TAKEOVER');
    await takenOver(fault, struck);
  },
  /** A primary gives its slots away and gets them back, while no worker can write that down. */
  async 'there-and-back'(fault) {
    const { cluster, postgres } = fault;
    const struck = await pick(fault);
    const { slot, primary, replica } = struck;
    await postgres.stop();
    try {
      fault.onStruck();
      await cluster.ask(replica, 'CLUSTER', 'FAILOVER', 'TAKEOVER');
      await takenOver(fault, struck);
      await until(() => isInSync(cluster, replica), 'the former primary follows');
      await cluster.ask(primary, 'CLUSTER', 'FAILOVER', 'TAKEOVER');
      await until(async () => (await cluster.primaryOf(slot)) === primary, 'it is the primary again');
      await pause(fault.random.whole(...AWAY_MS));
    } finally {
      await postgres.start();
    }
  },
};
