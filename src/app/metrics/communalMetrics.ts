/** Metrics of the communal progressives in the cells that a worker owns, read at each scrape. */

import { type CommittedPot, committedPots } from '../../engine/communal/communal.store.js';
import type { Ownership } from '../../engine/ledger/ownership.js';
import type { Sql } from '../../postgres/connection.js';
import type { Metrics } from './metrics.js';
import { singleFlight } from './scraped.js';

export interface CommunalMetricsParts {
  readonly metrics: Metrics;
  readonly sql: Sql;
  readonly ownership: Pick<Ownership, 'cells'>;
  /**
   * Maximum number of games with their own time series. The metrics include the most recently played games.
   */
  readonly gamesMax: number;
}

export function registerCommunalMetrics({ metrics, sql, ownership, gamesMax }: CommunalMetricsParts): void {
  const pots = singleFlight(() => committedPots(sql, ownership.cells, gamesMax));
  metrics.gaugeBy(
    'spindle_communal_progress_spins',
    'Spins counted by the communal progressive of a game',
    'game',
    async () => (await pots()).map(({ gameId, progress }) => [gameId, Number(progress)]),
  );
  metrics.gaugeBy(
    'spindle_communal_budget_usd',
    'Remaining promotional budget of a communal progressive, in USD',
    'game',
    async () => (await pots()).map(({ gameId, budgetMicros }) => [gameId, Number(budgetMicros) / 1e6]),
  );
  metrics.counterBy(
    'spindle_communal_paid_usd_total',
    'Shares of a communal progressive in the ledger, in USD',
    'game',
    async () => (await pots()).map(({ gameId, paidMicros }) => [gameId, Number(paidMicros) / 1e6]),
  );
  metrics.gaugeBy(
    'spindle_communal_smallest_tier_usd',
    'Payout of the smallest tier of an enabled communal progressive, in USD; with a smaller budget it is exhausted',
    'game',
    async () => (await pots()).map((pot) => [pot.gameId, ofTiersUsd(pot, Math.min)]),
  );
  metrics.gaugeBy(
    'spindle_communal_largest_tier_usd',
    'Payout of the largest tier of an enabled communal progressive, in USD',
    'game',
    async () => (await pots()).map((pot) => [pot.gameId, ofTiersUsd(pot, Math.max)]),
  );
}

/**
 * Returns the minimum or maximum of the amounts of a pot's tiers in USD, or undefined if the pot is not
 * enabled.
 */
const ofTiersUsd = (
  { rules }: Pick<CommittedPot, 'rules'>,
  choose: (...amounts: number[]) => number,
): number | undefined =>
  rules.enabled ? choose(...rules.tiers.map(({ amountMicros }) => amountMicros)) / 1e6 : undefined;
