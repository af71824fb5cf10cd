/** Reports over intervals, what partners owe, significant events (docs/reports.md). */
import { Type } from '#typebox';
import { GAME_TYPES } from '../../domain/games/kindOfGame.js';
import { choice, escapeFormulas, extensible, ID_MAX, nullable, timestamp, usd } from '../../domain/schema.js';

const day = (description: string) => Type.String({ description: `${description}, YYYY-MM-DD` });
const partnerId = Type.Optional(
  Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Of this partner only' }),
);
const cursor = Type.Optional(
  Type.String({
    maxLength: 64,
    description: 'The `nextCursor` of the page before; absent: from the first on',
  }),
);
const nextCursor = nullable(Type.String({ description: 'Where the next page begins; null: there is none' }));
const open = {
  openRounds: Type.Integer({ description: 'Blackjack rounds that are open where the report ends' }),
  openWageredUsd: usd('What was staked on them by then; in `wageredUsd` by its time'),
};

export const ReportInterval = choice(
  ['DTD', 'MTD', 'YTD', 'LTD', 'RANGE'],
  'Day, month, year, life to date (UTC, to now); RANGE: from `from` to `to`',
);

export const PartnerReportQuery = Type.Object({
  interval: Type.String({
    pattern: '^(DTD|MTD|YTD|LTD|RANGE)$',
    description:
      '`DTD`, `MTD`, `YTD`, `LTD`: day, month, year, life to date (UTC, to now); `RANGE`: from `from` to `to`',
  }),
  from: Type.Optional(day('Of RANGE: the first UTC day')),
  to: Type.Optional(day('Of RANGE: the last UTC day, which is in the report')),
  gameId: Type.Optional(Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Of this game only' })),
  cursor,
  escapeFormulas,
});
export const GamesReportQuery = Type.Object({ ...PartnerReportQuery.properties, partnerId });

const figures = {
  spins: Type.Integer(),
  wageredUsd: usd('Sum of the wagers'),
  paidOutUsd: usd('Sum of the payouts'),
  ggrUsd: usd('Gross gaming revenue: wagered − paid out'),
  communityBonusUsd: usd('Shares of communal progressives; not in `ggrUsd`'),
  actualRtp: nullable(Type.Number({ description: 'Paid over wagered; 6 decimals; null: nothing wagered' })),
};
const ofOutcomes = {
  voidedOutcomes: Type.Integer({ description: 'Outcomes that were sealed, and given up in the interval' }),
  ...open,
};

export const GamesReportRow = Type.Object({
  partnerId: Type.Integer(),
  gameConfigId: Type.Integer(),
  configName: Type.String(),
  displayName: Type.String(),
  gameType: extensible(GAME_TYPES, 'Kind of game'),
  status: extensible(['ACTIVE', 'SUSPENDED', 'SEALING', 'CLOSED'], 'Whether it is dealt'),
  ...figures,
  certifiedRtp: nullable(Type.Number({ description: 'Of the PAR sheet, or of the prize table' })),
  ...ofOutcomes,
});

export const GamesReportTotals = Type.Object(
  { ...figures, ...ofOutcomes },
  { description: 'Of all games, those of other pages too' },
);

export const GamesReport = Type.Object({
  report: Type.Literal('games'),
  interval: ReportInterval,
  from: nullable(day('First UTC day; null: from the first on')),
  to: day('Last UTC day'),
  generatedAt: timestamp(),
  generatedBy: Type.String({ description: 'Who asked' }),
  completeTo: nullable(day('Last UTC day of which all is booked, and of every day before it; null: none')),
  noActivity: Type.Boolean({ description: 'No spin, share or round in the interval' }),
  rows: Type.Array(GamesReportRow, { description: 'By gameConfigId; up to 10,000' }),
  totals: GamesReportTotals,
  nextCursor,
});

export const LiabilityQuery = Type.Object({
  date: Type.Optional(day('At the end of this UTC day, which is over; absent: now')),
  escapeFormulas,
});

const owed = {
  players: Type.Integer({ description: 'Players that there ever were' }),
  balancesUsd: usd('Sum of the balances: openings + adjustments + paid − wagered + shares'),
  positiveUsd: nullable(usd('Sum of the balances above zero; null for a past day')),
  negativeUsd: nullable(usd('Sum of the balances below zero; null for a past day')),
  ...open,
  communalBudgetUsd: usd('What is left in the budgets of communal progressives'),
};

export const LiabilityRow = Type.Object({ partnerId: Type.Integer(), slug: Type.String(), ...owed });
export const LiabilityTotals = Type.Object(owed, { description: 'Of all partners' });

export const LiabilityReport = Type.Object({
  report: Type.Literal('liability'),
  date: nullable(day('At the end of this UTC day; null: now')),
  generatedAt: timestamp(),
  generatedBy: Type.String({ description: 'Who asked' }),
  noActivity: Type.Boolean({ description: 'There was no player' }),
  rows: Type.Array(LiabilityRow, { description: 'By partnerId' }),
  totals: LiabilityTotals,
});

export const EventSeverity = choice(['INFO', 'WARNING', 'CRITICAL']);

const time = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }));

export const EventsReportQuery = Type.Object({
  from: time('Events from this time on, RFC 3339; absent: from the first on'),
  to: time('Events before this time, RFC 3339; absent: up to now'),
  type: Type.Optional(
    Type.String({ maxLength: 64, description: 'Of this type only, such as `cell.halt` or `spin.large_win`' }),
  ),
  severity: Type.Optional(
    Type.String({
      pattern: '^(INFO|WARNING|CRITICAL)$',
      description: '`INFO`, `WARNING` or `CRITICAL` only',
    }),
  ),
  partnerId,
  cursor,
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Events on a page' }),
  escapeFormulas,
});

export const SignificantEvent = Type.Object({
  eventId: Type.String(),
  at: timestamp(),
  type: Type.String({ description: 'The action of the audit log, or `spin.large_win`' }),
  severity: EventSeverity,
  actor: Type.String({ description: 'Who did it; `worker`: nobody' }),
  subject: Type.String({ description: 'What it was done to, such as `game:7`' }),
  partnerId: nullable(Type.Integer({ description: 'Whose the subject is; null: nobody’s' })),
  data: Type.Unknown({
    description: 'Of an action `before` and `after`; of a large win what its webhook says',
  }),
});

export const EventsReport = Type.Object({
  events: Type.Array(SignificantEvent, { description: 'Oldest first' }),
  nextCursor,
});
