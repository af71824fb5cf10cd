/**
 * Settlement report: the wagers and payouts of a partner's games on one UTC day, sealed by a hash that the
 * next report includes. The figures come from the ledger (src/books/settlement/settlements.store.ts); the
 * pure functions here make the report.
 */

import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import { type Static, Type } from '#typebox';
import type { CsvText } from './csv.js';
import { DAY_MS } from './days.js';
import { ExactNumber, type JsonNumber, jsonInteger, jsonUsd, unmarked, type WithSums } from './exactJson.js';
import { GAME_TYPES } from './games/kindOfGame.js';
import { rtpOf } from './rtp.js';
import { choice, extensible, nullable, timestamp, usd } from './schema.js';

export type ReportStatus = Static<typeof ReportStatus>;

/** Figures of a game on a day, as the ledger has them. */
export interface GameFigures {
  readonly gameConfigId: number;
  readonly configName: string;
  readonly displayName: string;
  readonly gameType: string;
  /** Certified return of the game's PAR sheet or prize table. */
  readonly certifiedRtp: number | null;
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
  /** Sum of the shares of the game's communal progressive. */
  readonly communityBonusMicros: bigint;
}

export interface OpenRounds {
  readonly rounds: bigint;
  readonly wageredMicros: bigint;
}

export type Breakdown = WithSums<Static<typeof SettlementGame>, 'spins'>;

/**
 * The part of a report that its hash covers: everything but the hash and the status (docs/contract.md §12.2).
 */
export type SettlementReportBody = WithSums<
  Omit<
    Static<typeof SettlementReport>,
    'reportStatus' | 'integrityHash' | 'acknowledgedAt' | 'disputedAt' | 'disputeReason' | 'gameBreakdown'
  >,
  'totalSpins' | 'openRounds'
> & { readonly gameBreakdown: readonly Breakdown[] };

/**
 * Returns how long after its end a day counts as complete, in milliseconds. The delay ensures that a later
 * entry falls into the next day even if a clock was slow. Each clock that decides must have passed this time.
 * @param skewMaxMs maximum difference between clocks; a day or more means that clocks can't decide about days
 */
export const overAfterMs = (skewMaxMs: number): number => (skewMaxMs < DAY_MS ? skewMaxMs : 0);

// Figures ------------------------------------------------------------------------------------------------

/** @param figures games in the order of their ids */
export function composeReport(
  about: Pick<
    SettlementReportBody,
    'reportDate' | 'revision' | 'ledgerFrom' | 'ledgerTo' | 'previousHash' | 'generatedAt' | 'logCheckpoint'
  >,
  figures: {
    readonly games: readonly GameFigures[];
    readonly adjustmentsMicros: bigint;
    readonly open: OpenRounds;
  },
): SettlementReportBody {
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
 * Returns the canonical form (RFC 8785) of a report and its SHA-256 in hexadecimal. A sum that does not fit a
 * double is written with all its digits, which RFC 8785 leaves to the application.
 */
export function seal(report: SettlementReportBody): { text: string; integrityHash: string } {
  const text = unmarked(canonicalize(report)!);
  return { text, integrityHash: createHash('sha256').update(text, 'utf8').digest('hex') };
}

// CSV ----------------------------------------------------------------------------------------------------

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

/** Formats the breakdown as CSV with a header line. Null becomes an empty field. */
export function breakdownCsv(report: Pick<SettlementReportBody, 'gameBreakdown'>, csvText: CsvText): string {
  const field = (value: string | JsonNumber | null): string => {
    if (value === null) return '';
    if (typeof value === 'number' || value instanceof ExactNumber) return String(value);
    return csvText(value);
  };
  const lines = report.gameBreakdown.map((row) => COLUMNS.map((name) => field(row[name] ?? null)).join(','));
  return [COLUMNS.join(','), ...lines, ''].join('\r\n');
}

const hash = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description });

