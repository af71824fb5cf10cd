/** Views of settlement reports, and of the reports over intervals. */
import type { Column, Schemas } from './view.js';

export const SETTLEMENTS: readonly Column<Schemas['ListedSettlement']>[] = [
  { heading: 'Day (UTC)', value: (row) => row.reportDate },
  { heading: 'Partner', value: (row) => row.slug },
  { heading: 'Status', value: (row) => row.reportStatus, kind: 'status' },
  { heading: 'Revision', value: (row) => row.revision, kind: 'number' },
  { heading: 'Spins', value: (row) => row.totalSpins, kind: 'count' },
  { heading: 'Gross revenue', value: (row) => row.ggrUsd, kind: 'usd' },
  { heading: 'Dispute', value: (row) => row.disputeReason },
];

/** The figures that a partner can dispute. */
export const FIGURES: readonly Column<Schemas['NextSettlementReport']>[] = [
  { heading: 'Spins', value: (report) => report.totalSpins, kind: 'count' },
  { heading: 'Wagered', value: (report) => report.totalWageredUsd, kind: 'usd' },
  { heading: 'Paid', value: (report) => report.totalPaidOutUsd, kind: 'usd' },
  { heading: 'Gross revenue', value: (report) => report.ggrUsd, kind: 'usd' },
  { heading: 'Community bonuses', value: (report) => report.communityBonusUsd, kind: 'usd' },
  { heading: 'Adjustments', value: (report) => report.adjustmentsUsd, kind: 'usd' },
  { heading: 'Open rounds', value: (report) => report.openRounds, kind: 'count' },
  { heading: 'Staked in open rounds', value: (report) => report.openWageredUsd, kind: 'usd' },
];

type Report = Schemas['NextSettlementReport'];
type Figure = Pick<Column<never>, 'heading' | 'kind'>;

/** Returns the figures of a report by heading: of the whole day, then of each game. */
function figuresOf(report: Report): Map<string, readonly [Figure, unknown]> {
  const ofDay = FIGURES.map((figure) => [figure, figure.value(report)] as const);
  const ofGames = report.gameBreakdown.flatMap((game) =>
    [...SETTLED_GAMES.slice(1, 4), GAME_BONUSES].map(
      ({ heading, kind, value }) =>
        [{ heading: `${game.configName}, ${heading}`, ...(kind && { kind }) }, value(game)] as const,
    ),
  );
  return new Map([...ofDay, ...ofGames].map((figure) => [figure[0].heading, figure]));
}

/** Returns the figures that differ between two revisions. A revision may lack a figure. */
export function differences(
  before: Report,
  after: Report,
): (readonly [figure: Figure, before: unknown, after: unknown])[] {
  const [was, is] = [figuresOf(before), figuresOf(after)];
  return [...new Map([...was, ...is]).values()]
    .map(([figure]) => [figure, was.get(figure.heading)?.[1], is.get(figure.heading)?.[1]] as const)
    .filter(([, old, now]) => old !== now);
}

const GAME_BONUSES: Column<Schemas['SettlementGame']> = {
  heading: 'Community bonuses',
  value: (row) => row.communityBonusUsd,
  kind: 'usd',
};
export const SETTLED_GAMES: readonly Column<Schemas['SettlementGame']>[] = [
  { heading: 'Game', value: (row) => row.configName },
  { heading: 'Spins', value: (row) => row.spins, kind: 'count' },
  { heading: 'Wagered', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'Paid', value: (row) => row.paidOutUsd, kind: 'usd' },
  { heading: 'Gross revenue', value: (row) => row.ggrUsd, kind: 'usd' },
  { heading: 'Return', value: (row) => row.actualRtp, kind: 'percent' },
  { heading: 'Certified', value: (row) => row.certifiedRtp, kind: 'percent' },
];

export const TOTALS: readonly Column<Schemas['GamesReportTotals']>[] = [
  { heading: 'Spins', value: (row) => row.spins, kind: 'count' },
  { heading: 'Wagered', value: (row) => row.wageredUsd, kind: 'usd' },
  { heading: 'Paid', value: (row) => row.paidOutUsd, kind: 'usd' },
  { heading: 'Gross revenue', value: (row) => row.ggrUsd, kind: 'usd' },
  { heading: 'Refunded', value: (row) => row.refundedUsd, kind: 'usd' },
  { heading: 'Community bonuses', value: (row) => row.communityBonusUsd, kind: 'usd' },
  { heading: 'Return', value: (row) => row.actualRtp, kind: 'percent' },
  { heading: 'Voided outcomes', value: (row) => row.voidedOutcomes, kind: 'count' },
  { heading: 'Open rounds', value: (row) => row.openRounds, kind: 'count' },
];
export const REPORTED_GAMES: readonly Column<Schemas['GamesReportRow']>[] = [
  { heading: 'Game', value: (row) => row.configName },
  { heading: 'Partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'Kind', value: (row) => row.gameType },
  ...TOTALS,
  { heading: 'Certified', value: (row) => row.certifiedRtp, kind: 'percent' },
];

export const LIABILITY: readonly Column<Schemas['LiabilityRow']>[] = [
  { heading: 'Partner', value: (row) => row.slug },
  { heading: 'Players', value: (row) => row.players, kind: 'count' },
  { heading: 'Balances', value: (row) => row.balancesUsd, kind: 'usd' },
  { heading: 'Above zero', value: (row) => row.positiveUsd, kind: 'usd' },
  { heading: 'Below zero', value: (row) => row.negativeUsd, kind: 'usd' },
  { heading: 'Open rounds', value: (row) => row.openRounds, kind: 'count' },
  { heading: 'Budgets', value: (row) => row.communalBudgetUsd, kind: 'usd' },
];

export const SIGNIFICANT_EVENTS: readonly Column<Schemas['SignificantEvent']>[] = [
  { heading: 'Time', value: (row) => row.at, kind: 'time' },
  { heading: 'Type', value: (row) => row.type },
  { heading: 'Severity', value: (row) => row.severity, kind: 'status' },
  { heading: 'Who', value: (row) => row.actor },
  { heading: 'What', value: (row) => row.subject },
  { heading: 'Partner', value: (row) => row.partnerId, kind: 'number' },
  { heading: 'Game', value: (row) => row.gameId, kind: 'number' },
  { heading: 'Player', value: (row) => row.playerId },
  { heading: 'Spin', value: (row) => row.spinId },
  { heading: 'Payout', value: (row) => row.payoutUsd, kind: 'usd' },
];
