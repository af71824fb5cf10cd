/** Schemas and operations of the return to player: its assessment and its reviews. */
import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { RTP_STATES, RTP_WINDOWS } from '../../domain/rtp.js';
import {
  choice,
  ID_MAX,
  nullable,
  PATH,
  Page,
  pageMembers,
  REASON_PATTERN,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { endpoint } from '../contract/endpoint.js';

const day = (description: string) => Type.String({ description: `${description}, YYYY-MM-DD` });

export const RtpWindowName = choice(
  RTP_WINDOWS,
  'ROLLING_30: the 30 UTC days up to the judged one; LIFE: from the first spin on',
);

export const RtpStateName = choice(
  RTP_STATES,
  'ALERT: beyond what chance does; REVIEW, WATCH: outside the band of 99, of 95 %; TOO_FEW: too few spins for a band; NOT_JUDGED: no slot, or no spins',
);

const z = nullable(
  Type.Number({ description: 'Deviation of the return in standard deviations; 4 decimals; null: none' }),
);

const nats = nullable(
  Type.Number({ description: 'How unlikely a deviation as large is: at most 2·exp(−nats); 4 decimals' }),
);

const paidMembers = {
  spins: Type.Integer(),
  wageredUsd: usd('Sum of the wagers'),
  paidOutUsd: usd('Sum of the payouts'),
};

export const RtpExpected = Type.Object(
  {
    rtp: Type.Number({ description: 'Mean payout of a spin in wagers; 6 decimals' }),
    sigma: Type.Number({ description: 'Standard deviation of it; 4 decimals' }),
    skewness: Type.Number({ description: 'Skewness of it; 4 decimals' }),
    normalFromSpins: Type.Integer({ description: 'Below so many spins the bands say little' }),
  },
  { description: 'What the PAR sheet lets expect' },
);

export const RtpRecord = Type.Object({
  day: day('The judged UTC day'),
  window: RtpWindowName,
  ...paidMembers,
  z,
  nats,
  state: RtpStateName,
});

export const RtpWindow = Type.Object({
  window: RtpWindowName,
  from: day('First UTC day of the window'),
  to: day('Last UTC day of the window: the judged one'),
  ...paidMembers,
  actualRtp: nullable(Type.Number({ description: 'Paid over wagered; 6 decimals; null: nothing wagered' })),
  z,
  band95: nullable(Type.Array(Type.Number(), { description: 'Where 95 of 100 such returns lie' })),
  band99: nullable(Type.Array(Type.Number(), { description: 'Where 99 of 100 such returns lie' })),
  nats,
  state: RtpStateName,
});

export const GameRtp = Type.Object({
  gameConfigId: Type.Integer(),
  expected: nullable(RtpExpected),
  judgedAt: nullable(timestamp()),
  windows: Type.Array(RtpWindow, { description: 'Empty until the first judgement' }),
  history: Type.Optional(Type.Array(RtpRecord, { description: 'With `days` only; oldest first' })),
});

export const RtpQuery = Type.Object({
  days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 400,
      description: 'Adds the judgements of so many days, up to the newest, as `history`',
    }),
  ),
});

export const RtpFinding = choice(['CHANCE', 'GAME_ERROR', 'DATA_ERROR'], 'What the review found');
export const RtpReviewStatus = choice(['OPEN', 'CLOSED']);

export const RtpReviewsQuery = Type.Object({
  ...Page.properties,
  status: Type.Optional(
    Type.String({ pattern: '^(OPEN|CLOSED)$', description: '`OPEN` or `CLOSED`; absent: both' }),
  ),
  gameId: Type.Optional(Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Of this game only' })),
});

export const RtpReviewNote = Type.Object({
  at: timestamp(),
  by: Type.String({ description: 'Who wrote it, as the audit log names it' }),
  text: Type.String(),
});

export const RtpReview = Type.Object({
  reviewId: Type.Integer(),
  gameConfigId: Type.Integer(),
  window: RtpWindowName,
  openedAt: timestamp(),
  status: RtpReviewStatus,
  finding: nullable(RtpFinding),
  notes: Type.Array(RtpReviewNote, { description: 'Oldest first' }),
  records: Type.Array(RtpRecord, {
    description: 'Judgements of REVIEW and ALERT while it was open, the newest 100, oldest first',
  }),
  closedAt: nullable(timestamp()),
  closedBy: nullable(Type.String()),
});

export const RtpReviewList = Type.Object({ reviews: Type.Array(RtpReview), ...pageMembers });

const noteText = Type.String({ pattern: REASON_PATTERN, description: 'What was found out or done' });

export const RtpNoteBody = Type.Object({ text: noteText });

export const RtpCloseBody = Type.Object({ finding: RtpFinding, text: noteText });

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
