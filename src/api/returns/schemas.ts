/** The return to player of a game as it is judged (docs/reports.md), and the reviews of it. */
import { Type } from '#typebox';
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
