/**
 * Handlers of PAR sheets and games: partners upload, register and list them (docs/contract.md §7); operators
 * stop, rotate and read games.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { ApiError, ERRORS, type ErrorEntry, type Fault, invalid } from '../../domain/errors.js';
import { jsonInteger, jsonUsd } from '../../domain/exactJson.js';
import { basicStrategyReturn } from '../../domain/games/basicStrategy.js';
import { isRegisteredByPartner, kindOfGame } from '../../domain/games/index.js';
import { microsToUsdText, usdToMicros } from '../../domain/money.js';
import { checkParSheet } from '../../domain/par.js';
import type { OutcomeStatistics } from '../../domain/presentation.js';
import { ID_MAX } from '../../domain/schema.js';
import type { CommittedGame, GameRow, Registration } from '../../engine/catalog/games.store.js';
import type { GameRecord } from '../../engine/cells/partnerReads.js';
import type { VoidProgress } from '../../engine/raffles/raffles.store.js';
import type { Store } from '../api.store.js';
import { check, type JsonObject } from '../server/body.js';
import { gameRowOf, knownGame, pathId } from '../server/found.js';
import { learn, Pending, type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import { trafficOf } from '../traffic/routes.js';
import * as contract from './contract.js';
import { GameBody } from './contract.js';

/**
 * Significant digits of a probability in responses. A sum of doubles is not exact beyond this number of
 * digits.
 */
const PROBABILITY_DIGITS = 12;
const probability = (value: number): number => Number(value.toPrecision(PROBABILITY_DIGITS));

/** Maximum time that the response to a changed status waits for the game's queue in Redis, in ms. */
const QUEUE_WITHIN_MS = 500;

const WAGER_FIELDS = ['minWagerUsd', 'maxWagerUsd', 'wagerIncrementUsd'] as const;

export function gameOf(row: GameRow, wagerMicros: number) {
  const wagerUsd = Number(microsToUsdText(wagerMicros));
  return {
    gameConfigId: row.gameId,
    displayName: row.displayName,
    configName: row.configName,
    gameType: row.gameType,
    status: row.status,
    ...(row.statusReason !== null && { statusReason: row.statusReason }),
    parSheetId: row.parSheetId,
    minWagerUsd: wagerUsd,
    maxWagerUsd: wagerUsd,
    wagerIncrementUsd: wagerUsd,
    ...kindOfGame(row.gameType).listing.forPartner(row.raffle),
  };
}

/** Renders a game for lists, with the return to player that its mathematics implies. */
async function listedGame(services: Services, row: GameRow) {
  const { wagerMicros, maxPayoutMicros, poolRtp, table } = await knownGame(services.catalog, row.gameId);
  const statistics = services.catalog.statistics(row.gameId);
  const certifiedRtp = row.certifiedRtp ?? poolRtp ?? undefined;
  const basicStrategyRtp = table && basicStrategyReturn(table.rulesHash);
  return {
    ...gameOf(row, wagerMicros),
    ...(certifiedRtp !== undefined && {
      certifiedRtp,
      topPrizeUsd: Number(microsToUsdText(maxPayoutMicros)),
    }),
    ...(statistics !== undefined && { hitFrequency: probability(statistics.hitFrequency) }),
    ...(basicStrategyRtp !== undefined && { basicStrategyRtp: probability(basicStrategyRtp) }),
  };
}

/**
 * Counts the blocks and outcomes that were loaded and not dealt as of the committed state of the game.
 *
 * @param record the game's record in Redis, which was read after the committed state
 */
function queueOf({ nextIndex, blocks }: CommittedGame, record: GameRecord | undefined) {
  // After a rebuild of its cell, the queue of a raffle ends at index 0 until the pool is loaded again.
  const queueEnd = record?.queueEnd ?? 0;
  const ready = blocks.filter(({ fromIndex }) => fromIndex < queueEnd);
  const outcomes = ready.map((block) => block.toIndex - Math.max(block.fromIndex, nextIndex));
  return {
    readyBlocks: ready.length,
    outcomesReady: outcomes.reduce((sum, each) => sum + each, 0),
    consumed: nextIndex,
  };
}

export const refundsOf = ({ tickets, refunded, failed, refundedMicros, isDone }: VoidProgress) => ({
  tickets,
  refunded,
  failed,
  refundedUsd: jsonUsd(refundedMicros),
  isDone,
});

