/**
 * Handlers of communal progressives: the data that partners show to players; rules, funding, state and events
 * for operators (docs/contract.md §17).
 */
import { communalStatus, progressPct } from '../../domain/communal.js';
import { CommunalBody, communalUsdText, micros as microsOf, readRules } from '../../domain/communalRules.js';
import { entryCell, entryTimeMs } from '../../domain/entryId.js';
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { jsonUsd } from '../../domain/exactJson.js';
import type { Game, Partner } from '../../domain/game.js';
import { MAX_MICROS, microsToUsdText } from '../../domain/money.js';
import type { Funded } from '../../engine/communal/potKeeper.js';
import { check } from '../server/body.js';
import {
  assertPot,
  BOOKED_WITHIN_MS,
  booked,
  gameRowOf,
  knownGame,
  ownGame,
  pathId,
  playerOf,
  potOf,
} from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import { CommunalFundingBody } from './contract.js';
import { eventIdOf, eventView, fundingIdOf, potView } from './views.js';

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
        amountUsd: communalUsdText(amountMicros),
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
      amountUsd: communalUsdText(share.amountMicros),
      isTriggerPlayer: share.isTrigger,
      createdAt: new Date(entryTimeMs(share.entryId)).toISOString(),
      toldBySpinId:
        share.notifiedBy === null ? null : services.spinIds.encodeOne(share.notifiedBy, partnerId),
    }));
    return { bonuses, page, limit, total };
  });

/**
 * Returns the committed state of the pot, because the newer state in Redis would not match the committed
 * payouts. The function first waits for the commit of all entries that were in the outbox when it was called.
 * If this takes too long, it returns the state that is committed by then.
 *
 * @throws ApiError KS-4601 if no communal progressive is configured, KS-5002 if its first rules are not
 * committed yet
 */
async function bookedPotOf(services: Services, gameId: number, partnerId: number) {
  const { store, cells } = services;
  const { cell } = await store.partners.ledgerWatermark(partnerId);
  const newestId = await cells.reads.newestInOutbox(cell);
  await services.cells.confirmations.cameTo(entryCell(newestId), newestId, BOOKED_WITHIN_MS);
  const pot = await store.communal.bookedPot(gameId);
  if (pot !== undefined) return pot;
  await assertPot(store, gameId);
  throw new ApiError(ERRORS.unavailable);
}

function fundingRefusal(funded: Exclude<Funded, object>): ApiError {
  switch (funded) {
    case 'reused':
      return new ApiError(ERRORS.requestIdReused);
    case 'short':
      return new ApiError(ERRORS.progressiveExhausted, {
        details: [{ path: '/amountUsd', message: 'must not withdraw more than the remaining budget' }],
      });
    case 'overflow': {
      const message = `must not raise the budget above ${microsToUsdText(MAX_MICROS)}`;
      return invalid([{ path: '/amountUsd', message }]);
    }
    case 'unconfirmed':
      return new ApiError(ERRORS.progressiveFailed);
  }
}

const setCommunal = (services: Services): Route =>
  route(contract.setCommunal, async ({ actor, params, body }) => {
    const row = await gameRowOf(services.store, params.id);
    if (row.gameType !== 'slot') throw new ApiError(ERRORS.gameTypeUnsupported);
    check(CommunalBody, body);
    const rules = readRules(body);
    const { gameId, partnerId } = row;
    const { wagerMicros } = await knownGame(services.catalog, gameId);
    const state = await services.cells.pots.set(actor, { gameId, partnerId }, rules, {
      resetsProgress: body.resetProgress === true,
      reason: body.reason,
    });
    if (state === undefined) throw new ApiError(ERRORS.progressiveFailed);
    return potView({ ...state, rules }, wagerMicros);
  });

const getCommunalPot = (services: Services): Route =>
  route(contract.getCommunalPot, async ({ params }) => {
    const { gameId, partnerId } = await gameRowOf(services.store, params.id);
    const { wagerMicros } = await knownGame(services.catalog, gameId);
    const pot = await bookedPotOf(services, gameId, partnerId);
    return {
      ...potView(pot, wagerMicros),
      progress: pot.progress,
      budgetUsd: communalUsdText(pot.budgetMicros),
      paidUsd: communalUsdText(pot.paidMicros),
    };
  });

const fundCommunal = (services: Services): Route =>
  route(contract.fundCommunal, async ({ actor, params, body }) => {
    const { gameId, partnerId } = await gameRowOf(services.store, params.id);
    check(CommunalFundingBody, body);
    const { amountUsd, reason, requestId } = body;
    const amountMicros = microsOf(amountUsd);
    if (amountMicros === undefined || amountMicros === 0) {
      const most = microsToUsdText(MAX_MICROS);
      const message = `must be a decimal string other than 0, between -${most} and ${most}, with at most 6 decimals`;
      throw invalid([{ path: '/amountUsd', message }]);
    }
    await assertPot(services.store, gameId);
    const wanted = { gameId, requestId, amountMicros, reason };
    const funded = await services.cells.pots.fund(actor, partnerId, wanted);
    if (typeof funded === 'string') throw fundingRefusal(funded);
    const fundingId = fundingIdOf(services.spinIds, funded.fundingId, partnerId);
    return { fundingId, budgetUsd: communalUsdText(funded.budgetMicros) };
  });

const listCommunalPayouts = (services: Services): Route =>
  route(contract.listCommunalPayouts, async ({ params, query }) => {
    const { gameId, partnerId } = await gameRowOf(services.store, params.id);
    await assertPot(services.store, gameId);
    const { page = 1, limit } = query;
    const { events, total } = await services.store.communal.eventPage(gameId, page, limit);
    const shown = events.map((event) => ({
      ...eventView(services.spinIds, partnerId, event),
      shares: event.shares.map(({ playerId, amountMicros }) => ({
        playerId,
        amountUsd: communalUsdText(amountMicros),
      })),
    }));
    return { events: shown, page, limit, total };
  });

const listProgressives = ({ store }: Services): Route =>
  route(contract.listProgressives, async () => ({
    progressives: (await store.progressives.list()).map(({ budgetMicros, paidMicros, ...progressive }) => ({
      ...progressive,
      budgetUsd: jsonUsd(budgetMicros),
      paidUsd: jsonUsd(paidMicros),
    })),
  }));

export const communalRoutes = (services: Services): Route[] =>
  [
    getCommunal,
    getCommunalProgress,
    listCommunalEvents,
    listCommunityBonuses,
    setCommunal,
    getCommunalPot,
    fundCommunal,
    listCommunalPayouts,
    listProgressives,
  ].map((route) => route(services));
