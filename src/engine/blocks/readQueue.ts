/**
 * Reads the state of a queue from Postgres and Redis. Blocks that are leased but not loaded are loaded, once
 * the public log covers them.
 */

import type { Sql } from '../../postgres/connection.js';
import type { CellStore } from '../redis/cellStore.js';
import { committedBlocks, leaseEnds, openBlocks } from './blocks.store.js';
import type { Queue } from './queue.js';

/**
 * Number of fully committed blocks for which removal from Redis is repeated, because an earlier owner of the
 * cell may not have removed its last blocks.
 */
const UNLINKED_ANEW = 64;

interface Reading {
  readonly sql: Sql;
  readonly store: CellStore;
  /**
   * The callbacks `leased` and `published`, which are described in the options of the block keeper
   * (keeper.ts).
   */
  readonly leased: (gameId: number, toIndex: number) => Promise<void>;
  readonly published: () => Promise<void>;
}

export async function readQueue(queue: Queue, { sql, store, leased, published }: Reading): Promise<void> {
  const { gameId, lease } = queue;
  const [game, ends] = await Promise.all([store.findGame(gameId), leaseEnds(sql, [gameId])]);
  const loadedEnd = game?.queueEnd ?? 0;
  queue.nextIndex = game?.nextIndex ?? 0;
  queue.dealtIndex = queue.nextIndex;
  queue.dealtOut = { at: performance.now(), index: queue.nextIndex };
  const leaseEnd = ends.get(gameId) ?? 0;
  const blocks = await openBlocks(sql, gameId, loadedEnd);
  if (leaseEnd > loadedEnd) await leased(gameId, leaseEnd);
  queue.blocks = [];
  let isAwaited = false;
  for (const { fromIndex, toIndex, outcomes, isPublished } of blocks) {
    // Blocks that the public log covers are loaded at once, however long later blocks wait for the log. For
    // blocks that are already loaded there is nothing to wait for.
    if (outcomes !== null) {
      if (!isPublished && !isAwaited) await published();
      isAwaited ||= !isPublished;
      await store.loadBlock(lease, gameId, fromIndex, outcomes);
    }
    queue.blocks.push({ fromIndex, toIndex });
  }
  queue.leaseEnd = leaseEnd;
  if (leaseEnd > 0) await queue.blockMaker.loaded();
  const done = await committedBlocks(sql, gameId, UNLINKED_ANEW);
  if (done.length > 0) await store.unlinkBlocks(gameId, done);
}
