/** Books what is left in the outbox of a cell that nobody deals from any more: of a replica that was promoted, before the cell is rebuilt. */
import { setTimeout as pause } from 'node:timers/promises';
import type { CellLease } from '../cells/cells.store.js';
import type { CellStore } from '../redis/cellStore.js';
import type { Flusher } from './flusher.js';

const BOOKED_WITHIN_MS = 30_000;
const LOOK_EVERY_MS = 10;

/**
 * @param token of the cell, as Redis has it and keeps it meanwhile
 * @returns the lease, with the cursor after what was booked.
 * @throws Error where not all could be booked, or another owner came.
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
        throw new Error(`What the replica holds of cell ${lease.cell} could not be booked`);
      await pause(LOOK_EVERY_MS);
    }
  } finally {
    if (flusher.cursorOf(lease) !== undefined) flusher.disown(lease.cell);
  }
}
