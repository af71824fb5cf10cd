/**
 * Moves a hash slot of a cluster from one server to another, step by step as `redis-cli --cluster reshard`
 * does.
 */

import type { TestCluster } from './cluster.js';
import { rawRedis } from './redis.js';
import type { StoreServer } from './storeServer.js';

const KEYS_A_CALL = 100;
const MIGRATED_WITHIN_MS = 5000;

export interface SlotMove {
  readonly slot: number;
  readonly from: StoreServer;
  readonly to: StoreServer;
}

/**
 * Marks the hash slot as moving on both servers. The old server then answers ASK for keys that it no longer
 * has.
 */
export async function beginSlotMove(cluster: TestCluster, { slot, from, to }: SlotMove): Promise<void> {
  await cluster.ask(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', await cluster.ask(from, 'CLUSTER', 'MYID'));
  await cluster.ask(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', await cluster.ask(to, 'CLUSTER', 'MYID'));
}

/**
 * Migrates keys of the hash slot.
 * @param isTaken selects the keys, by default all
 * @returns the number of migrated keys
 */
export async function migrateKeys(
  { slot, from, to }: SlotMove,
  isTaken: (key: string) => boolean = () => true,
): Promise<number> {
  const redis = rawRedis(from.url);
  const { hostname, port, password } = new URL(to.url);
  try {
    const found = (await redis.cluster('GETKEYSINSLOT', slot, KEYS_A_CALL)) as unknown as string[];
    const keys = found.filter(isTaken);
    if (keys.length > 0)
      await redis.call(
        'MIGRATE',
        hostname,
        port,
        '',
        0,
        MIGRATED_WITHIN_MS,
        'AUTH',
        password,
        'KEYS',
        ...keys,
      );
    return keys.length;
  } finally {
    redis.disconnect();
  }
}

/** Assigns the hash slot to the new server. Keys that were not migrated are lost. */
export async function endSlotMove(cluster: TestCluster, { slot, from, to }: SlotMove): Promise<void> {
  const nodeId = await cluster.ask(to, 'CLUSTER', 'MYID');
  // The new owner must get the command first, because it creates the cluster epoch that convinces all other
  // servers.
  await cluster.ask(to, 'CLUSTER', 'SETSLOT', slot, 'NODE', nodeId);
  // A server that still holds keys refuses this command. Later the other servers inform it of the new owner,
  // and it removes the keys.
  await cluster.ask(from, 'CLUSTER', 'SETSLOT', slot, 'NODE', nodeId).catch(() => {});
}

/**
 * Moves a hash slot completely.
 * @param areKeysTaken whether the keys are migrated, or left behind and thereby removed
 */
export async function moveSlot(
  cluster: TestCluster,
  move: SlotMove,
  { areKeysTaken }: { readonly areKeysTaken: boolean },
): Promise<void> {
  await beginSlotMove(cluster, move);
  if (areKeysTaken) while ((await migrateKeys(move)) > 0);
  await endSlotMove(cluster, move);
}
