/** Schemas and operations of the return to player of games: its assessment and its reviews. */
import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { RTP_STATES, RTP_WINDOWS } from '../../domain/rtp.js';
import {
  choice,
  ID_MAX,
  nullable,
  Page,
  pageMembers,
  REASON_PATTERN,
  timestamp,
  usd,
} from '../../domain/schema.js';
import { endpointsOf } from '../contract/endpoint.js';

const { partner, operator } = endpointsOf('Games');

const day = (description: string) => Type.String({ description: `${description}, as YYYY-MM-DD` });

export const RtpWindowName = choice(
  RTP_WINDOWS,
  '`ROLLING_30`: the 30 UTC days up to the assessed day. `LIFE`: all days since the first spin.',
);

export const RtpStateName = choice(
  RTP_STATES,
  '`ALERT`: chance does not explain the deviation. `REVIEW`: outside the 99 % band. `WATCH`: outside the 95 % band. `TOO_FEW`: too few spins for a band. `NOT_JUDGED`: not a slot, or no spins.',
);

const z = nullable(
  Type.Number({
    description:
      'Deviation of the return from the expected one, in standard deviations with 4 decimals; null if it cannot be calculated',
  }),
);

const nats = nullable(
  Type.Number({
    description:
      'Improbability of a deviation of at least this size. Its probability is at most 2·exp(−nats). The value has 4 decimals.',
  }),
);

const paidMembers = {
  spins: Type.Integer(),
  wageredUsd: usd('Sum of the wagers, in USD'),
  paidOutUsd: usd('Sum of the payouts, in USD'),
};

export const RtpExpected = Type.Object(
  {
    rtp: Type.Number({ description: 'Mean payout of a spin, in wagers with 6 decimals' }),
    sigma: Type.Number({
      description: 'Standard deviation of the payout of a spin, in wagers with 4 decimals',
    }),
    skewness: Type.Number({ description: 'Skewness of the payout of a spin, with 4 decimals' }),
    normalFromSpins: Type.Integer({ description: 'Number of spins below which the bands are unreliable' }),
  },
  { description: 'Expected values, calculated from the PAR sheet' },
);

export const RtpRecord = Type.Object({
  day: day('Assessed UTC day'),
  window: RtpWindowName,
  ...paidMembers,
  z,
  nats,
  state: RtpStateName,
});

export const RtpWindow = Type.Object({
  window: RtpWindowName,
  from: day('First UTC day of the window'),
  to: day('Last UTC day of the window, which is the assessed day'),
  ...paidMembers,
  actualRtp: nullable(
    Type.Number({ description: 'Payouts divided by wagers, with 6 decimals; null without wagers' }),
  ),
  z,
  band95: nullable(
    Type.Array(Type.Number(), {
      description:
        'Lower and upper bound of the band that contains the return of a fair game 95 times in 100',
    }),
  ),
  band99: nullable(
    Type.Array(Type.Number(), {
      description:
        'Lower and upper bound of the band that contains the return of a fair game 99 times in 100',
    }),
  ),
  nats,
  state: RtpStateName,
});

export const GameRtp = Type.Object({
  gameConfigId: Type.Integer(),
  expected: nullable(RtpExpected),
  judgedAt: nullable(timestamp()),
  windows: Type.Array(RtpWindow, { description: 'Assessments by window. Empty until the first assessment.' }),
  history: Type.Optional(
    Type.Array(RtpRecord, {
      description: 'Past assessments, oldest first. Present if the query has `days`.',
    }),
  ),
});

export const RtpQuery = Type.Object({
  days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 400,
      description: 'Number of days up to the newest assessment that the response includes as `history`',
    }),
  ),
});

export const RtpFinding = choice(['CHANCE', 'GAME_ERROR', 'DATA_ERROR'], 'Conclusion of the review');
export const RtpReviewStatus = choice(['OPEN', 'CLOSED']);

export const RtpReviewsQuery = Type.Object({
  ...Page.properties,
  status: Type.Optional(
    Type.String({
      pattern: '^(OPEN|CLOSED)$',
      description: 'Only reviews with this status: `OPEN` or `CLOSED`. Default: both.',
    }),
  ),
  gameId: Type.Optional(
    Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Only reviews of this game' }),
  ),
});

export const RtpReviewNote = Type.Object({
  at: timestamp(),
  by: Type.String({ description: 'Author of the note, as in the audit log' }),
  text: Type.String(),
});

export const RtpReview = Type.Object({
  reviewId: Type.Integer(),
  gameConfigId: Type.Integer(),
  window: RtpWindowName,
  openedAt: timestamp(),
  status: RtpReviewStatus,
  finding: nullable(RtpFinding),
  notes: Type.Array(RtpReviewNote, { description: 'Notes, oldest first' }),
  records: Type.Array(RtpRecord, {
    description: 'Assessments with REVIEW or ALERT while the review was open: the newest 100, oldest first',
  }),
  closedAt: nullable(timestamp()),
  closedBy: nullable(Type.String()),
});

export const RtpReviewList = Type.Object({ reviews: Type.Array(RtpReview), ...pageMembers });

const noteText = Type.String({
  pattern: REASON_PATTERN,
  description: 'Result of the investigation, or action taken',
});

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

export const getGameRtp = partner.get('getGameRtp', '/games/{id}/rtp', {
  summary: 'Get the return to player of a game, assessed by the variance of its PAR sheet',
  description:
    'The return is assessed once a day, when the whole day is in the ledger. Forced spins and voided rounds are excluded. For a fair game, chance alone makes 1 % of the assessments `REVIEW` and 4 % `WATCH`. For raffles and blackjack tables `expected` is null, and the return is not assessed.',
  query: RtpQuery,
  response: GameRtp,
  hasSums: true,
  example: RTP,
});

export const getAnyGameRtp = operator.get('getAnyGameRtp', '/games/{id}/rtp', getGameRtp);

export const listRtpReviews = operator.get('listRtpReviews', '/rtp-reviews', {
  summary: 'List the reviews of returns to player, newest first',
  description:
    'An assessment with `REVIEW` or `ALERT` opens a review if the game has no open review. `total` counts up to 10,000.',
  query: RtpReviewsQuery,
  response: RtpReviewList,
  hasSums: true,
  example: { reviews: [REVIEW], page: 1, limit: 20, total: 1 },
});

export const getRtpReview = operator.get('getRtpReview', '/rtp-reviews/{id}', {
  summary: 'Get a review of a return to player',
  description: 'Returns a review with its notes and assessments.',
  response: RtpReview,
  hasSums: true,
  example: REVIEW,
});

export const addRtpNote = operator.post('addRtpNote', '/rtp-reviews/{id}/notes', {
  summary: 'Add a note to a review',
  description: 'Notes never change. Closed reviews also accept notes.',
  body: RtpNoteBody,
  status: 201,
  response: RtpReview,
  hasSums: true,
  bodyExample: { text: NOTE.text },
  example: REVIEW,
});

export const closeRtpReview = operator.post('closeRtpReview', '/rtp-reviews/{id}/close', {
  summary: 'Close a review permanently with its finding',
  description: `The text becomes the last note of the review. A closed review cannot be closed again (${ERRORS.validationFailed.code}). The next assessment with \`REVIEW\` or \`ALERT\` opens a new review.`,
  body: RtpCloseBody,
  response: RtpReview,
  hasSums: true,
  bodyExample: { finding: 'CHANCE', text: NOTE.text },
  example: {
    ...REVIEW,
    status: 'CLOSED',
    finding: 'CHANCE',
    closedAt: NOTE.at,
    closedBy: NOTE.by,
  },
});
