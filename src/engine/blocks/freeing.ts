/**
 * Frees the queue of a suspended game by removing its blocks from Redis. The blocks stay leased and sealed in
 * Postgres, and the keeper loads the same blocks again once the game is active. So nothing is drawn anew,
 * skipped or dealt twice (lua/freeBlocks.lua).
 */

import type { Sql } from '../../postgres/connection.js';
import type { CellLease } from '../cells/cells.store.js';
import type { CellStore } from '../redis/cellStore.js';
import { openBlocks } from './blocks.store.js';

/** @returns false if the caller must try again */
export async function freeQueue(
  sql: Sql,
  store: CellStore,
  lease: CellLease,
  gameId: number,
): Promise<boolean> {
  const game = await store.findGame(gameId);
  if (game === undefined) return true;
  const blocks = await openBlocks(sql, gameId, Number.MAX_SAFE_INTEGER);
  const fromIndices = blocks.map(({ fromIndex }) => fromIndex);
  return store.freeBlocks(lease, gameId, game.queueEnd, fromIndices);
}
