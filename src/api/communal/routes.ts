/** The partner's side of communal progressives: what to show players (docs/contract.md §17). */

import { communalStatus, progressPct } from '../../domain/communal.js';
import { usdText } from '../../domain/communalRules.js';
import { entryTimeMs } from '../../domain/entryId.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import type { Game, Partner } from '../../domain/game.js';
import { assertPot, booked, ownGame, pathId, playerOf, potOf } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import { eventIdOf, eventView, potView } from './views.js';

/** @throws ApiError (KS-4006) where the game is not the partner's. */
async function gameOfPath({ catalog }: Services, partner: Partner, id: string): Promise<Game> {
  const gameId = pathId(id);
  const game = gameId === undefined ? undefined : await ownGame(catalog, gameId, partner);
  if (game === undefined) throw new ApiError(ERRORS.gameNotRegistered);
  return game;
}

const getCommunal = (services: Services): Route =>
  route(contract.getCommunal, async ({ partner, params }) => {
    const game = await gameOfPath(services, partner, params.id);
    return potView(await potOf(services, game.gameId, partner.partnerId), game.wagerMicros);
  });

const getCommunalProgress = (services: Services): Route =>
  route(contract.getCommunalProgress, async ({ partner, params }) => {
    const game = await gameOfPath(services, partner, params.id);
    const { rules, progress, budgetMicros } = await potOf(services, game.gameId, partner.partnerId);
    const status = communalStatus(rules, budgetMicros);
    if (status === 'DISABLED') throw new ApiError(ERRORS.progressiveDisabled);
    if (status === 'EXHAUSTED') throw new ApiError(ERRORS.progressiveExhausted);
    return {
      tiers: rules.tiers.map(({ tierLevel, tierName, amountMicros, triggerAtSpins }) => ({
        tierLevel,
        tierName,
        amountUsd: usdText(amountMicros),
        progressPct: progressPct(progress, triggerAtSpins),
      })),
    };
  });

const listCommunalEvents = (services: Services): Route =>
  route(contract.listCommunalEvents, async ({ partner, params, query }) => {
    const { gameId, partnerId } = await gameOfPath(services, partner, params.id);
    await assertPot(services.store, gameId);
    const { page = 1, limit } = query;
    const { events, total } = await services.store.communal.eventPage(gameId, page, limit);
    return {
      events: events.map((event) => eventView(services.spinIds, partnerId, event)),
      page,
      limit,
      total,
    };
  });

const listCommunityBonuses = (services: Services): Route =>
  route(contract.listCommunityBonuses, async ({ partner, params, query }) => {
    const playerId = params.playerId;
    const { partnerId } = partner;
    const player = await playerOf(services.cells, partnerId, playerId);
    await booked(services.cells, player.newestEntryId);
    const { page = 1, limit } = query;
    const { shares, total } = await services.store.communal.playerSharePage(partnerId, playerId, page, limit);
    const bonuses = shares.map((share) => ({
      eventId: eventIdOf(services.spinIds, share.eventId, partnerId),
      gameId: share.gameId,
      tierLevel: share.tierLevel,
      tierName: share.tierName,
      amountUsd: usdText(share.amountMicros),
      isTriggerPlayer: share.isTrigger,
      createdAt: new Date(entryTimeMs(share.entryId)).toISOString(),
      toldBySpinId:
        share.notifiedBy === null ? null : services.spinIds.encodeOne(share.notifiedBy, partnerId),
    }));
    return { bonuses, page, limit, total };
  });

export const partnerCommunalRoutes = (services: Services): Route[] =>
  [getCommunal, getCommunalProgress, listCommunalEvents, listCommunityBonuses].map((route) =>
    route(services),
  );
