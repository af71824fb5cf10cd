/** The operator's blocking of players (docs/contract.md §15.5). */
import type { PartnerReads } from '../../cells/partnerReads.js';
import * as contract from '../../contract/endpoints/players.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { PlayerStatusOrder } from '../../domain/requests.js';
import type { PlayerStatusChange } from '../../postgres/playerStatuses.js';
import type { Store } from '../../postgres/store.js';
import { check, type JsonObject } from '../body.js';
import { pathId, type Route, route } from '../route.js';

export interface PlayerStatusServices {
  readonly store: Pick<Store, 'findPartner'>;
  readonly reads: PartnerReads;
  changePlayerStatus(
    actor: string,
    wanted: PlayerStatusChange,
  ): Promise<'done' | 'unavailable' | 'unknownPlayer'>;
}

export const playerStatusRoutes = (services: PlayerStatusServices): Route[] => [
  route(contract.updatePlayer, async ({ actor, params, body }) => {
    const { playerId } = params;
    const order: JsonObject = { ...body, playerId };
    check(PlayerStatusOrder, order);
    const { status, reason } = order;
    const partnerId = pathId(params.id);
    const partner = partnerId === undefined ? undefined : await services.store.findPartner(partnerId);
    if (partnerId === undefined || partner === undefined) throw new ApiError(ERRORS.partnerNotFound);
    const player = await services.reads.player(partnerId, playerId);
    if (player === undefined) throw new ApiError(ERRORS.playerNotFound);
    const change = { partnerId, playerId, status, reason };
    const outcome = await services.changePlayerStatus(actor, change);
    if (outcome === 'unavailable') throw new ApiError(ERRORS.unavailable);
    if (outcome === 'unknownPlayer') throw new ApiError(ERRORS.playerNotFound);
    return { playerId, status };
  }),
];
