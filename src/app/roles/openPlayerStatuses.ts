/** Lets a worker carry out the recorded changes of players' statuses in its cells. */
import { PlayerBlocking, RecordedStatuses } from '../../engine/cells/playerBlocking.js';
import type { RoleParts } from './parts.js';
import { workerCells } from './workerCells.js';

export function openPlayerStatuses(parts: RoleParts): RecordedStatuses {
  const { ownStore: store, config, events } = parts;
  // These commands do not wait for the ledger, so they need no confirmation.
  const cells = workerCells(parts, { confirmed: async () => true, isStalled: () => false });
  const blocking = new PlayerBlocking({ store, cells, deadlineMs: config.SPIN_DEADLINE_MS });
  return new RecordedStatuses({ store, blocking, events });
}
