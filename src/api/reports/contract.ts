/** Schemas and operations of reports: games over an interval, liability and significant events. */
import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { GAME_TYPES } from '../../domain/games/kindOfGame.js';
import { choice, escapeFormulas, extensible, ID_MAX, nullable, timestamp, usd } from '../../domain/schema.js';
import { SignificantEvent } from '../../domain/significantEvents.js';
import { endpoint } from '../contract/endpoint.js';

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

export const EventsReport = Type.Object({
  events: Type.Array(SignificantEvent, { description: 'Oldest first' }),
  nextCursor,
});

const FIGURES = {
  spins: 1_000_000,
  wageredUsd: 250_000,
  paidOutUsd: 231_800,
  ggrUsd: 18_200,
  communityBonusUsd: 120.5,
  actualRtp: 0.9272,
};

const OF_OUTCOMES = { voidedOutcomes: 0, openRounds: 0, openWageredUsd: 0 };

const GAMES = {
  report: 'games',
  interval: 'RANGE',
  from: '2026-10-23',
  to: '2026-11-21',
  generatedAt: '2026-11-22T09:12:30.125Z',
  generatedBy: 'anna',
  completeTo: '2026-11-21',
  noActivity: false,
  rows: [
    {
      partnerId: 1,
      gameConfigId: 7,
      configName: 'CLASSIC_3',
      displayName: 'Classic three',
      gameType: 'slot',
      status: 'ACTIVE',
      ...FIGURES,
      certifiedRtp: 0.925,
      ...OF_OUTCOMES,
    },
  ],
  totals: { ...FIGURES, ...OF_OUTCOMES },
  nextCursor: null,
};

/** Renders the example rows as CSV: numbers unquoted, texts quoted (RFC 4180). */
function csvOf(rows: readonly object[]): string {
  const field = (value: unknown): string => {
    if (value === null) return '';
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
    return typeof value === 'number' ? text : `"${text.replaceAll('"', '""')}"`;
  };
  const lines = [Object.keys(rows[0]!), ...rows.map((row) => Object.values(row).map(field))];
  return lines.map((line) => `${line.join(',')}\r\n`).join('');
}

const GAMES_TEXT = `Added up from totals by day: exact, of games without spins zeros, and the same days give the figures of the settlement reports. Intervals that end now have what is booked by now; \`completeTo\` says up to when nothing more can come. RANGE without both days is ${ERRORS.fieldMissing.code}. As CSV all rows, or the single line \`No Activity\`.`;

export const getPartnerGamesReport = endpoint(
  {
    method: 'get',
    path: '/reports/games',
    operationId: 'getPartnerGamesReport',
    tag: 'Reports',
    summary: 'What your games took and paid in an interval; with `Accept: text/csv` as CSV',
    scope: 'partner',
    query: PartnerReportQuery,
    status: 200,
    response: GamesReport,
    hasSums: true,
    hasCsv: true,
    errors: [ERRORS.fieldMissing, ERRORS.invalidDate, ERRORS.gameNotRegistered],
    failure: ERRORS.internal,
  },
  { description: GAMES_TEXT, response: { ...GAMES, generatedBy: 'partner:1' }, csv: csvOf(GAMES.rows) },
);

export const getGamesReport = endpoint(
  {
    ...getPartnerGamesReport,
    operationId: 'getGamesReport',
    summary: 'What games took and paid in an interval; with `Accept: text/csv` as CSV',
    scope: 'operator',
    query: GamesReportQuery,
    errors: [ERRORS.fieldMissing, ERRORS.invalidDate, ERRORS.gameNotFound, ERRORS.partnerNotFound],
  },
  { description: GAMES_TEXT, response: GAMES, csv: csvOf(GAMES.rows) },
);

const OWED = {
  players: 1200,
  balancesUsd: 48_211.25,
  positiveUsd: 48_300,
  negativeUsd: -88.75,
  openRounds: 2,
  openWageredUsd: 20,
  communalBudgetUsd: 880,
};

export const getLiabilityReport = endpoint(
  {
    method: 'get',
    path: '/reports/liability',
    operationId: 'getLiabilityReport',
    tag: 'Reports',
    summary: 'What partners owe their players, now or at the end of a day; with `Accept: text/csv` as CSV',
    scope: 'operator',
    query: LiabilityQuery,
    status: 200,
    response: LiabilityReport,
    hasSums: true,
    hasCsv: true,
    errors: [ERRORS.invalidDate],
    failure: ERRORS.internal,
  },
  {
    description: `Balances are openings + adjustments + paid − wagered + shares up to then, forced spins too, exact from totals by day. A day that is not over is ${ERRORS.invalidDate.code}. What a live raffle has to pay still has no figure anywhere.`,
    response: {
      report: 'liability',
      date: null,
      generatedAt: GAMES.generatedAt,
      generatedBy: 'anna',
      noActivity: false,
      rows: [{ partnerId: 1, slug: 'acme', ...OWED }],
      totals: OWED,
    },
    csv: csvOf([{ partnerId: 1, slug: 'acme', ...OWED }]),
  },
);

const EVENT = {
  eventId: 'a412',
  at: '2026-11-22T04:14:01.121Z',
  type: 'cell.halt',
  severity: 'CRITICAL',
  actor: 'worker',
  subject: 'cell:3',
  partnerId: null,
  data: { before: null, after: { reason: 'game 7: index 12 is not the next one of the ledger' } },
};

export const getEventsReport = endpoint(
  {
    method: 'get',
    path: '/reports/events',
    operationId: 'getEventsReport',
    tag: 'Reports',
    summary: 'Significant events, oldest first; with `Accept: text/csv` all of the range at once',
    scope: 'operator',
    query: EventsReportQuery,
    status: 200,
    response: EventsReport,
    hasCsv: true,
    errors: [],
    failure: ERRORS.internal,
  },
  {
    description:
      'Every action of the audit log with how grave it is, and every large win. `data` has what is kept of it. The list of types is in docs/reports.md.',
    response: {
      events: [EVENT],
      nextCursor: 'a412.w0',
    },
    csv: csvOf([EVENT]),
  },
);
