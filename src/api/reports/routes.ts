/**
 * Handlers of reports: games over an interval, the liability of partners, and significant events
 * (docs/reports.md).
 */

import type { GameReportRow, GamesWanted, LiabilityRow, Sums } from '../../books/reports/reports.store.js';
import { csvTexts } from '../../domain/csv.js';
import { dayOf, isDay, NO_DAY } from '../../domain/days.js';
import { ApiError, ERRORS, type Fault } from '../../domain/errors.js';
import { exactJson, jsonInteger, jsonUsd } from '../../domain/exactJson.js';
import {
  completeTo,
  firstDayOf,
  type Interval,
  NO_ACTIVITY,
  REPORT_ROWS_MAX,
} from '../../domain/reportIntervals.js';
import { rtpOf } from '../../domain/rtp.js';
import type { Severity } from '../../domain/significantEvents.js';
import type {
  EventPlace,
  EventsWanted,
  SignificantEvent,
} from '../../engine/ledger/significantEvents.store.js';
import { csvHead, csvLines } from '../contract/csvRows.js';
import { cursorOf, type Route, type RouteRequest, route, wrongCursor } from '../server/route.js';
import type { Services } from '../server/services.js';
import { timeRangeOf } from '../server/timeRange.js';
import * as contract from './contract.js';

const GAME_CURSOR = /^[1-9]\d{0,9}$/;
const EVENT_CURSOR = /^a(\d{1,18})\.w(\d{1,18})$/;
const CSV_EVENTS = 1000;

type GamesQuery = RouteRequest<typeof contract.getPartnerGamesReport>['query'];

/**
 * @throws ApiError KS-4102 if the interval is RANGE and `from` or `to` is missing, KS-4105 if a day is
 * invalid or `to` is before `from`
 */
function daysOf(query: GamesQuery, today: string): Pick<GamesWanted, 'from' | 'to' | 'isToNow'> {
  const interval = query.interval as Interval;
  if (interval !== 'RANGE') return { from: firstDayOf(interval, today), to: today, isToNow: true };
  const { from, to } = query;
  const missing = Object.entries({ from, to }).filter(([, day]) => day === undefined);
  const details = missing.map(([name]) => ({
    path: `/${name}`,
    message: 'is required if interval is RANGE',
  }));
  if (from === undefined || to === undefined) throw new ApiError(ERRORS.fieldMissing, { details });
  const faults: Fault[] = Object.entries({ from, to })
    .filter(([, day]) => !isDay(day))
    .map(([name]) => ({ path: `/${name}`, message: NO_DAY }));
  if (faults.length === 0 && to < from) faults.push({ path: '/to', message: 'must not be before `from`' });
  if (faults.length > 0) throw new ApiError(ERRORS.invalidDate, { details: faults });
  return { from, to, isToNow: false };
}

const sumsOf = (sums: Sums) => ({
  spins: jsonInteger(sums.spins),
  wageredUsd: jsonUsd(sums.wageredMicros),
  paidOutUsd: jsonUsd(sums.paidMicros),
  ggrUsd: jsonUsd(sums.wageredMicros - sums.paidMicros),
  communityBonusUsd: jsonUsd(sums.communityBonusMicros),
  actualRtp: rtpOf(sums.wageredMicros, sums.paidMicros),
});

const outcomesOf = (sums: Sums) => ({
  voidedOutcomes: jsonInteger(sums.voidedOutcomes),
  openRounds: jsonInteger(sums.openRounds),
  openWageredUsd: jsonUsd(sums.openWageredMicros),
  refundedUsd: jsonUsd(sums.refundedMicros),
});

const gameOf = (row: GameReportRow) => ({
  partnerId: row.partnerId,
  gameConfigId: row.gameId,
  configName: row.configName,
  displayName: row.displayName,
  gameType: row.gameType,
  status: row.status,
  ...sumsOf(row),
  certifiedRtp: row.certifiedRtp,
  ...outcomesOf(row),
});

