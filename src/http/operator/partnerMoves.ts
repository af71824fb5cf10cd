/** Moves of partners from cell to cell (docs/scaling.md). */
import { ApiError, ERRORS } from '../../domain/errors.js';
import { MoveBody, PATH, PartnerMove, PartnerMoves } from '../../domain/requests.js';
import type { PartnerMove as MoveRow, NotMoved } from '../../postgres/partnerMoves.js';
import type { Store } from '../../postgres/store.js';
import { pathId, type Route } from '../route.js';

const shown = ({ requestedAt, switchedAt, finishedAt, ...move }: MoveRow) => ({
  ...move,
  requestedAt: requestedAt.toISOString(),
  switchedAt: switchedAt?.toISOString() ?? null,
  finishedAt: finishedAt?.toISOString() ?? null,
});

const FAULTS: Readonly<Record<Exclude<NotMoved, 'noSuchPartner'>, string>> = {
  noSuchCell: 'must be a cell of this installation',
  cellDrains: 'must not be draining',
  there: 'must be another cell than that of the partner',
  moving: 'must wait until the move that is under way has ended',
};

/** @throws ApiError (KS-4209) where the text is no id of a partner */
function partnerIdOf(text: string): number {
  const partnerId = pathId(text);
  if (partnerId === undefined) throw new ApiError(ERRORS.partnerNotFound);
  return partnerId;
}

export const partnerMoveRoutes = (
  store: Pick<Store, 'requestMove' | 'movesOfPartner' | 'findPartner'>,
): Route[] => [
  {
    method: 'post',
    path: '/partners/{id}/move',
    params: { id: PATH.partnerId },
    operationId: 'movePartner',
    tag: 'Partners',
    summary: 'Move a partner to another cell, while it spins',
    scope: 'operator',
    body: MoveBody,
    status: 202,
    response: PartnerMove,
    errors: [ERRORS.partnerNotFound],
    failure: ERRORS.internal,
    async handle({ actor, params, body }) {
      const { cell } = body as unknown as MoveBody;
      const move = await store.requestMove(actor, partnerIdOf(params.id!), cell);
      if (move === 'noSuchPartner') throw new ApiError(ERRORS.partnerNotFound);
      if (typeof move === 'string') {
        const details = [{ path: '/cell', message: FAULTS[move] }];
        throw new ApiError(ERRORS.validationFailed, { details });
      }
      return shown(move);
    },
  },
  {
    method: 'get',
    path: '/partners/{id}/moves',
    params: { id: PATH.partnerId },
    operationId: 'listMoves',
    tag: 'Partners',
    summary: 'Moves of a partner from cell to cell',
    scope: 'operator',
    status: 200,
    response: PartnerMoves,
    errors: [ERRORS.partnerNotFound],
    failure: ERRORS.internal,
    async handle({ params }) {
      const partnerId = partnerIdOf(params.id!);
      if ((await store.findPartner(partnerId)) === undefined) throw new ApiError(ERRORS.partnerNotFound);
      return { moves: (await store.movesOfPartner(partnerId)).map(shown) };
    },
  },
];
