/** Lets a worker carry out the recorded rotations of games before it leases their next blocks. */
import type { KeeperOptions } from '../../engine/blocks/keeper.js';
import { finishRotation } from '../../engine/cells/rotate.js';
import type { RoleParts } from './parts.js';
import { workerCells } from './workerCells.js';

export function openRotations(parts: RoleParts): Pick<KeeperOptions, 'finishRotation'> {
  const { ownStore, config } = parts;
  // The rotation itself waits until the ledger has the void of the game's outcomes, so these commands need no
  // confirmation.
  const cells = workerCells(parts, { confirmed: async () => true, isStalled: () => false });
  return {
    finishRotation: (gameId) => finishRotation(cells, ownStore.rotations, gameId, config.SPIN_DEADLINE_MS),
  };
}
