/** Ends the sale of a voided raffle in its cell, although not all tickets are sold. */

import { fenceText } from './cellHead.js';
import { writeGame } from './cellRecords.js';
import type { CellOwner, CellStore } from './cellStore.js';
import { cellKey, gamesKey } from './keys.js';

/**
 * Sets the counter of a pool to its end and removes the pool. No further ticket can be sold, and
 * lua/loadBlock.lua treats the pool as already loaded. Repeating the call is safe. The script may run when
 * Redis is out of memory.
 */
export async function endPool(
  store: CellStore,
  owner: CellOwner,
  gameId: number,
  poolSize: number,
): Promise<void> {
  store.assertServer(owner);
  const keys = [cellKey(store.name), gamesKey(store.name)];
  const fields = [String(gameId), writeGame(poolSize, poolSize)];
  await store.node.run(store.node.script('fencedSet', 'allow-oom'), keys, [fenceText(owner), ...fields]);
  await store.unlinkBlocks(gameId, [0]);
}
