/** Moves of partners from cell to cell (docs/scaling.md). */
import * as contract from '../../contract/endpoints/partners.js';
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import type { NotMoved } from '../../postgres/partnerMoves.js';
import type { Store } from '../../postgres/store.js';
import { partnerOf, pathId } from '../found.js';
import { type Route, route } from '../route.js';

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