async function gamesReport(
  { store, process }: Services,
  query: GamesQuery,
  { partnerId, by, after }: { partnerId: number | undefined; by: string; after?: number },
) {
  const nowMs = process.now();
  const today = dayOf(nowMs);
  const days = daysOf(query, today);
  const begin = after ?? Number(cursorOf(query, GAME_CURSOR) ?? 0);
  const firstDay = await store.reports.firstDay(partnerId);
  // Completeness is read before the figures, so that every day that is reported as complete is in the
  // figures.
  const complete =
    firstDay === undefined
      ? null
      : await completeTo(firstDay, today, (from, through) =>
          store.reports.unsettledDays(partnerId, from, through),
        );
  const wanted = { ...days, partnerId, gameId: query.gameId };
  const { rows, totals } = await store.reports.games(wanted, begin, REPORT_ROWS_MAX + 1);
  const listed = rows.slice(0, REPORT_ROWS_MAX);
  return {
    report: 'games' as const,
    interval: query.interval as Interval,
    from: days.from ?? null,
    to: days.to,
    generatedAt: new Date(nowMs).toISOString(),
    generatedBy: by,
    completeTo: complete,
    noActivity: [totals.spins, totals.wageredMicros, totals.paidMicros, totals.communityBonusMicros].every(
      (sum) => sum === 0n,
    ),
    rows: listed.map(gameOf),
    totals: { ...sumsOf(totals), ...outcomesOf(totals) },
    nextCursor: rows.length > listed.length ? String(listed.at(-1)!.gameId) : null,
  };
}

type Asker = Parameters<typeof gamesReport>[2];

async function* gamesCsv(services: Services, query: GamesQuery, asker: Asker): AsyncGenerator<string> {
  const csvText = csvTexts(query);
  let isFirst = true;
  for (let after: number | undefined = 0; after !== undefined; isFirst = false) {
    const { rows, noActivity, nextCursor } = await gamesReport(services, query, { ...asker, after });
    if (isFirst && noActivity) {
      yield NO_ACTIVITY;
      return;
    }
    yield (isFirst && rows.length > 0 ? csvHead(rows[0]!) : '') + csvLines(rows, csvText);
    after = nextCursor === null ? undefined : Number(nextCursor);
  }
}

async function askerOf(
  { store }: Services,
  { operator, query }: RouteRequest<typeof contract.getGamesReport>,
): Promise<Asker> {
  const { partnerId, gameId } = query;
  if (partnerId !== undefined && (await store.partners.find(partnerId)) === undefined)
    throw new ApiError(ERRORS.partnerNotFound);
  const game = gameId === undefined ? undefined : await store.games.find(gameId);
  if (gameId !== undefined && (game === undefined || (partnerId ?? game.partnerId) !== game.partnerId))
    throw new ApiError(ERRORS.gameNotFound);
  return { partnerId, by: operator.name };
}

async function ownAskerOf(
  { store }: Services,
  { partner: { partnerId }, query: { gameId } }: RouteRequest<typeof contract.getPartnerGamesReport>,
): Promise<Asker> {
  if (gameId !== undefined && (await store.games.find(gameId))?.partnerId !== partnerId)
    throw new ApiError(ERRORS.gameNotRegistered);
  return { partnerId, by: `partner:${partnerId}` };
}

const owedOf = (rows: readonly LiabilityRow[]) => {
  const sum = (of: (row: LiabilityRow) => bigint): bigint => rows.reduce((total, row) => total + of(row), 0n);
  const part = (of: (row: LiabilityRow) => bigint | null) =>
    rows.some((row) => of(row) === null) ? null : jsonUsd(sum((row) => of(row) ?? 0n));
  return {
    players: jsonInteger(sum((row) => row.players)),
    balancesUsd: jsonUsd(sum((row) => row.balancesMicros)),
    positiveUsd: part((row) => row.positiveMicros),
    negativeUsd: part((row) => row.negativeMicros),
    openRounds: jsonInteger(sum((row) => row.openRounds)),
    openWageredUsd: jsonUsd(sum((row) => row.openWageredMicros)),
    communalBudgetUsd: jsonUsd(sum((row) => row.communalBudgetMicros)),
  };
};