/** Returns the operator's change that led to the game's status; null if none did. */
function statusChangeOf({ auditLog }: Store, { gameId, status, statusReason }: GameRow) {
  const subject = `game:${gameId}`;
  if (statusReason === 'VOIDED') return auditLog.newestStatus('raffle.void', subject);
  const isOperators = statusReason === null && (status === 'ACTIVE' || status === 'SUSPENDED');
  return isOperators ? auditLog.newestStatus('game.update', subject) : null;
}

async function operatorGame(services: Services, row: GameRow) {
  const { wagerMicros } = await knownGame(services.catalog, row.gameId);
  // The ledger is read before Redis, because the ledger lags behind Redis. The queue is reported as of the
  // state of the ledger.
  const booked = await services.store.games.booked(row.gameId);
  const record = await services.cells.reads.game(row.partnerId, row.gameId);
  return { ...shownGame(services, row, wagerMicros, booked), queue: queueOf(booked, record) };
}

const expectedOf = ({ rtp, variancePerSpin, normalFromSpins }: OutcomeStatistics) => ({
  rtp,
  variancePerSpin,
  normalFromSpins,
});

function shownGame(services: Services, row: GameRow, wagerMicros: number, booked: CommittedGame) {
  const statistics = services.catalog.statistics(row.gameId);
  return {
    ...gameOf(row, wagerMicros),
    partnerId: row.partnerId,
    expected: statistics === undefined ? null : expectedOf(statistics),
    ...kindOfGame(row.gameType).listing.forOperator(
      row.raffle && { ...row.raffle, ticketsRemaining: row.raffle.poolSize - booked.nextIndex },
    ),
    totals: {
      spins: jsonInteger(booked.spins),
      wageredUsd: jsonUsd(booked.wageredMicros),
      paidOutUsd: jsonUsd(booked.paidMicros),
      actualRtp:
        booked.wageredMicros === 0n ? null : Number(booked.paidMicros) / Number(booked.wageredMicros),
    },
  };
}

/**
 * @throws ApiError KS-4101, KS-4102; KS-4216 if `gameType` is not a kind of game that partners can register
 */
function wantedGame({ gameType, ...rest }: JsonObject): GameBody {
  check(GameBody, rest);
  if (gameType !== undefined && (typeof gameType !== 'string' || !isRegisteredByPartner(gameType)))
    throw new ApiError(ERRORS.gameTypeUnsupported);
  return rest;
}

const REFUSALS: Readonly<Record<Extract<Registration, string>, ErrorEntry>> = {
  'cap-reached': ERRORS.capReached,
  'name-taken': ERRORS.configNameTaken,
  'sheet-missing': ERRORS.parSheetNotFound,
  'sheet-not-active': ERRORS.parSheetNotActive,
};

