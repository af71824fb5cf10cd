/** Moves of partners from cell to cell (docs/scaling.md). */

import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import type { NotMoved } from '../../engine/recovery/partnerMoves.store.js';
import { partnerOf, pathId } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Store } from '../server/store.js';
import * as contract from './contract.js';

const FAULTS: Readonly<Record<Exclude<NotMoved, 'noSuchPartner'>, string>> = {
  noSuchCell: 'must be a cell of this installation',
  cellDrains: 'must not be draining',
  there: 'must be another cell than that of the partner',
  moving: 'must wait until the move that is under way has ended',
};

export const partnerMoveRoutes = (store: Pick<Store, 'moves' | 'partners'>): Route[] => [
  route(contract.movePartner, async ({ actor, params, body }) => {
    const { cell, reason } = body;
    const partnerId = pathId(params.id);
    const move =
      partnerId === undefined ? 'noSuchPartner' : await store.moves.request(actor, partnerId, cell, reason);
    if (move === 'noSuchPartner') throw new ApiError(ERRORS.partnerNotFound);
    if (typeof move === 'string') {
      const details = [{ path: '/cell', message: FAULTS[move] }];
      throw invalid(details);
    }
    return move;
  }),
  route(contract.listMoves, async ({ params }) => {
    const { partnerId } = await partnerOf(store, params.id);
    return { moves: await store.moves.ofPartner(partnerId) };
  }),
];
