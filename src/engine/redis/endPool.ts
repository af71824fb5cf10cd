/** Ends the sale of a raffle in its cell before its last ticket is sold: the operator has voided it. */

import { fenceText } from './cellHead.js';
import { writeGame } from './cellRecords.js';
import type { CellOwner, CellStore } from './cellStore.js';
import { cellKey, gamesKey } from './keys.js';

/**
 * Puts the counter of a pool at its end and removes the pool: nothing is sold of it any more, whoever asks, and it is not loaded again
 * (lua/loadBlock.lua takes it for loaded). Repeatable; taken also where memory is full.
 * @throws OutrunError, RefusedError, NotSentError: nothing was done.
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
