/** The operator's blocking of players (docs/contract.md §15.5). */

import { ApiError, ERRORS } from '../../domain/errors.js';
import { check, type JsonObject } from '../server/body.js';
import { partnerOf, playerOf } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import { PlayerStatusOrder } from './contract.js';

export const playerStatusRoutes = (services: Services): Route[] => [
  route(contract.updatePlayer, async ({ actor, params, body }) => {
    const { playerId } = params;
    const order: JsonObject = { ...body, playerId };
    check(PlayerStatusOrder, order);
    const { status, reason } = order;
    const { partnerId } = await partnerOf(services.store, params.id);
    await playerOf(services.cells, partnerId, playerId);
    const change = { partnerId, playerId, status, reason };
    const outcome = await services.cells.playerStatuses.change(actor, change);
    if (outcome === 'unavailable') throw new ApiError(ERRORS.unavailable);
    if (outcome === 'unknownPlayer') throw new ApiError(ERRORS.playerNotFound);
    return { playerId, status };
  }),
];
