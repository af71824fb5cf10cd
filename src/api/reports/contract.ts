/** Schemas and operations of reports: games over an interval, liability and significant events. */
import { Type } from '#typebox';
import { ERRORS } from '../../domain/errors.js';
import { GAME_TYPES } from '../../domain/games/kindOfGame.js';
import { choice, escapeFormulas, extensible, ID_MAX, nullable, timestamp, usd } from '../../domain/schema.js';
import { SignificantEvent } from '../../domain/significantEvents.js';
import { endpointsOf } from '../contract/endpoint.js';

const { partner, operator } = endpointsOf('Reports');

const day = (description: string) => Type.String({ description: `${description}, as YYYY-MM-DD` });

const partnerId = Type.Optional(
  Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Only data of this partner' }),
);

const cursor = Type.Optional(
  Type.String({
    maxLength: 64,
    description: 'The `nextCursor` of the previous page. Default: the first page.',
  }),
);

const nextCursor = nullable(
  Type.String({ description: 'Value of `cursor` for the next page; null on the last page' }),
);

const open = {
  openRounds: Type.Integer({
    description: 'Number of blackjack rounds that are open at the end of the report',
  }),
  openWageredUsd: usd(
    'Stakes on open rounds at the end of the report, in USD. `wageredUsd` counts each stake at the time when it was placed.',
  ),
};

export const ReportInterval = choice(
  ['DTD', 'MTD', 'YTD', 'LTD', 'RANGE'],
  '`DTD`, `MTD`, `YTD`, `LTD`: day, month, year or life to date, in UTC up to now. `RANGE`: from `from` to `to`.',
);

export const PartnerReportQuery = Type.Object({
  interval: Type.String({
    pattern: '^(DTD|MTD|YTD|LTD|RANGE)$',
    description:
      '`DTD`, `MTD`, `YTD`, `LTD`: day, month, year or life to date, in UTC up to now. `RANGE`: from `from` to `to`.',
  }),
  from: Type.Optional(day('First UTC day of the report, for `interval` RANGE only')),
  to: Type.Optional(day('Last UTC day of the report (inclusive), for `interval` RANGE only')),
  gameId: Type.Optional(Type.Integer({ minimum: 1, maximum: ID_MAX, description: 'Only data of this game' })),
  cursor,
  escapeFormulas,
});

export const GamesReportQuery = Type.Object({ ...PartnerReportQuery.properties, partnerId });

const figures = {
  spins: Type.Integer(),
  wageredUsd: usd('Sum of the wagers, in USD'),
  paidOutUsd: usd('Sum of the payouts, in USD'),
  ggrUsd: usd('Gross gaming revenue in USD: wagers − payouts'),
  communityBonusUsd: usd('Shares of communal progressives, in USD. They are not part of `ggrUsd`.'),
  actualRtp: nullable(
    Type.Number({ description: 'Payouts divided by wagers, with 6 decimals; null without wagers' }),
  ),
};

const ofOutcomes = {
  voidedOutcomes: Type.Integer({ description: 'Number of sealed outcomes that were voided in the interval' }),
  ...open,
  refundedUsd: usd(
    'Refunds of the tickets of voided raffles, in USD. They are adjustments, so `ggrUsd` still has the price of these tickets.',
  ),
};

export const GamesReportRow = Type.Object({
  partnerId: Type.Integer(),
  gameConfigId: Type.Integer(),
  configName: Type.String(),
  displayName: Type.String(),
  gameType: extensible(GAME_TYPES, 'Kind of game'),
  status: extensible(['ACTIVE', 'SUSPENDED', 'SEALING', 'CLOSED'], 'Status of the game'),
  ...figures,
  certifiedRtp: nullable(
    Type.Number({ description: 'Certified return to player of the PAR sheet or prize table' }),
  ),
  ...ofOutcomes,
});

export const GamesReportTotals = Type.Object(
  { ...figures, ...ofOutcomes },
  { description: 'Totals of all games, including those on other pages' },
);

export const GamesReport = Type.Object({
  report: Type.Literal('games'),
  interval: ReportInterval,
  from: nullable(day('First UTC day of the report (null: from the first spin on)')),
  to: day('Last UTC day of the report'),
  generatedAt: timestamp(),
  generatedBy: Type.String({ description: 'Partner or operator who requested the report' }),
  completeTo: nullable(
    day('Last UTC day that is completely committed, like all days before it (null: no day)'),
  ),
  noActivity: Type.Boolean({ description: 'True if the interval has no spin, share or round' }),
  rows: Type.Array(GamesReportRow, { description: 'Rows, ordered by gameConfigId; at most 10,000' }),
  totals: GamesReportTotals,
  nextCursor,
});

export const LiabilityQuery = Type.Object({
  date: Type.Optional(
    day('UTC day at whose end the report is taken; the day must be over (default: the current state)'),
  ),
  escapeFormulas,
});

const owed = {
  players: Type.Integer({ description: 'Number of players who have ever existed' }),
  balancesUsd: usd('Sum of the balances in USD: openings + adjustments + payouts − wagers + shares'),
  positiveUsd: nullable(usd('Sum of the balances above zero, in USD; null for a past day')),
  negativeUsd: nullable(usd('Sum of the balances below zero, in USD; null for a past day')),
  ...open,
  communalBudgetUsd: usd('Sum of the remaining budgets of communal progressives, in USD'),
};

export const LiabilityRow = Type.Object({ partnerId: Type.Integer(), slug: Type.String(), ...owed });
export const LiabilityTotals = Type.Object(owed, { description: 'Totals of all partners' });

