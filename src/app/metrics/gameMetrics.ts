/** Metrics of the games in the cells that a worker owns, read at each scrape. */

import type { Game } from '../../domain/game.js';
import { basicStrategyReturn } from '../../domain/games/basicStrategy.js';
import type { BlackjackTable } from '../../domain/games/tableTerms.js';
import type { OutcomeStatistics } from '../../domain/presentation.js';
import { rtpSurprise } from '../../domain/rtp.js';
import type { BlockKeeper, QueueDepth } from '../../engine/blocks/keeper.js';
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { GameTotals } from '../../engine/catalog/games.store.js';
import type { CommittedTotals } from '../../engine/ledger/committedTotals.js';
import type { Ownership } from '../../engine/ledger/ownership.js';
import type { Metrics } from './metrics.js';
import { singleFlight } from './scraped.js';

export interface GameMetricsParts {
  readonly metrics: Metrics;
  /** Maximum number of games with their own time series. */
  readonly gamesMax: number;
  readonly catalog: Pick<Catalog, 'game' | 'statistics'>;
  readonly keeper: Pick<BlockKeeper, 'depths'>;
  readonly ownership: Pick<Ownership, 'cells'>;
  readonly totals: CommittedTotals;
}

/**
 * RTP surprise (how improbable the return of the game is), in nats, above which a game gets its own time
 * series before busier games. It is far below the threshold of an alert.
 */
const SURPRISE_SHOWN = 10;

interface ShownGame {
  readonly depth: QueueDepth;
  readonly spins: number;
  readonly wageredUsd: number;
  readonly paidUsd: number;
  /** Outcome statistics of a slot game; undefined for other kinds of game. */
  readonly statistics: OutcomeStatistics | undefined;
  /** Rules of a blackjack table; undefined for other kinds of game. */
  readonly table: BlackjackTable | undefined;
  /** RTP surprise of a slot game in nats; undefined for other kinds of game and before the first spin. */
  readonly surprise: number | undefined;
  /** Rank of the game. The metrics include the games with the highest ranks. */
  readonly rank: number;
}

function surpriseOf(
  soFar: { readonly spins: number; readonly rtp: number },
  statistics: OutcomeStatistics | undefined,
  game: Game | undefined,
): number | undefined {
  if (statistics === undefined || game === undefined || soFar.spins === 0) return undefined;
  return rtpSurprise(soFar, statistics, game.maxPayoutMicros / game.wagerMicros);
}

/**
 * A worker may have thousands of games, and only a limited number get their own time series: first the games
 * that need attention, then those with the most spins.
 */
export function registerGameMetrics(parts: GameMetricsParts): void {
  const { metrics, gamesMax, catalog, keeper, ownership, totals } = parts;
  const gameOf = (depth: QueueDepth, booked: GameTotals | undefined): ShownGame => {
    const { gameId, blocks, minReadyBlocks = 0 } = depth;
    const spins = booked === undefined ? 0 : Number(booked.spins);
    const wageredUsd = booked === undefined ? 0 : Number(booked.wageredMicros) / 1e6;
    const paidUsd = booked === undefined ? 0 : Number(booked.paidMicros) / 1e6;
    const statistics = catalog.statistics(gameId);
    const game = catalog.game(gameId);
    const surprise = surpriseOf({ spins, rtp: paidUsd / wageredUsd }, statistics, game);
    const needsALook = blocks < minReadyBlocks || (surprise ?? 0) > SURPRISE_SHOWN;
    const rank = needsALook ? Number.MAX_SAFE_INTEGER : spins;
    return { depth, spins, wageredUsd, paidUsd, statistics, surprise, rank, table: game?.table };
  };
  const shown = singleFlight(async () => {
    // The depths of the queues come from Redis, so they are available even if Postgres does not answer.
    const booked = await totals.of(ownership.cells).catch(() => undefined);
    const games = keeper
      .depths()
      .map((depth) => gameOf(depth, booked?.get(depth.cell)?.games.get(depth.gameId)));
    if (games.length <= gamesMax) return games;
    return games.sort((a, b) => b.rank - a.rank || a.depth.gameId - b.depth.gameId).slice(0, gamesMax);
  });
  const byGame = (
    name: string,
    help: string,
    value: (game: ShownGame) => number | undefined,
    type: 'gauge' | 'counter' = 'gauge',
  ): void => {
    const read = async (): Promise<[number, number | undefined][]> =>
      (await shown()).map((game) => [game.depth.gameId, value(game)]);
    if (type === 'gauge') metrics.gaugeBy(name, help, 'game', read);
    else metrics.counterBy(name, help, 'game', read);
  };
  metrics.gauge(
    'spindle_games',
    'Number of games in the cells that this process owns, including games without time series of their own',
    () => keeper.depths().length,
  );
  byGame(
    'spindle_queue_outcomes',
    'Number of outcomes that are ready to be dealt, by game',
    (game) => game.depth.outcomes,
  );
  byGame(
    'spindle_queue_blocks',
    'Number of blocks with remaining outcomes, by game',
    (game) => game.depth.blocks,
  );
  byGame(
    'spindle_queue_blocks_minimum',
    'Number of ready blocks that a game should have in reserve',
    (game) => game.depth.minReadyBlocks,
  );
  byGame(
    'spindle_raffle_tickets_remaining',
    'Number of tickets of a raffle that are not sold and committed yet',
    (game) => (game.depth.minReadyBlocks === undefined ? game.depth.outcomes : undefined),
  );
  byGame('spindle_game_spins_total', 'Spins in the ledger, by game', (game) => game.spins, 'counter');
  byGame(
    'spindle_game_wagered_usd_total',
    'Wagers in the ledger, by game',
    (game) => game.wageredUsd,
    'counter',
  );
  byGame('spindle_game_paid_usd_total', 'Payouts in the ledger, by game', (game) => game.paidUsd, 'counter');
  byGame(
    'spindle_game_certified_rtp',
    'Expected return to player by the PAR sheet, as a fraction',
    (game) => game.statistics?.rtp,
  );
  byGame(
    'spindle_game_basic_strategy_return',
    'Expected return of basic strategy by the rules of a blackjack table, as a fraction of all stakes, if known',
    ({ table }) => (table === undefined ? undefined : basicStrategyReturn(table.rulesHash)),
  );
  byGame(
    'spindle_game_variance_per_spin',
    'Variance of the payout of one spin by the PAR sheet, in squared wagers',
    (game) => game.statistics?.variancePerSpin,
  );
  byGame(
    'spindle_game_rtp_surprise_nats',
    'Surprise of the actual return, in nats: its probability is at most 2·exp(-this) for any sheet and number of spins (src/domain/rtp.ts)',
    (game) => game.surprise,
  );
}
