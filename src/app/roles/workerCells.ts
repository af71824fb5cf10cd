/** Opens the commands that a worker itself sends to cells: ends of rounds, and refunds. */
import { CellClient } from '../../engine/cells/cellClient.js';
import type { CellStations } from '../../engine/cells/spinPath.js';
import type { RoleParts } from './parts.js';

/** Maximum number of commands waiting for one cell. No service of a worker sends this many in one turn. */
const WAITING_MAX = 1000;

export function workerCells(
  { config, log, nodes, scripts, catalog, metrics, registry }: RoleParts,
  confirmations: CellStations['confirmations'],
): CellClient {
  return new CellClient({
    // The owner of a cell has already verified that its store is durable.
    permission: { maySend: () => registry.problem === undefined },
    epochs: catalog,
    servers: nodes,
    scripts,
    confirmations,
    observer: {
      onCall: () => {},
      onError: (error, cell) => {
        metrics.storeErrors.inc({ store: 'redis' });
        log.warn({ err: error, cell, size: 1 }, 'call to a cell failed');
      },
    },
    limits: { deadlineMs: config.SPIN_DEADLINE_MS, waitingMax: WAITING_MAX },
  });
}
