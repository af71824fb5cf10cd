/**
 * Flushes the remaining outbox of a cell on a promoted replica, before the cell is repaired or rebuilt. No
 * front end deals from the cell at that time.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { CellLease } from '../cells/cells.store.js';
import type { CellStore } from '../redis/cellStore.js';
import type { Flusher } from './flusher.js';

const BOOKED_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 10;

/**
 * @param token the cell's token in Redis, which must not change meanwhile
 * @returns the lease with the cursor after the last committed entry
 * @throws Error if the outbox could not be committed in time, or the cell has another owner
 */
export async function drain(
  flusher: Flusher,
  store: CellStore,
  lease: CellLease,
  token: string,
): Promise<CellLease> {
  const newestId = await store.newestInOutbox();
  const deadline = performance.now() + BOOKED_WITHIN_MS;
  flusher.own(lease, token);
  try {
    for (;;) {
      const cursor = flusher.cursorOf(lease);
      if (cursor !== undefined && cursor >= newestId) return { ...lease, cursorId: cursor };
      if (cursor === undefined || performance.now() > deadline)
        throw new Error(
          `The outbox of cell ${lease.cell} on the promoted replica could not be committed in time`,
        );
      await pause(LOOK_EVERY_MS);
    }
  } finally {
    if (flusher.cursorOf(lease) !== undefined) flusher.disown(lease.cell);
  }
}
