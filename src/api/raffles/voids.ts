/** The void of a raffle by the operator: it is closed for good, and its tickets are refunded (docs/contract.md §10). */

import { ApiError, ERRORS } from '../../domain/errors.js';
import { jsonUsd } from '../../domain/exactJson.js';
import { pathId } from '../server/found.js';
import { learn, type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

export const raffleVoidRoutes = (services: Services): Route[] => [
  route(contract.voidRaffle, async ({ actor, params, body }) => {
    const gameId = pathId(params.id);
    const voided =
      gameId === undefined ? 'unknown' : await services.store.raffles.void(actor, gameId, body.reason);
    if (voided === 'unknown') throw new ApiError(ERRORS.gameNotFound);
    if (voided === 'no-raffle') throw new ApiError(ERRORS.gameTypeUnsupported);
    if (voided === 'closed') throw new ApiError(ERRORS.raffleClosed);
    await learn(services.catalog);
    const { tickets, refunded, failed, refundedMicros, isDone } = voided;
    return {
      gameConfigId: voided.gameId,
      status: 'CLOSED',
      statusReason: 'VOIDED',
      tickets,
      refunded,
      failed,
      refundedUsd: jsonUsd(refundedMicros),
      isDone,
    };
  }),
];