export const LiabilityReport = Type.Object({
  report: Type.Literal('liability'),
  date: nullable(day('UTC day at whose end the report was taken (null: the current state)')),
  generatedAt: timestamp(),
  generatedBy: Type.String({ description: 'Partner or operator who requested the report' }),
  noActivity: Type.Boolean({ description: 'True if there is no player' }),
  rows: Type.Array(LiabilityRow, { description: 'Rows, ordered by partnerId' }),
  totals: LiabilityTotals,
});

const time = (description: string) => Type.Optional(Type.String({ maxLength: 64, description }));

export const EventsReportQuery = Type.Object({
  from: time('Only events from this RFC 3339 time on. Default: from the first event on.'),
  to: time('Only events before this RFC 3339 time. Default: up to now.'),
  type: Type.Optional(
    Type.String({
      maxLength: 64,
      description: 'Only events of this type, such as `cell.halt` or `spin.large_win`',
    }),
  ),
  severity: Type.Optional(
    Type.String({
      pattern: '^(INFO|WARNING|CRITICAL)$',
      description: 'Only events of this severity: `INFO`, `WARNING` or `CRITICAL`',
    }),
  ),
  partnerId,
  cursor,
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 20, description: 'Number of events on a page' }),
  escapeFormulas,
});

export const EventsReport = Type.Object({
  events: Type.Array(SignificantEvent, { description: 'Events, oldest first' }),
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

const OF_OUTCOMES = { voidedOutcomes: 0, openRounds: 0, openWageredUsd: 0, refundedUsd: 0 };

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

const GAMES_TEXT = `Figures are exact sums of daily totals. Games without spins have zeros. For the same days the figures equal those of the settlement reports. Intervals that end now include all entries committed so far; days up to \`completeTo\` are final. RANGE without both days is refused with ${ERRORS.fieldMissing.code}. CSV has all rows, or the single line \`No Activity\`.`;

export const getPartnerGamesReport = partner.get('getPartnerGamesReport', '/reports/games', {
  summary: 'Report the wagers and payouts of your games in an interval (CSV with `Accept: text/csv`)',
  description: GAMES_TEXT,
  query: PartnerReportQuery,
  response: GamesReport,
  hasSums: true,
  errors: [ERRORS.fieldMissing, ERRORS.invalidDate, ERRORS.gameNotRegistered],
  example: { ...GAMES, generatedBy: 'partner:1' },
  csvExample: csvOf(GAMES.rows),
});

export const getGamesReport = operator.get('getGamesReport', '/reports/games', {
  ...getPartnerGamesReport,
  summary: 'Report the wagers and payouts of games in an interval (CSV with `Accept: text/csv`)',
  description: GAMES_TEXT,
  query: GamesReportQuery,
  errors: [ERRORS.fieldMissing, ERRORS.invalidDate, ERRORS.gameNotFound, ERRORS.partnerNotFound],
  example: GAMES,
  csvExample: csvOf(GAMES.rows),
});

const OWED = {
  players: 1200,
  balancesUsd: 48_211.25,
  positiveUsd: 48_300,
  negativeUsd: -88.75,
  openRounds: 2,
  openWageredUsd: 20,
  communalBudgetUsd: 880,
};

export const getLiabilityReport = operator.get('getLiabilityReport', '/reports/liability', {
  summary: 'Report the liabilities of partners to their players (CSV with `Accept: text/csv`)',
  description: `Returns the current liabilities, or those at the end of a past day. Balances are openings + adjustments + payouts − wagers + shares up to then, including forced spins, as exact sums of daily totals. A day that is not over is refused with ${ERRORS.invalidDate.code}. Future payouts of a live raffle are not included.`,
  query: LiabilityQuery,
  response: LiabilityReport,
  hasSums: true,
  errors: [ERRORS.invalidDate],
  example: {
    report: 'liability',
    date: null,
    generatedAt: GAMES.generatedAt,
    generatedBy: 'anna',
    noActivity: false,
    rows: [{ partnerId: 1, slug: 'acme', ...OWED }],
    totals: OWED,
  },
  csvExample: csvOf([{ partnerId: 1, slug: 'acme', ...OWED }]),
});

const EVENT = {
  eventId: 'a412',
  at: '2026-11-22T04:14:01.121Z',
  type: 'cell.halt',
  severity: 'CRITICAL',
  actor: 'worker',
  subject: 'cell:3',
  partnerId: null,
  data: { before: null, after: { reason: 'game 7: index 12 is not the next one of the ledger' } },
  gameId: null,
  playerId: null,
  spinId: null,
  payoutUsd: null,
};

const WIN = {
  eventId: 'w17',
  at: '2026-11-22T04:15:20.004Z',
  type: 'spin.large_win',
  severity: 'INFO',
  actor: 'worker',
  subject: 'player:2:alice',
  partnerId: 2,
  data: {
    spinId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
    gameId: 3,
    playerId: 'alice',
    payoutUsd: 250,
    prizeTier: 6,
    requestId: 'r-1',
  },
  gameId: 3,
  playerId: 'alice',
  spinId: '3f0c1f5ab3d94dd0a6a1c9d1b0e0f4c2',
  payoutUsd: 250,
};

export const getEventsReport = operator.get('getEventsReport', '/reports/events', {
  summary: 'List significant events, oldest first (CSV with `Accept: text/csv`)',
  description:
    'Lists every action of the audit log with its severity, and every large win. `gameId`, `playerId`, `spinId` and `payoutUsd` describe a large win. `data` has the stored details of the event. CSV has all events of the range. [Reports](/docs/reports) lists the types.',
  query: EventsReportQuery,
  response: EventsReport,
  example: {
    events: [EVENT, WIN],
    nextCursor: 'a412.w17',
  },
  csvExample: csvOf([EVENT, WIN]),
});
