/**
 * Handlers of cells: operators see the node and the committed watermark of each cell, add cells and drain
 * cells (docs/scaling.md).
 */

import { CELL_MAX, entryTimeMs } from '../../domain/entryId.js';
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { jsonInteger } from '../../domain/exactJson.js';
import { learn, type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

const listCells = (services: Services): Route =>
  route(contract.listCells, async () => {
    const { store } = services;
    const { views } = services.cells;
    const [cells, recoveries] = await Promise.all([
      store.cellReads.cells(),
      store.cellReads.newestRecoveries(),
    ]);
    const [places, redis] = await Promise.all([
      Promise.all(cells.map(({ cell }) => views.of(cell))),
      views.servers(),
    ]);
    return {
      cells: cells.map(({ cursorId, epoch, ...cell }, i) => ({
        ...cell,
        ...places[i]!,
        epoch: jsonInteger(epoch),
        bookedTo: cursorId === 0n ? null : new Date(entryTimeMs(cursorId)),
      })),
      redis,
      recoveries,
    };
  });

const addCells = (services: Services): Route =>
  route(contract.addCells, async ({ actor, body }) => {
    const { count } = body;
    const added = await services.store.cells.add(actor, count);
    if (added === undefined) {
      const message = `must be lower, because an installation has at most ${CELL_MAX + 1} cells`;
      throw invalid([{ path: '/count', message }]);
    }
    await learn(services.catalog);
    return { added };
  });

const setDraining = ({ store }: Services): Route =>
  route(contract.setDraining, async ({ actor, params, body }) => {
    const { isDraining, reason } = body;
    const drained = await store.cells.setDraining(actor, cellOf(params.cell), isDraining, reason);
    if (drained === 'unknown') throw new ApiError(ERRORS.notFound);
    if (drained === 'last') {
      const message = 'must be false, because no other cell accepts new partners';
      throw invalid([{ path: '/isDraining', message }]);
    }
    return undefined;
  });

function cellOf(text: string): number {
  const cell = /^(0|[1-9]\d{0,2})$/.test(text) ? Number(text) : Number.NaN;
  if (!(cell <= CELL_MAX)) throw new ApiError(ERRORS.notFound);
  return cell;
}

export const cellRoutes = (services: Services): Route[] => [
  listCells(services),
  addCells(services),
  setDraining(services),
];
