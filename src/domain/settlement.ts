/**
 * A settlement report: what a partner's games took and paid on one UTC day, sealed by a hash that the next one names.
 * Pure: the figures come from the ledger (src/books/settlement/settlements.store.ts), this makes the report of them.
 */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Static } from '#typebox';
import type {
  ReportStatus as ReportStatusSchema,
  SettlementGame,
  SettlementReport,
} from '../api/settlements/contract.js';
import type { CsvText } from './csv.js';
import { ExactNumber, type JsonNumber, jsonInteger, jsonUsd, unmarked, type WithSums } from './exactJson.js';
import { rtpOf } from './rtp.js';

export const DAY_MS = 86_400_000;

export type ReportStatus = Static<typeof ReportStatusSchema>;

/** What the books have of a game on a day. */
export interface GameFigures {
  readonly gameConfigId: number;
  readonly configName: string;
  readonly displayName: string;
  readonly gameType: string;
  /** Of the PAR sheet, or of the prize table. */
  readonly certifiedRtp: number | null;
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
  /** Shares of its communal progressive. */
  readonly communityBonusMicros: bigint;
}

/** Blackjack rounds that are open at a moment. */
export interface OpenRounds {
  readonly rounds: bigint;
  readonly wageredMicros: bigint;
}

export type Breakdown = WithSums<Static<typeof SettlementGame>, 'spins'>;

/** What the hash covers: a report without its hash and its status (docs/contract.md §12.2). */
export type Report = WithSums<
  Omit<
    Static<typeof SettlementReport>,
    'reportStatus' | 'integrityHash' | 'acknowledgedAt' | 'disputedAt' | 'disputeReason' | 'gameBreakdown'
  >,
  'totalSpins' | 'openRounds'
> & { readonly gameBreakdown: readonly Breakdown[] };

// Days ---------------------------------------------------------------------------------------------------------------

/** The text is a day of the calendar, YYYY-MM-DD, from the year 1 on. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text < '0001') return false;
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && dayOf(ms) === text;
}

/** The UTC day of a moment, milliseconds since the epoch. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** When a day begins, milliseconds since the epoch. */
export const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);

/** The day so many days after another one, or before it. */
export const shiftDay = (day: string, days: number): string => dayOf(startOf(day) + days * DAY_MS);

/**
 * How long after its end a day is over, milliseconds: an entry that is dealt later falls into the next day, although a clock was behind.
 * Each clock that is asked must have passed it.
 * @param skewMaxMs by how much clocks may differ; where that is a day or more, they say nothing of days
 */
export const overAfterMs = (skewMaxMs: number): number => (skewMaxMs < DAY_MS ? skewMaxMs : 0);

// Figures ------------------------------------------------------------------------------------------------------------

/**
 * Makes the report of a day.
 * @param figures games in the order of their ids
 */
export function composeReport(
  about: Pick<
    Report,
    'reportDate' | 'revision' | 'ledgerFrom' | 'ledgerTo' | 'previousHash' | 'generatedAt' | 'logCheckpoint'
  >,
  figures: {
    readonly games: readonly GameFigures[];
    readonly adjustmentsMicros: bigint;
    readonly open: OpenRounds;
  },
): Report {
  const { games } = figures;
  const sum = (of: (game: GameFigures) => bigint): bigint =>
    games.reduce((total, game) => total + of(game), 0n);
  const wagered = sum((game) => game.wageredMicros);
  const paid = sum((game) => game.paidMicros);
  return {
    reportDate: about.reportDate,
    revision: about.revision,
    totalSpins: jsonInteger(sum((game) => game.spins)),
    totalWageredUsd: jsonUsd(wagered),
    totalPaidOutUsd: jsonUsd(paid),
    netPositionUsd: jsonUsd(wagered - paid),
    ggrUsd: jsonUsd(wagered - paid),
    communityBonusUsd: jsonUsd(sum((game) => game.communityBonusMicros)),
    adjustmentsUsd: jsonUsd(figures.adjustmentsMicros),
    openRounds: jsonInteger(figures.open.rounds),
    openWageredUsd: jsonUsd(figures.open.wageredMicros),
    gameBreakdown: games.map((game) => ({
      gameConfigId: game.gameConfigId,
      configName: game.configName,
      displayName: game.displayName,
      gameType: game.gameType,
      spins: jsonInteger(game.spins),
      wageredUsd: jsonUsd(game.wageredMicros),
      paidOutUsd: jsonUsd(game.paidMicros),
      ggrUsd: jsonUsd(game.wageredMicros - game.paidMicros),
      actualRtp: rtpOf(game.wageredMicros, game.paidMicros),
      certifiedRtp: game.certifiedRtp,
      communityBonusUsd: jsonUsd(game.communityBonusMicros),
    })),
    ledgerFrom: about.ledgerFrom,
    ledgerTo: about.ledgerTo,
    previousHash: about.previousHash,
    generatedAt: about.generatedAt,
    ...(about.logCheckpoint === undefined ? {} : { logCheckpoint: about.logCheckpoint }),
  };
}

/**
 * The canonical form (RFC 8785) of a report, and its SHA-256 in hexadecimal digits. A sum that a double does not hold is
 * written with all its digits, which RFC 8785 leaves to the application.
 */
export function seal(report: Report): { text: string; integrityHash: string } {
  const text = unmarked(canonicalize(report)!);
  return { text, integrityHash: createHash('sha256').update(text, 'utf8').digest('hex') };
}

// CSV ----------------------------------------------------------------------------------------------------------------

const COLUMNS = [
  'gameConfigId',
  'configName',
  'displayName',
  'gameType',
  'spins',
  'wageredUsd',
  'paidOutUsd',
  'ggrUsd',
  'actualRtp',
  'certifiedRtp',
  'communityBonusUsd',
] as const satisfies readonly (keyof Breakdown)[];

/** The breakdown as CSV, with a header line. Null is an empty field. */
export function breakdownCsv(report: Pick<Report, 'gameBreakdown'>, csvText: CsvText): string {
  const field = (value: string | JsonNumber | null): string => {
    if (value === null) return '';
    if (typeof value === 'number' || value instanceof ExactNumber) return String(value);
    return csvText(value);
  };
  const lines = report.gameBreakdown.map((row) => COLUMNS.map((name) => field(row[name] ?? null)).join(','));
  return [COLUMNS.join(','), ...lines, ''].join('\r\n');
}
