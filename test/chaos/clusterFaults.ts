/**
 * Defines the faults that a chaos run causes in its Redis Cluster. Each fault heals itself before it
 * resolves.
 */

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
  /** Number of cells that have players. */
  readonly cells: number;
}

/** Range in ms for which spins continue while the replica receives nothing. */
const LAG_MS = [400, 2500] as const;
const ZOMBIE_MS = [200, 3000] as const;
const AWAY_MS = [200, 1500] as const;
/** Interval in ms between requests for a failover. Redis abandons a failover after 5 s. */
const FAILOVER_EVERY_MS = 6000;
const TAKEN_OVER_WITHIN_MS = 60_000;

interface Struck {
  readonly cell: number;
  readonly slot: number;
  readonly primary: StoreServer;
  readonly replica: StoreServer;
}

/** Picks a primary that holds cells, and its replica. */
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

/**
 * Cuts the replica off from its primary. The replica lacks all later writes until it synchronizes again, even
 * after it has resumed.
 */
async function cutReplica({ cluster }: ClusterFault, { primary, replica }: Struck): Promise<void> {
  await replica.freeze();
  // The connection is cut as well, because data in its socket buffer would still reach the replica.
  await cluster.ask(primary, 'CLIENT', 'KILL', 'TYPE', 'replica');
}

/**
 * Cuts a primary off from all other servers while clients can still reach it. The primary accepts writes
 * until it detects its isolation, at about the time at which the other servers detect that it is missing.
 * @param isForced true to promote the replica at once, so that primary and replica both serve for a while
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

/**
 * Moves every partner of a cell to another cell.
 * @returns a function that moves them back
 */
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
  /** The killed primary is restarted before its replica detects that it was missing. */
  async 'restart-primary'(fault) {
    const { primary } = await pick(fault);
    await primary.kill();
  },
  /** The old primary continues as a primary until it learns of the new one. */
  async zombie(fault) {
    const struck = await pick(fault);
    await struck.primary.freeze();
    await takenOver(fault, struck);
    await pause(fault.random.whole(...ZOMBIE_MS));
    struck.primary.thaw();
  },
  /** A replica that lacks several seconds of acknowledged writes takes over. */
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
    // A busy server may miss the time limit of the failover, so the command is repeated.
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
  /** The replica takes over without an election while its primary still serves. */
  async takeover(fault) {
    const struck = await pick(fault);
    await cutReplica(fault, struck);
    await pause(fault.random.whole(...LAG_MS));
    struck.replica.thaw();
    await fault.cluster.ask(struck.replica, 'CLUSTER', 'FAILOVER', 'TAKEOVER');
    await takenOver(fault, struck);
  },
  /**
   * A primary loses its slots to its replica and gets them back, while no worker can record the takeover
   * because Postgres is down.
   */
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
  /** The network between one node and all others is cut, and the replica is elected. */
  'cut-off': (fault) => cutOff(fault, { isForced: false }),
  /** The network between one node and all others is cut, and an operator promotes the replica at once. */
  'cut-off-forced': (fault) => cutOff(fault, { isForced: true }),
  /**
   * Moves a slot as docs/scaling.md describes: the partners leave the cell, its slot moves to another node,
   * and the partners return.
   */
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
