/** The void of a raffle by the operator: it is closed for good, and its tickets are refunded (docs/contract.md §10). */
import { ApiError, ERRORS } from '../../domain/errors.js';
import { jsonUsd } from '../../domain/exactJson.js';
import { PATH, RaffleVoidResponse, VoidBody } from '../../domain/requests.js';
import type { GameServices } from '../partner/games.js';
import { learn, pathId, type Route, summed } from '../route.js';

export const raffleVoidRoutes = (services: Pick<GameServices, 'store' | 'refresh'>): Route[] => [
  {
    method: 'post',
    path: '/raffles/{id}/void',
    params: { id: PATH.gameId },
    operationId: 'voidRaffle',
    tag: 'Raffles',
    summary:
      'Void a raffle: it is closed for good, and each booked ticket is refunded; again: how far that is',
    scope: 'operator',
    body: VoidBody,
    status: 200,
    ...summed(RaffleVoidResponse),
    errors: [ERRORS.gameNotFound, ERRORS.gameTypeUnsupported, ERRORS.raffleClosed],
    failure: ERRORS.internal,
    async handle({ actor, params, body }) {
      const gameId = pathId(params.id!);
      const voided =
        gameId === undefined
          ? 'unknown'
          : await services.store.voidRaffle(actor, gameId, body.reason as string);
      if (voided === 'unknown') throw new ApiError(ERRORS.gameNotFound);
      if (voided === 'no-raffle') throw new ApiError(ERRORS.gameTypeUnsupported);
      if (voided === 'closed') throw new ApiError(ERRORS.raffleClosed);
      await learn(services);
      const { tickets, refunded, failed, refundedMicros, isDone } = voided;
      return {
        ...{ gameConfigId: voided.gameId, status: 'CLOSED', statusReason: 'VOIDED' },
        ...{ tickets, refunded, failed, refundedUsd: jsonUsd(refundedMicros), isDone },
      };
    },
  },
];
