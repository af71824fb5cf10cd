/** What a worker says of the games of the cells that it writes, whenever it is scraped. */

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
  /** Games that have series of their own, at the most. */
  readonly gamesMax: number;
  readonly catalog: Pick<Catalog, 'game' | 'statistics'>;
  readonly keeper: Pick<BlockKeeper, 'depths'>;
  readonly ownership: Pick<Ownership, 'cells'>;
  readonly totals: CommittedTotals;
}

/** Where a game comes before busier ones in what is shown: long before an alert. */
const SURPRISE_SHOWN = 10;

/** A game as it is shown. */
interface ShownGame {
  readonly depth: QueueDepth;
  readonly spins: number;
  readonly wageredUsd: number;
  readonly paidUsd: number;
  /** Of slots only. */
  readonly statistics: OutcomeStatistics | undefined;
  /** Of blackjack only. */
  readonly table: BlackjackTable | undefined;
  /** Of slots only, and after the first spin. */
  readonly surprise: number | undefined;
  /** The highest are shown. */
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

/** Of thousands of games only so many have series of their own: those that need to be looked at, then those spun most. */
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
    // Without Postgres there is still the depth of the queues.
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
    'Games of the cells that this process writes, with series of their own or not',
    () => keeper.depths().length,
  );
  byGame('spindle_queue_outcomes', 'Outcomes ready to be dealt, by game', (game) => game.depth.outcomes);
  byGame('spindle_queue_blocks', 'Blocks with outcomes left, by game', (game) => game.depth.blocks);
  byGame(
    'spindle_queue_blocks_minimum',
    'Blocks that a game is to have in reserve',
    (game) => game.depth.minReadyBlocks,
  );
  byGame('spindle_raffle_tickets_remaining', 'Tickets of a raffle that are not sold and booked', (game) =>
    game.depth.minReadyBlocks === undefined ? game.depth.outcomes : undefined,
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
    'Return to player that the sheet lets expect, as a fraction',
    (game) => game.statistics?.rtp,
  );
  byGame(
    'spindle_game_basic_strategy_return',
    'What basic strategy gets back of all stakes by the rules of a blackjack table, as a fraction, where it is known',
    ({ table }) => (table === undefined ? undefined : basicStrategyReturn(table.rulesHash)),
  );
  byGame(
    'spindle_game_variance_per_spin',
    "Variance of one spin's payout, in squared wagers, of the sheet",
    (game) => game.statistics?.variancePerSpin,
  );
  byGame(
    'spindle_game_rtp_surprise_nats',
    'How unlikely the return so far is: at most 2·exp(-this), for any sheet and number of spins (src/domain/rtp.ts)',
    (game) => game.surprise,
  );
}
