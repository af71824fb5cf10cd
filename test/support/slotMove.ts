/** Moves a hash slot of a cluster from one server to another, as `redis-cli --cluster reshard` does, step by step. */

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

/** Both servers know that the slot is on its way: for keys that it has not any more the old one answers ASK. */
export async function beginSlotMove(cluster: TestCluster, { slot, from, to }: SlotMove): Promise<void> {
  await cluster.ask(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', await cluster.ask(from, 'CLUSTER', 'MYID'));
  await cluster.ask(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', await cluster.ask(to, 'CLUSTER', 'MYID'));
}

/** Takes keys of the slot along. @param isTaken which of them; all by default @returns how many */
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

/** From here on the slot is the other server's. Keys that were not taken along are gone. */
export async function endSlotMove(cluster: TestCluster, { slot, from, to }: SlotMove): Promise<void> {
  const nodeId = await cluster.ask(to, 'CLUSTER', 'MYID');
  // First the one that gets it: it makes the epoch by which all others believe it.
  await cluster.ask(to, 'CLUSTER', 'SETSLOT', slot, 'NODE', nodeId);
  // One that holds keys refuses; it hears of the new owner from the others, and removes them.
  await cluster.ask(from, 'CLUSTER', 'SETSLOT', slot, 'NODE', nodeId).catch(() => {});
}

/** All of it. @param areKeysTaken whether the keys go along, or are left behind, which removes them */
export async function moveSlot(
  cluster: TestCluster,
  move: SlotMove,
  { areKeysTaken }: { readonly areKeysTaken: boolean },
): Promise<void> {
  await beginSlotMove(cluster, move);
  if (areKeysTaken) while ((await migrateKeys(move)) > 0);
  await endSlotMove(cluster, move);
}
