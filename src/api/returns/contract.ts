/** The return to player as it is judged, and its reviews. */
import { ERRORS } from '../../domain/errors.js';
import { endpoint } from '../contract/endpoint.js';
import {
  GameRtp,
  PATH,
  RtpCloseBody,
  RtpNoteBody,
  RtpQuery,
  RtpReview,
  RtpReviewList,
  RtpReviewsQuery,
} from '../contract/requests.js';

const RTP = {
  gameConfigId: 7,
  expected: { rtp: 0.925, sigma: 2.2038, skewness: 10.2779, normalFromSpins: 2669 },
  judgedAt: '2026-11-22T02:00:04.000Z',
  windows: [
    {
      window: 'ROLLING_30',
      from: '2026-10-23',
      to: '2026-11-21',
      spins: 1_000_000,
      wageredUsd: 250_000,
      paidOutUsd: 231_800,
      actualRtp: 0.9272,
      z: 0.9983,
      band95: [0.920681, 0.929319],
      band99: [0.919323, 0.930677],
      nats: 0.4955,
      state: 'WITHIN',
    },
  ],
};
const NOTE = { at: '2026-11-22T09:12:30.125Z', by: 'operator:anna', text: 'One jackpot accounts for it' };
const REVIEW = {
  reviewId: 12,
  gameConfigId: 7,
  window: 'ROLLING_30',
  openedAt: '2026-11-22T02:00:04.000Z',
  status: 'OPEN',
  finding: null,
  notes: [NOTE],
  records: [
    {
      day: '2026-11-21',
      window: 'ROLLING_30',
      spins: 1_000_000,
      wageredUsd: 250_000,
      paidOutUsd: 232_875,
      z: 2.9495,
      nats: 4.3166,
      state: 'REVIEW',
    },
  ],
  closedAt: null,
  closedBy: null,
};

export const getGameRtp = endpoint(
  {
    method: 'get',
    path: '/games/{id}/rtp',
    params: { id: PATH.gameId },
    operationId: 'getGameRtp',
    tag: 'Games',
    summary: 'The return to player of a game, judged by the variance of its sheet',
    scope: 'partner',
    query: RtpQuery,
    status: 200,
    response: GameRtp,
    hasSums: true,
    errors: [ERRORS.gameNotRegistered],
    failure: ERRORS.internal,
  },
  {
    description:
      'Judged once a day, when all of the day is in the ledger. Forced spins and voided rounds are not counted. By chance 1 % of judgements are `REVIEW` and 4 % `WATCH`. Raffles and blackjack tables have `expected` null and are not judged.',
    response: RTP,
  },
);

export const getAnyGameRtp = endpoint(
  { ...getGameRtp, operationId: 'getAnyGameRtp', scope: 'operator', errors: [ERRORS.gameNotFound] },
  getGameRtp.shown,
);

export const listRtpReviews = endpoint(
  {
    method: 'get',
    path: '/rtp-reviews',
    operationId: 'listRtpReviews',
    tag: 'Games',
    summary: 'Reviews of returns to player, the newest first',
    scope: 'operator',
    query: RtpReviewsQuery,
    status: 200,
    response: RtpReviewList,
    hasSums: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description:
      'A judgement of `REVIEW` or `ALERT` opens one where the game has none open. `total` counts up to 10,000.',
    response: { reviews: [REVIEW], page: 1, limit: 20, total: 1 },
  },
);

export const addRtpNote = endpoint(
  {
    method: 'post',
    path: '/rtp-reviews/{id}/notes',
    params: { id: PATH.reviewId },
    operationId: 'addRtpNote',
    tag: 'Games',
    summary: 'Add a note to a review',
    scope: 'operator',
    body: RtpNoteBody,
    status: 201,
    response: RtpReview,
    hasSums: true,
    errors: [ERRORS.notFound],
    failure: ERRORS.internal,
  },
  {
    description: 'Notes are never changed. A closed review takes notes, too.',
    request: { text: NOTE.text },
    response: REVIEW,
  },
);

export const closeRtpReview = endpoint(
  {
    method: 'post',
    path: '/rtp-reviews/{id}/close',
    params: { id: PATH.reviewId },
    operationId: 'closeRtpReview',
    tag: 'Games',
    summary: 'Close a review with its finding, for good',
    scope: 'operator',
    body: RtpCloseBody,
    status: 200,
    response: RtpReview,
    hasSums: true,
    errors: [ERRORS.notFound],
    failure: ERRORS.internal,
  },
  {
    description: `The text becomes its last note. A closed review is not closed again (${ERRORS.validationFailed.code}). The next judgement of \`REVIEW\` or \`ALERT\` opens another.`,
    request: { finding: 'CHANCE', text: NOTE.text },
    response: {
      ...REVIEW,
      status: 'CLOSED',
      finding: 'CHANCE',
      closedAt: NOTE.at,
      closedBy: NOTE.by,
    },
  },
);
