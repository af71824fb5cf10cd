/** Reports over intervals, liability, significant events. */
import { ERRORS } from '../../domain/errors.js';
import { endpoint } from '../contract/endpoint.js';
import {
  EventsReport,
  EventsReportQuery,
  GamesReport,
  GamesReportQuery,
  LiabilityQuery,
  LiabilityReport,
  PartnerReportQuery,
} from '../contract/requests.js';

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
/** The same rows as CSV: numbers as they are, texts quoted (RFC 4180). */
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