export const SettlementGame = Type.Object({
  gameConfigId: Type.Integer(),
  configName: Type.String(),
  displayName: Type.String(),
  gameType: extensible(GAME_TYPES, 'Type of the game'),
  spins: Type.Integer({
    description:
      'Number of spins and blackjack rounds. A round counts when it is dealt, and is subtracted again if it is voided',
  }),
  wageredUsd: usd('Sum of the wagers'),
  paidOutUsd: usd('Sum of the payouts'),
  ggrUsd: usd('Gross gaming revenue: wagered − paid out'),
  actualRtp: nullable(
    Type.Number({
      description: 'Paid out / wagered, rounded half up to 6 decimals; null if nothing was wagered',
    }),
  ),
  certifiedRtp: nullable(
    Type.Number({
      description:
        'Certified return to player: the value of the PAR sheet; for a raffle, the prizes of the whole pool divided by the price of all tickets, rounded like actualRtp',
    }),
  ),
  communityBonusUsd: Type.Optional(
    usd(
      "Sum of the shares of the game's communal progressive, not included in `ggrUsd`. Absent in reports of versions up to 1.3.0",
    ),
  ),
});

export const ReportStatus = choice(
  ['PENDING', 'GENERATED', 'ACKNOWLEDGED', 'DISPUTED'],
  'A PENDING report was made before all entries of the day were in the ledger, and covers the entries up to ledgerTo. The complete report follows as another revision, even if the PENDING one was acknowledged or disputed',
);

export const SettlementReport = Type.Object(
  {
    reportDate: Type.String({ description: 'UTC day, YYYY-MM-DD' }),
    reportStatus: ReportStatus,
    revision: Type.Integer({
      minimum: 1,
      description: 'Number of the revision, from 1. The content of a revision never changes',
    }),
    totalSpins: Type.Integer(),
    totalWageredUsd: usd('Sum of the wagers'),
    totalPaidOutUsd: usd('Sum of the payouts'),
    netPositionUsd: usd('Wagered − paid out'),
    ggrUsd: usd('Gross gaming revenue: wagered − paid out'),
    communityBonusUsd: usd(
      'Sum of the shares of communal progressives that players got on that day, not included in ggrUsd',
    ),
    adjustmentsUsd: usd(
      'Sum of the adjustments of player balances by the operator, not included in any other total',
    ),
    openRounds: Type.Optional(
      Type.Integer({
        description:
          'Number of blackjack rounds that were open at ledgerTo; absent in reports of versions up to 1.3.0',
      }),
    ),
    logCheckpoint: Type.Optional(
      nullable(
        Type.String({
          description:
            'Newest published checkpoint of the public log when the report was made, with only the signatures of the log; null if none had been published',
        }),
      ),
    ),
    openWageredUsd: Type.Optional(
      usd(
        'Sum of the wagers of the open rounds (openRounds). Each wager is also in totalWageredUsd of the day on which it was made',
      ),
    ),
    gameBreakdown: Type.Array(SettlementGame, {
      description:
        'All games that the partner had on that day, in the order of gameConfigId. Games without spins are included; raffles that were closed before that day are not',
    }),
    ledgerFrom: Type.String({
      description:
        'Lowest ledger entry id that the day can have (decimal). An id is milliseconds since the Unix epoch × 2^22, plus cell and sequence number',
    }),
    ledgerTo: Type.String({
      description:
        "The report covers the partner's ledger entries with ids from ledgerFrom up to, but not including, this id. It is the first id of the next day; in a PENDING report it follows the last committed entry",
    }),
    previousHash: nullable(
      hash(
        "integrityHash of the partner's previous report: the newest revision for the newest earlier day that had a report when this report was made; null for the first report",
      ),
    ),
    integrityHash: hash(
      'SHA-256 of the canonical JSON (RFC 8785) of this object without the members integrityHash, reportStatus, acknowledgedAt, disputedAt and disputeReason',
    ),
    generatedAt: timestamp(),
    acknowledgedAt: Type.Optional(timestamp()),
    disputedAt: Type.Optional(timestamp()),
    disputeReason: Type.Optional(Type.String()),
  },
  { description: 'Settlement report of a day. All amounts are exact, with at most 6 decimals' },
);

const { acknowledgedAt, disputedAt, disputeReason, logCheckpoint, ...previewed } =
  SettlementReport.properties;

export const SettlementPreview = Type.Object(
  {
    ...previewed,
    reportStatus: Type.Literal('PREVIEW', {
      description: 'Marks the preview. A settlement report never has this status',
    }),
    revision: Type.Literal(0, { description: 'Always 0. The revisions of a settlement report begin at 1' }),
  },
  {
    description:
      'Preview of the settlement report of a day that is not over, for tests of a sandbox account. It is neither stored nor part of the chain of reports, and covers the entries up to ledgerTo',
  },
);
