/** What operators read of games, players, spins, deliveries and settlement reports, whoever's they are. */

import { entryCell, entryTimeMs } from '../../domain/entryId.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { ExactNumber, jsonInteger, jsonUsd } from '../../domain/exactJson.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import type { ReportStatus } from '../../domain/settlement.js';
import type { DeliveryRow } from '../../webhooks/webhooks.store.js';
import { operatorGame } from '../games/routes.js';
import { isShownAsSpin, spinRecords } from '../players/routes.js';
import { booked, gameRowOf, isDropped, noSpin, partnerOf, playerOf } from '../server/found.js';
import { cursorOf, type Route, route, wrongCursor } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';
import { trafficOf } from './routes.js';

const ENTRY_ID = /^[1-9]\d{0,18}$/;
/** Of a signed 64-bit integer. */
const ENTRY_ID_MAX = 2n ** 63n - 1n;

const listAllGames = (services: Services): Route =>
  route(contract.listAllGames, async ({ query }) => {
    const { page = 1, limit } = query;
    const { games, total } = await services.store.games.page(query.partnerId, page, limit);
    return { games: await Promise.all(games.map((row) => operatorGame(services, row))), page, limit, total };
  });

const listGameDays = ({ store }: Services): Route =>
  route(contract.listGameDays, async ({ params, query }) => {
    const row = await gameRowOf(store, params.id);
    const days = await store.overview.gameDays(row.gameId, query.limit);
    return {
      days: days.map((each) => ({ day: each.day, ...trafficOf(each) })),
    };
  });

/** An entry of the ledger as a line of a statement. */
function statementEntry({ spinIds }: Services, entry: LedgerEntry) {
  const isSpin = isShownAsSpin(entry);
  return {
    entryId: String(entry.id),
    kind: entry.kind,
    createdAt: new Date(entryTimeMs(entry.id)),
    gameId: entry.gameId === 0 ? null : entry.gameId,
    wagerUsd: jsonUsd(BigInt(entry.wagerMicros)),
    creditUsd: jsonUsd(BigInt(entry.creditMicros)),
    balanceUsd: jsonUsd(BigInt(entry.balanceMicros)),
    requestId: entry.requestId,
    spinId: isSpin ? spinIds.encodeOne(entry.id, entry.partnerId) : null,
  };
}

const getStatement = (services: Services): Route =>
  route(contract.getStatement, async (request) => {
    const playerId = request.params.playerId;
    const cursor = cursorOf(request.query, ENTRY_ID);
    if (cursor !== undefined && BigInt(cursor) > ENTRY_ID_MAX) throw wrongCursor();
    const limit = request.query.limit;
    const partner = await partnerOf(services.store, request.params.id);
    const { partnerId } = partner;
    const player = await playerOf(services.cells, partnerId, playerId);
    await booked(services.cells, player.newestEntryId);
    const from = cursor === undefined ? player.newestEntryId : BigInt(cursor);
    const entries = await services.store.history.statement({ partnerId, playerId }, from, limit);
    const next = entries.at(-1)?.previousId ?? 0n;
    const isLast =
      entries.length < limit || next === 0n || (await isDropped(services.store.ledgerDays, next));
    return {
      partnerId,
      playerId,
      status: player.status,
      balanceUsd: jsonUsd(BigInt(player.balanceMicros)),
      createdAt: new Date(player.createdAtMs),
      entries: entries.map((entry) => statementEntry(services, entry)),
      nextCursor: isLast ? null : String(next),
    };
  });

const showSpin = (services: Services): Route =>
  route(contract.showSpin, async ({ params }) => {
    const { store, spinIds } = services;
    const meant = spinIds.decode(params.spinId);
    const partner = meant === undefined ? undefined : await store.partners.find(meant.partnerId);
    if (meant === undefined || partner === undefined) throw new ApiError(ERRORS.notFound);
    await booked(services.cells, meant.entryId);
    const entry = await store.ledger.find(meant.entryId);
    if (entry === undefined || entry.partnerId !== partner.partnerId || !isShownAsSpin(entry))
      throw await noSpin(store, meant.entryId);
    // A forced spin took no outcome of the game's sequence, and stands in none of its blocks.
    const hasPlace = ENTRY_KINDS[entry.kind].advancesGameIndex;
    const [[record], block] = await Promise.all([
      spinRecords(services, partner, [entry]),
      hasPlace ? store.overview.blockOf(entry.gameId, entry.outcomeIndex) : undefined,
    ]);
    return {
      partnerId: partner.partnerId,
      spin: { ...record, playerId: entry.playerId },
      entry: {
        ...statementEntry(services, entry),
        cell: entryCell(entry.id),
        previousEntryId: String(entry.previousId),
        outcomeIndex: hasPlace ? entry.outcomeIndex : null,
        outcomeCode: entry.outcomeCode,
      },
      block: block ?? null,
    };
  });

const listAllDeliveries = ({ store }: Services): Route =>
  route(contract.listAllDeliveries, async ({ query }) => {
    const { page = 1, limit } = query;
    const status = (query.status ?? 'failed') as DeliveryRow['status'];
    const of = { status, partnerId: query.partnerId ?? null };
    const { deliveries, total } = await store.overview.deliveries(of, page, limit);
    return { deliveries, page, limit, total };
  });

const listAllSettlements = ({ store }: Services): Route =>
  route(contract.listAllSettlements, async ({ query }) => {
    const { page = 1, limit } = query;
    const { reports, total } = await store.overview.reports(
      query.status as ReportStatus | undefined,
      page,
      limit,
    );
    const items = reports.map(({ status, totalSpins, ggrUsd, ...report }) => ({
      ...report,
      reportStatus: status,
      totalSpins: jsonInteger(totalSpins),
      ggrUsd: new ExactNumber(ggrUsd),
    }));
    return { reports: items, page, limit, total };
  });

export const operatorReadRoutes = (services: Services): Route[] => [
  listAllGames(services),
  listGameDays(services),
  getStatement(services),
  showSpin(services),
  listAllDeliveries(services),
  listAllSettlements(services),
];
