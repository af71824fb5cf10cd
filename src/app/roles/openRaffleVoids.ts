/** Opens the service by which a worker carries out the voids of raffles. */

import type { SpinIds } from '../../domain/spinId.js';
import { Adjuster } from '../../engine/cells/adjuster.js';
import { Confirmations } from '../../engine/cells/confirmations.js';
import { RaffleVoids } from '../../engine/raffles/raffleVoids.js';
import type { OnFailpoint } from '../../platform/failpoints.js';
import type { RoleParts } from './parts.js';
import { workerCells } from './workerCells.js';

export function openRaffleVoids(parts: RoleParts, spinIds: SpinIds, onFailpoint: OnFailpoint): RaffleVoids {
  const { config, log, sql, ownStore, nodes, installed, metrics, events } = parts;
  // Commits of this process are confirmed directly. Commits of other workers are read from Postgres.
  const confirmations = new Confirmations({
    datasetId: installed.datasetId,
    read: () => ownStore.cells.cursors(),
    findEntry: (entryId) => ownStore.ledgerEntries.find(entryId),
    serverOf: (cell) => nodes.of(cell).serverId,
    onError: () => metrics.storeErrors.inc({ store: 'postgres' }),
    onConfirmed: () => {},
  });
  events.on('CursorAdvanced', ({ lease, cursor }) => confirmations.advance(lease.cell, lease.token, cursor));
  const adjuster = new Adjuster({
    store: ownStore,
    cells: workerCells(parts, confirmations),
    newestInOutbox: (cell) => nodes.cell(cell).newestInOutbox(),
    confirmations,
    waitsForLedger: true,
    deadlineMs: config.SPIN_DEADLINE_MS,
    onError: (error, cell) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell }, 'no response from a store to an adjustment');
    },
  });
  return new RaffleVoids({ sql, nodes, adjuster, spinIds, events, onFailpoint });
}
