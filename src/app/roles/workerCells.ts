/** The commands that a worker gives to cells by itself: the ends of rounds, and refunds. */
import { CellClient } from '../../engine/cells/cellClient.js';
import type { CellStations } from '../../engine/cells/spinPath.js';
import type { RoleParts } from './parts.js';

/** More commands than one turn of what gives them has. */
const WAITING_MAX = 1000;

export function workerCells(
  { config, log, nodes, scripts, catalog, metrics, registry }: RoleParts,
  confirmations: CellStations['confirmations'],
): CellClient {
  return new CellClient({
    // Who owns a cell has found its store durable.
    permission: { maySend: () => registry.problem === undefined },
    epochs: catalog,
    servers: nodes,
    scripts,
    confirmations,
    observer: {
      onCall: () => {},
      onError: (error, cell) => {
        metrics.storeErrors.inc({ store: 'redis' });
        log.warn({ err: error, cell, size: 1 }, 'a command to a cell failed');
      },
    },
    limits: { deadlineMs: config.SPIN_DEADLINE_MS, waitingMax: WAITING_MAX },
  });
}
