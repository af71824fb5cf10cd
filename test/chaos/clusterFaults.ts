/** What a chaos run does to the servers of its Redis Cluster. Each fault heals itself before it resolves. */

import { bodyOf, type OperatorClient } from '../../src/api/client/apiClients.js';
import { moveAndWait } from '../../src/cli/operator/moves.js';
import { slotOfCell } from '../../src/engine/redis/slots.js';
import type { BusRelays } from '../support/busRelays.js';
import type { TestCluster } from '../support/cluster.js';
import type { Random } from '../support/random.js';
import { moveSlot } from '../support/slotMove.js';
import type { StoreServer } from '../support/storeServer.js';
import { pause, until } from '../support/wait.js';

export interface ClusterFault {
  readonly cluster: TestCluster;
  readonly buses: BusRelays;
  readonly operator: OperatorClient;
  readonly postgres: StoreServer;
  readonly random: Random;
  /** The cells that are played in. */
  readonly cells: number;
}

/** Spins go on meanwhile that a replica does not get. */
const LAG_MS = [400, 2500] as const;
const ZOMBIE_MS = [200, 3000] as const;
const AWAY_MS = [200, 1500] as const;
/** Redis gives a failover up after 5 s. */
const FAILOVER_EVERY_MS = 6000;
const TAKEN_OVER_WITHIN_MS = 60_000;

interface Struck {
  readonly cell: number;
  readonly slot: number;
  readonly primary: StoreServer;
  readonly replica: StoreServer;
}

/** A primary that holds cells, and its replica. */
async function pick({ cluster, random, cells }: ClusterFault): Promise<Struck> {
  const cell = random.whole(0, cells - 1);
  const slot = slotOfCell(cell);
  const primary = await cluster.primaryOf(slot);
  if (primary === undefined) throw new Error(`nobody serves slot ${slot}`);
  await until(() => isInSync(cluster, primary), 'a replica is in sync');
  return { cell, slot, primary, replica: await cluster.replicaOf(primary) };
}

const isPrimary = async (cluster: TestCluster, server: StoreServer): Promise<boolean> =>
  (await cluster.ask(server, 'INFO', 'replication').catch(() => '')).includes('role:master');

const isInSync = async (cluster: TestCluster, primary: StoreServer): Promise<boolean> =>
  (await cluster.ask(primary, 'INFO', 'replication').catch(() => '')).includes('state=online');

const takenOver = ({ cluster }: ClusterFault, { slot, replica }: Struck): Promise<void> =>
  until(() => cluster.serves(replica, slot), 'the replica has taken over', TAKEN_OVER_WITHIN_MS);

/** Until the replica goes on, and even then, it lacks what is written from now on. */
async function cutReplica({ cluster }: ClusterFault, { primary, replica }: Struck): Promise<void> {
  await replica.freeze();
  // What the system has taken for the replica would still come to it.
  await cluster.ask(primary, 'CLIENT', 'KILL', 'TYPE', 'replica');
}

/**
 * Clients reach a primary that reaches no other server. It takes what they write until it finds that it is alone, which it
 * does about when the others find that it is gone.
 * @param isForced the replica does not wait for that: both serve for a while
 */
async function cutOff(fault: ClusterFault, { isForced }: { readonly isForced: boolean }): Promise<void> {
  const { cluster, buses, random } = fault;
  const struck = await pick(fault);
  const heal = await buses.cutOff(cluster, struck.primary, struck.replica);
  try {
    if (isForced) {
      await pause(random.whole(...LAG_MS));
      await cluster.ask(struck.replica, 'CLUSTER', 'FAILOVER', 'TAKEOVER');
    }
    await takenOver(fault, struck);
    await pause(random.whole(...ZOMBIE_MS));
  } finally {
    await heal();
  }
}

/** Moves every partner of a cell to another. @returns what moves them back */
async function movePartnersOff(
  { operator, random }: ClusterFault,
  cell: number,
): Promise<() => Promise<void>> {
  const drain = (isDraining: boolean) =>
    bodyOf(operator.PATCH('/cells/{cell}', { params: { path: { cell } }, body: { isDraining } }));
  await drain(true);
  const { partners } = await bodyOf(operator.GET('/partners'));
  const { cells } = await bodyOf(operator.GET('/cells'));
  const others = cells.filter((each) => each.cell !== cell);
  const moved = partners.filter((partner) => partner.cell === cell).map(({ partnerId }) => partnerId);
  for (const partnerId of moved) await moveAndWait(operator, partnerId, random.pick(others).cell);
  return async () => {
    await drain(false);
    for (const partnerId of moved) await moveAndWait(operator, partnerId, cell);
  };
}

export const CLUSTER_FAULTS: Readonly<Record<string, (fault: ClusterFault) => Promise<void>>> = {
  async 'kill-primary'(fault) {
    const struck = await pick(fault);
    await struck.primary.killForGood();
    await takenOver(fault, struck);
    await pause(fault.random.whole(...AWAY_MS));
    await struck.primary.start();
  },
  /** It is back before its replica has missed it. */
  async 'restart-primary'(fault) {
    const { primary } = await pick(fault);
    await primary.kill();
  },
  /** It believes to be the primary until it hears of the other. */
  async zombie(fault) {
    const struck = await pick(fault);
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
    await struck.primary.killForGood();
    struck.replica.thaw();
    await takenOver(fault, struck);
    await struck.primary.start();
  },
  async failover(fault) {
    const struck = await pick(fault);
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
  /** The network between one node and all others is gone, and the replica is elected. */
  'cut-off': (fault) => cutOff(fault, { isForced: false }),
  /** The same, and an operator has the replica take over at once. */
  'cut-off-forced': (fault) => cutOff(fault, { isForced: true }),
  /** As docs/scaling.md says: the partners leave the cell, its slot goes to another node, and they come back. */
  async 'slot-move'(fault) {
    const { cluster, random, operator } = fault;
    const { cell, slot, primary: from } = await pick(fault);
    const comeBack = await movePartnersOff(fault, cell);
    const isEmpty = async (): Promise<boolean> => {
      const { cells } = await bodyOf(operator.GET('/cells'));
      const own = cells.find((each) => each.cell === cell)!;
      return own.partners === 0 && own.outboxEntries === 0;
    };
    await until(isEmpty, 'the cell has no partners, and its outbox is empty');
    const primaries = await Promise.all(
      cluster.servers.map(async (server) => ((await isPrimary(cluster, server)) ? [server] : [])),
    );
    const to = random.pick(primaries.flat().filter((server) => server !== from));
    await moveSlot(cluster, { slot, from, to }, { areKeysTaken: random.chance(0.5) });
    await until(() => cluster.serves(to, slot), 'the slot is moved');
    await comeBack();
  },
};
