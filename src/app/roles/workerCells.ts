/** The commands that a worker gives to cells by itself: the ends of rounds, and refunds. */
import { CellClient, type CellClientOptions } from '../../engine/cells/cellClient.js';
import type { RoleParts } from './parts.js';

/** More commands than one turn of what gives them has. */
const WAITING_MAX = 1000;

export function workerCells(
  { config, log, nodes, scripts, catalog, metrics, registry }: RoleParts,
  confirmations: CellClientOptions['confirmations'],
): CellClient {
  return new CellClient({
    call: (operation, call) => scripts.command(operation, call),
    pipelined: (calls) => nodes.pipelined(calls),
    isReady: (cell) => nodes.of(cell).isReady,
    whenReady: (cell, timeoutMs) => nodes.whenReady(cell, timeoutMs),
    // Who owns a cell has found its store durable.
    maySend: () => registry.problem === undefined,
    epochOf: (cell) => catalog.epochOf(cell),
    nodeOf: (cell) => nodes.of(cell),
    serverOf: (cell) => nodes.of(cell).serverId,
    confirmations,
    deadlineMs: config.SPIN_DEADLINE_MS,
    waitingMax: WAITING_MAX,
    onCall: () => {},
    onError: (error, cell) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell, size: 1 }, 'a command to a cell failed');
    },
    onEpoch: () => void catalog.refresh().catch(() => {}),
  });
}
