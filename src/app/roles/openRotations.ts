/** How a worker carries out the rotations of games that are on record, before it leases the games' next blocks. */
import type { KeeperOptions } from '../../engine/blocks/keeper.js';
import { finishRotation } from '../../engine/cells/rotate.js';
import type { RoleParts } from './parts.js';
import { workerCells } from './workerCells.js';

export function openRotations(parts: RoleParts): Pick<KeeperOptions, 'finishRotation'> {
  const { ownStore, config } = parts;
  // The ledger is asked for the void itself.
  const cells = workerCells(parts, { confirmed: async () => true, isStalled: () => false });
  return {
    finishRotation: (gameId) => finishRotation(cells, ownStore.rotations, gameId, config.SPIN_DEADLINE_MS),
  };
}