export const gameRoutes = (services: Services): Route[] => [
  route(contract.registerGame, async ({ partner, body }) => {
    const wanted = wantedGame(body);
    const sheet =
      wanted.parSheetId > ID_MAX ? undefined : await services.store.parSheets.find(wanted.parSheetId);
    if (sheet === undefined || sheet.partnerId !== partner.partnerId)
      throw new ApiError(ERRORS.parSheetNotFound);
    if (sheet.status !== 'ACTIVE') throw new ApiError(ERRORS.parSheetNotActive);
    const { denominationMicros, denominationUsd } = sheet.sheet;
    const faults: Fault[] = WAGER_FIELDS.filter((name) => {
      const value = wanted[name];
      return value !== undefined && usdToMicros(value) !== denominationMicros;
    }).map((name) => ({
      path: `/${name}`,
      message: `must be ${denominationUsd}, the denomination of the PAR sheet`,
    }));
    if (faults.length > 0) throw new ApiError(ERRORS.wagerMismatch, { details: faults });
    const { parSheetId, configName, displayName } = wanted;
    const game = await services.store.games.register({
      partnerId: partner.partnerId,
      parSheetId,
      configName,
      displayName,
    });
    if (typeof game === 'string') throw new ApiError(REFUSALS[game]);
    await learn(services.catalog);
    return gameOf(game, denominationMicros);
  }),
  route(contract.listGames, async ({ partner }) => {
    const rows = await services.store.games.list(partner.partnerId);
    return { games: await Promise.all(rows.map((row) => listedGame(services, row))) };
  }),
  route(contract.getGame, async ({ params }) => {
    const row = await gameRowOf(services.store, params.id);
    const voided = row.statusReason === 'VOIDED';
    const [game, statusChange, refunds] = await Promise.all([
      operatorGame(services, row),
      statusChangeOf(services.store, row),
      voided ? services.store.raffles.voidProgress(row.gameId) : undefined,
    ]);
    return { ...game, statusChange, refunds: refunds === undefined ? null : refundsOf(refunds) };
  }),
  route(contract.updateGame, async ({ actor, params, body }) => {
    const { status, reason } = body;
    const { store, catalog, cells } = services;
    // Everything that the response needs from Postgres is read before the change, so that an error means
    // that nothing was changed.
    const { gameId, partnerId } = await gameRowOf(store, params.id);
    const { wagerMicros } = await knownGame(catalog, gameId);
    const booked = await store.games.booked(gameId);
    const row = await store.games.setStatus(actor, gameId, status, reason);
    if (row === undefined) throw new ApiError(ERRORS.gameNotFound);
    if (row === 'closed') throw new ApiError(ERRORS.raffleClosed);
    await learn(catalog);
    const queue = await Promise.race([
      cells.reads.game(partnerId, gameId).then(
        (record) => queueOf(booked, record),
        () => null,
      ),
      pause(QUEUE_WITHIN_MS, null, { ref: false }),
    ]);
    return { ...shownGame(services, row, wagerMicros, booked), queue };
  }),
  route(contract.rotateGame, async ({ actor, params, body }) => {
    const { gameId, gameType } = await gameRowOf(services.store, params.id);
    if (gameType !== 'slot') throw new ApiError(ERRORS.gameTypeUnsupported);
    const rotated = await services.cells.rotate({ actor, gameId, reason: body.reason });
    if ('pending' in rotated) {
      const { bookedTo: voidedFrom, sealedTo: voidedTo } = rotated.pending;
      return new Pending({ gameConfigId: gameId, number: null, voidedFrom, voidedTo, isInForce: false });
    }
    const { number, fromIndex: voidedFrom, toIndex: voidedTo } = rotated;
    return { gameConfigId: gameId, number, voidedFrom, voidedTo, isInForce: true };
  }),
  route(contract.makeBlocks, async ({ actor, params, body }) => {
    const count = body.count;
    const row = await gameRowOf(services.store, params.id);
    const message = kindOfGame(row.gameType).outcomeSource.refusesBlocks;
    if (message !== undefined) {
      throw invalid([{ path: '/id', message }]);
    }
    await services.store.games.requestBlocks(actor, row.gameId, count);
    return { gameConfigId: row.gameId, requested: count };
  }),
  ...parSheetRoutes(services.store),
  listAllGames(services),
  listGameDays(services),
  listAllParSheets(services),
  getAnyParSheet(services),
];

const parSheetRoutes = (store: Store): Route[] => [
  route(contract.uploadParSheet, async ({ partner, body }) => {
    const checked = checkParSheet(body);
    if ('faults' in checked) throw new ApiError(ERRORS.invalidParSheet, { details: checked.faults });
    const stored = await store.parSheets.store(partner.partnerId, checked.sheet);
    if (stored === undefined) throw new ApiError(ERRORS.capReached);
    return stored;
  }),
  route(contract.listParSheets, async ({ partner }) => {
    return { parSheets: await store.parSheets.listActive(partner.partnerId) };
  }),
  route(contract.updateParSheet, async ({ actor, params, body }) => {
    const parSheetId = pathId(params.id);
    const row =
      parSheetId === undefined
        ? undefined
        : await store.parSheets.setStatus(actor, parSheetId, 'RETIRED', body.reason);
    if (row === undefined) throw new ApiError(ERRORS.parSheetNotFound);
    return row;
  }),
];

const listAllGames = (services: Services): Route =>
  route(contract.listAllGames, async ({ query }) => {
    const { page = 1, limit } = query;
    const { games, total } = await services.store.games.page(query.partnerId, page, limit);
    return { games: await Promise.all(games.map((row) => operatorGame(services, row))), page, limit, total };
  });

const listGameDays = ({ store }: Services): Route =>
  route(contract.listGameDays, async ({ params, query }) => {
    const row = await gameRowOf(store, params.id);
    const days = await store.gameDays.newest(row.gameId, query.limit);
    return {
      days: days.map((each) => ({ day: each.day, ...trafficOf(each) })),
    };
  });

const listAllParSheets = ({ store }: Services): Route =>
  route(contract.listAllParSheets, async ({ query }) => {
    const { page = 1, limit, partnerId } = query;
    return { ...(await store.parSheets.page(partnerId, page, limit)), page, limit };
  });

const getAnyParSheet = ({ store }: Services): Route =>
  route(contract.getAnyParSheet, async ({ params }) => {
    const parSheetId = pathId(params.id);
    const found = parSheetId === undefined ? undefined : await store.parSheets.findListed(parSheetId);
    if (found === undefined) throw new ApiError(ERRORS.parSheetNotFound);
    return found;
  });
