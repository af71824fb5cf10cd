/** Handlers of the return to player of games: its assessment, and its reviews (docs/reports.md). */

import type { RtpFinding, RtpRecord, RtpReview } from '../../books/returns/rtp.store.js';
import { ApiError, ERRORS, invalid } from '../../domain/errors.js';
import { jsonInteger, jsonUsd } from '../../domain/exactJson.js';
import { halfUp, normalFromSpins, rtpBands, rtpOf, sheetMoments } from '../../domain/rtp.js';
import type { GameRow } from '../../engine/catalog/games.store.js';
import { gameRowOf, pathId } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

const RATIO_DECIMALS = 6;
const DEVIATION_DECIMALS = 4;

const rounded = (value: number | null): number | null =>
  value === null ? null : halfUp(value, DEVIATION_DECIMALS);

const recordOf = ({ day, window, spins, wageredMicros, paidMicros, z, nats, state }: RtpRecord) => ({
  day,
  window,
  spins: jsonInteger(spins),
  wageredUsd: jsonUsd(wageredMicros),
  paidOutUsd: jsonUsd(paidMicros),
  z: rounded(z),
  nats: rounded(nats),
  state,
});

function windowOf(record: RtpRecord) {
  const { window, fromDay: from, day: to, mean, sigma, spins, wageredMicros, paidMicros } = record;
  const bands = mean === null || sigma === null ? undefined : rtpBands({ mean, sigma }, spins);
  return {
    window,
    from,
    to,
    spins: jsonInteger(spins),
    wageredUsd: jsonUsd(wageredMicros),
    paidOutUsd: jsonUsd(paidMicros),
    actualRtp: rtpOf(wageredMicros, paidMicros),
    z: rounded(record.z),
    band95: bands?.band95 ?? null,
    band99: bands?.band99 ?? null,
    nats: rounded(record.nats),
    state: record.state,
  };
}

async function expectedOf({ store }: Services, { parSheetId }: GameRow) {
  const sheet = parSheetId === null ? undefined : await store.parSheets.find(parSheetId);
  if (sheet === undefined) return null;
  const moments = sheetMoments(sheet.sheet);
  return {
    rtp: halfUp(moments.mean, RATIO_DECIMALS),
    sigma: halfUp(moments.sigma, DEVIATION_DECIMALS),
    skewness: halfUp(moments.skewness, DEVIATION_DECIMALS),
    normalFromSpins: normalFromSpins(moments),
  };
}

async function gameRtp(services: Services, row: GameRow, days: number | undefined) {
  const { rtp } = services.store;
  const newest = await rtp.newest(row.gameId);
  return {
    gameConfigId: row.gameId,
    expected: await expectedOf(services, row),
    judgedAt: newest[0]?.judgedAt ?? null,
    windows: newest.map(windowOf),
    ...(days === undefined ? {} : { history: (await rtp.history(row.gameId, days)).map(recordOf) }),
  };
}

const reviewOf = (review: RtpReview) => ({
  reviewId: review.reviewId,
  gameConfigId: review.gameId,
  window: review.window,
  openedAt: review.openedAt,
  status: review.closedAt === null ? 'OPEN' : 'CLOSED',
  finding: review.finding,
  notes: review.notes,
  records: review.records.map(recordOf),
  closedAt: review.closedAt,
  closedBy: review.closedBy,
});

function reviewIdOf({ id }: { readonly id: string }): number {
  const reviewId = pathId(id);
  if (reviewId === undefined) throw new ApiError(ERRORS.notFound);
  return reviewId;
}

export const returnRoutes = (services: Services): Route[] => [
  route(contract.getGameRtp, async ({ partner, params, query }) => {
    const gameId = pathId(params.id);
    const row = gameId === undefined ? undefined : await services.store.games.find(gameId);
    if (row === undefined || row.partnerId !== partner.partnerId)
      throw new ApiError(ERRORS.gameNotRegistered);
    return gameRtp(services, row, query.days);
  }),
  route(contract.getAnyGameRtp, async ({ params, query }) =>
    gameRtp(services, await gameRowOf(services.store, params.id), query.days),
  ),
  route(contract.listRtpReviews, async ({ query }) => {
    const { page = 1, limit, status, gameId } = query;
    const isOpen = status === undefined ? undefined : status === 'OPEN';
    const { reviews, total } = await services.store.rtp.reviews({ isOpen, gameId }, page, limit);
    return { reviews: reviews.map(reviewOf), page, limit, total };
  }),
  route(contract.getRtpReview, async ({ params }) => {
    const review = await services.store.rtp.review(reviewIdOf(params));
    if (review === undefined) throw new ApiError(ERRORS.notFound);
    return reviewOf(review);
  }),
  route(contract.addRtpNote, async ({ actor, params, body }) => {
    const review = await services.store.rtp.addNote(reviewIdOf(params), actor, body.text);
    if (review === undefined) throw new ApiError(ERRORS.notFound);
    return reviewOf(review);
  }),
  route(contract.closeRtpReview, async ({ actor, params, body }) => {
    const { finding, text } = body;
    const review = await services.store.rtp.close(reviewIdOf(params), actor, finding as RtpFinding, text);
    if (review === undefined) throw new ApiError(ERRORS.notFound);
    if (review === 'closed') throw invalid([{ path: '', message: 'The review is already closed' }]);
    return reviewOf(review);
  }),
];
