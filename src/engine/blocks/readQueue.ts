/** Reads a queue from both stores: what is leased and not loaded is logged and loaded then. */

import type { Sql } from '../../postgres/connection.js';
import type { CellStore } from '../redis/cellStore.js';
import { committedBlocks, leaseEnds, openBlocks } from './blocks.store.js';
import type { Queue } from './queue.js';

/** Booked blocks that are removed once more: a worker before this one may not have removed the last any more. */
const UNLINKED_ANEW = 64;

interface Reading {
  readonly sql: Sql;
  /** Of the queue's cell. */
  readonly store: CellStore;
  /** As the block keeper's options have them. */
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
    // What is covered is loaded at once, however long the log takes for the rest; what is loaded already waits for nothing.
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
