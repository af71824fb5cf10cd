/** A search over everything, and lists that operators find things by. */

import { entryTimeMs } from '../../domain/entryId.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { jsonUsd } from '../../domain/exactJson.js';
import { trafficOf } from '../overview/routes.js';
import { isShownAsSpin } from '../players/routes.js';
import { pathId } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

const PLAYERS_FOUND_MAX = 10;

/** Partners at which somebody plays who is called exactly so. @param text also `slug/player` */
async function playersCalled({ store, cells }: Services, text: string) {
  const slash = text.indexOf('/');
  const slug = slash > 0 ? text.slice(0, slash) : undefined;
  const playerId = text.slice(slash + 1);
  if (playerId === '') return [];
  const asked = await store.finds.partnersToAsk(slug);
  // A cell that is away hides its players, and nothing else.
  const found = await Promise.all(
    asked.map(async (partnerId) => {
      const player = await cells.reads.player(partnerId, playerId).catch(() => undefined);
      return player === undefined ? [] : [{ partnerId, playerId }];
    }),
  );
  return found.flat().slice(0, PLAYERS_FOUND_MAX);
}

/** The spin or round that has this id. */
async function playsOf({ store, spinIds }: Services, id: string) {
  const named = spinIds.decode(id);
  if (named === undefined || (await store.partners.find(named.partnerId)) === undefined) return [];
  const { partnerId, entryId } = named;
  const round = await store.rounds.find(entryId);
  if (round?.partnerId === partnerId) return [{ partnerId, kind: 'round', id }];
  const entry = await store.ledger.find(entryId);
  return entry?.partnerId === partnerId && isShownAsSpin(entry) ? [{ partnerId, kind: 'spin', id }] : [];
}

const search = (services: Services): Route =>
  route(contract.search, async ({ query }) => {
    const text = query.q.trim();
    if (text === '') return { partners: [], games: [], players: [], plays: [], keys: [], operators: [] };
    const [names, players, plays] = await Promise.all([
      services.store.finds.byName(text),
      playersCalled(services, text),
      playsOf(services, text),
    ]);
    return { ...names, players, plays };
  });

const listAllRounds = ({ store, spinIds }: Services): Route =>
  route(contract.listAllRounds, async ({ query }) => {
    const { page = 1, limit, ...of } = query;
    const { rounds, total } = await store.finds.rounds(of, page, limit);
    return {
      rounds: rounds.map(({ dealId, wageredMicros, payoutMicros, ...round }) => ({
        ...round,
        roundId: spinIds.encodeOne(dealId, round.partnerId),
        createdAt: new Date(entryTimeMs(dealId)),
        wageredUsd: jsonUsd(wageredMicros),
        payoutUsd: payoutMicros === null ? null : jsonUsd(payoutMicros),
      })),
      page,
      limit,
      total,
    };
  });

const listAllParSheets = ({ store }: Services): Route =>
  route(contract.listAllParSheets, async ({ query }) => {
    const { page = 1, limit, partnerId } = query;
    return { ...(await store.finds.parSheets(partnerId, page, limit)), page, limit };
  });

const getAnyParSheet = ({ store }: Services): Route =>
  route(contract.getAnyParSheet, async ({ params }) => {
    const parSheetId = pathId(params.id);
    const found = parSheetId === undefined ? undefined : await store.finds.parSheet(parSheetId);
    if (found === undefined) throw new ApiError(ERRORS.parSheetNotFound);
    return found;
  });

const listProgressives = ({ store }: Services): Route =>
  route(contract.listProgressives, async () => ({
    progressives: (await store.finds.progressives()).map(({ budgetMicros, paidMicros, ...progressive }) => ({
      ...progressive,
      budgetUsd: jsonUsd(budgetMicros),
      paidUsd: jsonUsd(paidMicros),
    })),
  }));

const listTraffic = ({ store }: Services): Route =>
  route(contract.listTraffic, async ({ query }) => ({
    days: (await store.finds.trafficDays(query.days, query.partnerId)).map((each) => ({
      day: each.day,
      ...trafficOf(each),
    })),
  }));

const listTrafficHours = ({ store }: Services): Route =>
  route(contract.listTrafficHours, async ({ query }) => ({
    hours: (await store.finds.trafficHours(query.hours, query.partnerId)).map((each) => ({
      hour: each.hour,
      ...trafficOf(each),
    })),
  }));

export const findRoutes = (services: Services): Route[] => [
  search(services),
  listAllRounds(services),
  listAllParSheets(services),
  getAnyParSheet(services),
  listProgressives(services),
  listTraffic(services),
  listTrafficHours(services),
];
