/** The operator's side of communal progressives: rules, funding, state, events (docs/contract.md §17). */
import type { PartnerReads } from '../../cells/partnerReads.js';
import type { Funded } from '../../cells/potKeeper.js';
import * as contract from '../../contract/endpoints/communal.js';
import type { CommunalRules, PotState } from '../../domain/communal.js';
import { micros as microsOf, readRules, usdText } from '../../domain/communalRules.js';
import { entryCell } from '../../domain/entryId.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import type { Game } from '../../domain/game.js';
import { MAX_MICROS, microsToUsdText } from '../../domain/money.js';
import { CommunalBody, CommunalFundingBody } from '../../domain/requests.js';
import type { Funding } from '../../postgres/communal.js';
import type { GameRow } from '../../postgres/games.js';
import { check } from '../body.js';
import { assertPot, type PotServices } from '../communalGames.js';
import { eventView, fundingIdOf, potView } from '../communalViews.js';
import { knownGame } from '../partner/games.js';
import { pathId, type Route, route } from '../route.js';

export interface OperatorCommunalServices extends PotServices {
  readonly reads: PartnerReads;
  cameTo(cell: number, entryId: bigint, timeoutMs: number): Promise<boolean>;
  game(gameId: number): Game | undefined;
  refresh(): Promise<void>;
  setCommunal(
    actor: string,
    game: { readonly gameId: number; readonly partnerId: number },
    rules: CommunalRules,
    resetsProgress: boolean,
  ): Promise<PotState | undefined>;
  fundCommunal(actor: string, partnerId: number, wanted: Funding): Promise<Funded>;
}

async function gameOfPath(services: OperatorCommunalServices, id: string): Promise<GameRow> {
  const gameId = pathId(id);
  const row = gameId === undefined ? undefined : await services.store.findGame(gameId);
  if (row === undefined) throw new ApiError(ERRORS.gameNotFound);
  return row;
}

/** How long what Redis has of a pot is waited for in the ledger. */
const BOOKED_WITHIN_MS = 3000;

/**
 * The pot as it is booked: what Redis has now would not fit what is booked as paid. What was done before is waited for; a ledger that
 * is far behind is answered as it is.
 * @throws ApiError KS-4601 where none is configured, KS-5002 where its first rules are not booked.
 */
async function bookedPotOf(services: OperatorCommunalServices, gameId: number, partnerId: number) {
  const { store, reads } = services;
  const { cell } = await store.ledgerReach(partnerId);
  const newestId = await reads.newestInOutbox(cell);
  await services.cameTo(entryCell(newestId), newestId, BOOKED_WITHIN_MS);
  const pot = await store.bookedPot(gameId);
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
        details: [{ path: '/amountUsd', message: 'is more than there is in the budget' }],
      });
    case 'overflow': {
      const message = `the budget would be above ${microsToUsdText(MAX_MICROS)}`;
      return new ApiError(ERRORS.validationFailed, { details: [{ path: '/amountUsd', message }] });
    }
    case 'unconfirmed':
      return new ApiError(ERRORS.progressiveFailed);
  }
}

const setCommunal = (services: OperatorCommunalServices): Route =>
  route(contract.setCommunal, async ({ actor, params, body }) => {
    const row = await gameOfPath(services, params.id);
    if (row.gameType !== 'slot') throw new ApiError(ERRORS.gameTypeUnsupported);
    check(CommunalBody, body);
    const rules = readRules(body);
    const { gameId, partnerId } = row;
    const { wagerMicros } = await knownGame(services, gameId);
    const state = await services.setCommunal(
      actor,
      { gameId, partnerId },
      rules,
      body.resetProgress === true,
    );
    if (state === undefined) throw new ApiError(ERRORS.progressiveFailed);
    return potView({ ...state, rules }, wagerMicros);
  });

const getCommunalPot = (services: OperatorCommunalServices): Route =>
  route(contract.getCommunalPot, async ({ params }) => {
    const { gameId, partnerId } = await gameOfPath(services, params.id);
    const { wagerMicros } = await knownGame(services, gameId);
    const pot = await bookedPotOf(services, gameId, partnerId);
    return {
      ...potView(pot, wagerMicros),
      progress: pot.progress,
      budgetUsd: usdText(pot.budgetMicros),
      paidUsd: usdText(pot.paidMicros),
    };
  });

const fundCommunal = (services: OperatorCommunalServices): Route =>
  route(contract.fundCommunal, async ({ actor, params, body }) => {
    const { gameId, partnerId } = await gameOfPath(services, params.id);
    check(CommunalFundingBody, body);
    const { amountUsd, reason, requestId } = body;
    const amountMicros = microsOf(amountUsd);
    if (amountMicros === undefined || amountMicros === 0) {
      const most = microsToUsdText(MAX_MICROS);
      const message = `must be a decimal text other than 0 within -${most} and ${most}, with at most 6 decimals`;
      throw new ApiError(ERRORS.validationFailed, { details: [{ path: '/amountUsd', message }] });
    }
    await assertPot(services.store, gameId);
    const wanted = { gameId, requestId, amountMicros, reason };
    const funded = await services.fundCommunal(actor, partnerId, wanted);
    if (typeof funded === 'string') throw fundingRefusal(funded);
    const fundingId = fundingIdOf(services.spinIds, funded.fundingId, partnerId);
    return { fundingId, budgetUsd: usdText(funded.budgetMicros) };
  });

const listCommunalPayouts = (services: OperatorCommunalServices): Route =>
  route(contract.listCommunalPayouts, async ({ params, query }) => {
    const { gameId, partnerId } = await gameOfPath(services, params.id);
    await assertPot(services.store, gameId);
    const { page = 1, limit } = query;
    const { events, total } = await services.store.communalEventPage(gameId, page, limit);
    const shown = events.map((event) => ({
      ...eventView(services.spinIds, partnerId, event),
      shares: event.shares.map(({ playerId, amountMicros }) => ({
        playerId,
        amountUsd: usdText(amountMicros),
      })),
    }));
    return { events: shown, page, limit, total };
  });

export const operatorCommunalRoutes = (services: OperatorCommunalServices): Route[] =>
  [setCommunal, getCommunalPot, fundCommunal, listCommunalPayouts].map((route) => route(services));