async function liability({ store, process }: Services, date: string | undefined, by: string) {
  const nowMs = process.now();
  if (date !== undefined && (!isDay(date) || date > process.overDay())) {
    const details = [
      {
        path: '/date',
        message: 'must be a UTC day that is over, in the form YYYY-MM-DD, such as 2026-11-26',
      },
    ];
    throw new ApiError(ERRORS.invalidDate, { details });
  }
  const rows = await store.reports.liability(date);
  return {
    report: 'liability' as const,
    date: date ?? null,
    generatedAt: new Date(nowMs).toISOString(),
    generatedBy: by,
    noActivity: rows.every(({ players }) => players === 0n),
    rows: rows.map((row) => ({ partnerId: row.partnerId, slug: row.slug, ...owedOf([row]) })),
    totals: owedOf(rows),
  };
}

type EventsRequest = RouteRequest<typeof contract.getEventsReport>;

function eventsWanted({ query }: EventsRequest): { wanted: EventsWanted; place: EventPlace } {
  const { from, to } = timeRangeOf(query);
  const { type, partnerId, cursor } = query;
  const place = cursor === undefined ? ['', '0', '0'] : EVENT_CURSOR.exec(cursor);
  if (place === null) throw wrongCursor();
  return {
    wanted: { from, to, type, severity: query.severity as Severity | undefined, partnerId },
    place: { auditId: BigInt(place[1]!), winId: BigInt(place[2]!) },
  };
}

const eventRowOf = (event: SignificantEvent) => ({
  eventId: event.eventId,
  at: event.at.toISOString(),
  type: event.type,
  severity: event.severity,
  actor: event.actor,
  subject: event.subject,
  partnerId: event.partnerId,
  data: exactJson(event.data),
  gameId: event.gameId,
  playerId: event.playerId,
  spinId: event.spinId,
  payoutUsd: event.payoutUsd,
});

async function* eventsCsv({ store }: Services, request: EventsRequest): AsyncGenerator<string> {
  const { wanted, place } = eventsWanted(request);
  const csvText = csvTexts(request.query);
  let isFirst = true;
  for (let from: EventPlace | undefined = place; from !== undefined; isFirst = false) {
    const page: Awaited<ReturnType<typeof store.significantEvents.page>> = await store.significantEvents.page(
      wanted,
      from,
      CSV_EVENTS,
    );
    const rows = page.events.map(eventRowOf);
    if (isFirst) yield rows.length === 0 ? NO_ACTIVITY : csvHead(rows[0]!);
    if (rows.length > 0) yield csvLines(rows, csvText);
    from = page.next;
  }
}

export const reportRoutes = (services: Services): Route[] => [
  route(
    contract.getPartnerGamesReport,
    async (request) => gamesReport(services, request.query, await ownAskerOf(services, request)),
    {
      csvPieces: async function* (request) {
        yield* gamesCsv(services, request.query, await ownAskerOf(services, request));
      },
    },
  ),
  route(
    contract.getGamesReport,
    async (request) => gamesReport(services, request.query, await askerOf(services, request)),
    {
      csvPieces: async function* (request) {
        yield* gamesCsv(services, request.query, await askerOf(services, request));
      },
    },
  ),
  route(
    contract.getLiabilityReport,
    ({ query, operator }) => liability(services, query.date, operator.name),
    {
      csv: ({ noActivity, rows }, { query }) =>
        noActivity || rows.length === 0 ? NO_ACTIVITY : csvHead(rows[0]!) + csvLines(rows, csvTexts(query)),
    },
  ),
  route(
    contract.getEventsReport,
    async (request) => {
      const { wanted, place } = eventsWanted(request);
      const { events, next } = await services.store.significantEvents.page(
        wanted,
        place,
        request.query.limit,
      );
      const nextCursor = next === undefined ? null : `a${next.auditId}.w${next.winId}`;
      return { events, nextCursor };
    },
    { csvPieces: (request) => eventsCsv(services, request) },
  ),
];
