/** The operator's blocking of players (docs/contract.md §15.5). */
import type { PartnerReads } from '../../cells/partnerReads.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { PATH, PlayerStatusBody, PlayerStatusOrder, PlayerStatusResponse } from '../../domain/requests.js';
import type { PlayerStatusChange } from '../../postgres/playerStatuses.js';
import type { Store } from '../../postgres/store.js';
import { check } from '../body.js';
import { pathId, type Route } from '../route.js';

export interface PlayerStatusServices {
  readonly store: Pick<Store, 'findPartner'>;
  readonly reads: PartnerReads;
  changePlayerStatus(
    actor: string,
    wanted: PlayerStatusChange,
  ): Promise<'done' | 'unavailable' | 'unknownPlayer'>;
}

export const playerStatusRoutes = (services: PlayerStatusServices): Route[] => [
  {
    method: 'patch',
    path: '/partners/{id}/players/{playerId}',
    params: { id: PATH.partnerId, playerId: PATH.playerId },
    operationId: 'updatePlayer',
    tag: 'Players',
    summary: 'Block a player, or let it play again',
    scope: 'operator',
    body: PlayerStatusBody,
    ownCheck: true,
    status: 200,
    response: PlayerStatusResponse,
    errors: [ERRORS.fieldMissing, ERRORS.partnerNotFound, ERRORS.playerNotFound, ERRORS.unavailable],
    failure: ERRORS.internal,
    async handle({ actor, params, body }) {
      const playerId = params.playerId!;
      check(PlayerStatusOrder, { ...body, playerId });
      const { status, reason } = body as unknown as PlayerStatusBody;
      const partnerId = pathId(params.id!);
      const partner = partnerId === undefined ? undefined : await services.store.findPartner(partnerId);
      if (partnerId === undefined || partner === undefined) throw new ApiError(ERRORS.partnerNotFound);
      const player = await services.reads.player(partnerId, playerId);
      if (player === undefined) throw new ApiError(ERRORS.playerNotFound);
      const change = { partnerId, playerId, status, reason };
      const outcome = await services.changePlayerStatus(actor, change);
      if (outcome === 'unavailable') throw new ApiError(ERRORS.unavailable);
      if (outcome === 'unknownPlayer') throw new ApiError(ERRORS.playerNotFound);
      return { playerId, status };
    },
  },
];
