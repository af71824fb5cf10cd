/** What a worker says of the cells that it writes, of their games, and of the stores, whenever it is scraped. */
import type { Piscina } from 'piscina';
import type { BlockKeeper, QueueDepth } from '../blocks/keeper.js';
import type { Catalog } from '../catalog/catalog.js';
import type { Config } from '../config.js';
import type { OutcomeStatistics } from '../domain/presentation.js';
import { rtpSurprise } from '../domain/rtp.js';
import type { BookedTotals } from '../ledger/bookedTotals.js';
import type { Ownership } from '../ledger/ownership.js';
import { type Metrics, sharedLook } from '../metrics.js';
import type { GameTotals } from '../postgres/bookedTotals.js';
import type { Sql } from '../postgres/client.js';
import { pendingDeliveries } from '../postgres/deliveries.js';
import type { RedisNodes } from '../redis/nodes.js';
import type { RedisUse } from '../redis/use.js';
import type { SettlementJob } from '../settlement/job.js';
import type { Deliverer } from '../webhooks/deliverer.js';

export interface WorkerMetricsParts {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  readonly catalog: Catalog;
  readonly keeper: BlockKeeper;
  readonly ownership: Ownership;
  readonly totals: BookedTotals;
  readonly pool: Piscina;
  readonly settlement: SettlementJob;
  readonly deliverer: Deliverer;
  /** Cells that this worker was lately refused, or whose ledger it halted. */
  readonly refusedCells: () => readonly number[];
}

export function registerWorkerMetrics(parts: WorkerMetricsParts): void {
  cellMetrics(parts);
  gameMetrics(parts);
  storeMetrics(parts);
  const { metrics, pool, settlement, deliverer } = parts;
  metrics.gauge('spindle_block_pool_queue', 'Blocks that wait for a thread', () => pool.queueSize);
  metrics.gauge(
    'spindle_block_pool_threads',
    'Threads that make blocks, at the most',
    () => pool.options.maxThreads,
  );
  metrics.gauge(
    'spindle_settlement_overdue_seconds',
    'Time since the end of the oldest day that is due and has no complete report; 0 where there is none',
    () => settlement.overdueSeconds,
  );
  metrics.gauge(
    'spindle_settlement_failing',
    'Settlement reports that could not be made at the last turn; they are tried each minute',
    () => settlement.failing,
  );
  metrics.gauge(
    'spindle_webhook_under_way',
    'Attempts of webhook deliveries under way in this process',
    () => deliverer.underWay,
  );
}

function cellMetrics({ config, metrics, nodes, ownership, totals, refusedCells }: WorkerMetricsParts): void {
  const ofEachCell = async <T>(read: (cell: number) => Promise<T>): Promise<[number, T | undefined][]> =>
    Promise.all(
      ownership.cells.map(async (cell) => [cell, await read(cell).catch(() => undefined)] as const),
    ) as Promise<[number, T | undefined][]>;

  metrics.gauge('spindle_cells', 'Cells that there are', () => config.CELLS);
  metrics.gauge('spindle_cells_owned', 'Cells that this process writes', () => ownership.cells.length);
  metrics.gaugeBy(
    'spindle_cell_halted',
    '1 where a cell is not served until an engineer has looked',
    'cell',
    async () => {
      const owned = new Set(ownership.cells);
      const refused = refusedCells().filter((cell) => !owned.has(cell));
      return [
        ...[...owned].map((cell): [number, number] => [cell, 0]),
        ...refused.map((cell): [number, number] => [cell, 1]),
      ];
    },
  );
  metrics.gaugeBy(
    'spindle_outbox_lag_seconds',
    'Age of the oldest entry not in the ledger, by cell',
    'cell',
    () => ofEachCell((cell) => nodes.cell(cell).outboxAgeSeconds()),
  );
  const outboxes = sharedLook(() => ofEachCell((cell) => nodes.cell(cell).outboxTotals()));
  metrics.gaugeBy('spindle_outbox_entries', 'Entries not in the ledger, by cell', 'cell', async () =>
    (await outboxes()).map(([cell, outbox]) => [cell, outbox?.entries]),
  );
  metrics.gaugeBy(
    'spindle_outbox_bytes',
    'Bytes of the entries not in the ledger, by cell',
    'cell',
    async () => (await outboxes()).map(([cell, outbox]) => [cell, outbox?.bytes]),
  );
  metrics.gauge(
    'spindle_outbox_max_entries',
    'Entries of a cell at which nothing more is dealt',
    () => config.OUTBOX_MAX_ENTRIES,
  );
  metrics.gauge(
    'spindle_outbox_max_bytes',
    'Bytes of a cell at which nothing more is dealt',
    () => config.OUTBOX_MAX_MB * 1e6,
  );
  const sums = sharedLook(async () => {
    const { cells } = ownership;
    const known = await totals.of(cells);
    return cells.flatMap((cell) => {
      const sum = known.get(cell)?.sum;
      return sum === undefined ? [] : [{ cell, ...sum }];
    });
  });
  metrics.counterBy('spindle_booked_spins_total', 'Spins in the ledger, by cell', 'cell', async () =>
    (await sums()).map(({ cell, spins }) => [cell, Number(spins)]),
  );
  metrics.counterBy('spindle_booked_wagered_usd_total', 'Wagers in the ledger, by cell', 'cell', async () =>
    (await sums()).map(({ cell, wageredMicros }) => [cell, Number(wageredMicros) / 1e6]),
  );
  metrics.counterBy('spindle_booked_paid_usd_total', 'Payouts in the ledger, by cell', 'cell', async () =>
    (await sums()).map(({ cell, paidMicros }) => [cell, Number(paidMicros) / 1e6]),
  );
}

/** A game as it is shown. */
interface ShownGame {
  readonly depth: QueueDepth;
  readonly spins: number;
  readonly wageredUsd: number;
  readonly paidUsd: number;
  /** Undefined of a raffle. */
  readonly statistics: OutcomeStatistics | undefined;
  /** Undefined of a raffle, and before the first spin. */
  readonly surprise: number | undefined;
  /** The highest are shown. */
  readonly rank: number;
}

/** Of thousands of games only so many have series of their own: those that need to be looked at, then those spun most. */
function gameMetrics({ config, metrics, catalog, keeper, ownership, totals }: WorkerMetricsParts): void {
  const gameOf = (depth: QueueDepth, booked: GameTotals | undefined): ShownGame => {
    const { gameId, blocks, minReadyBlocks = 0 } = depth;
    const spins = booked === undefined ? 0 : Number(booked.spins);
    const wageredUsd = booked === undefined ? 0 : Number(booked.wageredMicros) / 1e6;
    const paidUsd = booked === undefined ? 0 : Number(booked.paidMicros) / 1e6;
    const statistics = catalog.statistics(gameId);
    const game = catalog.game(gameId);
    const surprise =
      statistics === undefined || game === undefined || spins === 0
        ? undefined
        : rtpSurprise(
            { spins, rtp: paidUsd / wageredUsd },
            statistics,
            game.maxPayoutMicros / game.wagerMicros,
          );
    const needsALook = blocks < minReadyBlocks || (surprise ?? 0) > SURPRISE_SHOWN;
    const rank = needsALook ? Number.MAX_SAFE_INTEGER : spins;
    return { depth, spins, wageredUsd, paidUsd, statistics, surprise, rank };
  };
  const shown = sharedLook(async () => {
    // Without Postgres there is still the depth of the queues.
    const booked = await totals.of(ownership.cells).catch(() => undefined);
    const games = keeper
      .depths()
      .map((depth) => gameOf(depth, booked?.get(depth.cell)?.games.get(depth.gameId)));
    if (games.length <= config.METRICS_GAMES_MAX) return games;
    return games
      .sort((a, b) => b.rank - a.rank || a.depth.gameId - b.depth.gameId)
      .slice(0, config.METRICS_GAMES_MAX);
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

/** Where a game comes before busier ones in what is shown: long before an alert. */
const SURPRISE_SHOWN = 10;

function storeMetrics({ metrics, sql, nodes }: WorkerMetricsParts): void {
  const use = sharedLook(() => nodes.use());
  const ofRedis = (
    type: 'gauge' | 'counter',
    name: string,
    help: string,
    value: (use: RedisUse) => number,
  ): void => metrics.asked(type, name, help, async () => value(await use()));
  ofRedis('gauge', 'spindle_redis_memory_bytes', 'Memory that Redis uses', (u) => u.memoryBytes);
  ofRedis('gauge', 'spindle_redis_memory_max_bytes', 'maxmemory of Redis; 0: none', (u) => u.maxMemoryBytes);
  ofRedis('gauge', 'spindle_redis_clients', 'Connections to Redis', (u) => u.clients);
  ofRedis(
    'counter',
    'spindle_redis_busy_seconds_total',
    'CPU time of the thread of Redis that runs commands',
    (u) => u.busySeconds,
  );
  ofRedis('counter', 'spindle_redis_script_seconds_total', 'Time in scripts', (u) => u.scriptSeconds);
  ofRedis('counter', 'spindle_redis_script_calls_total', 'Scripts called', (u) => u.scriptCalls);
  ofRedis('gauge', 'spindle_redis_aof_bytes', 'Size of the append-only file', (u) => u.logBytes);
  ofRedis(
    'counter',
    'spindle_redis_aof_delayed_fsyncs_total',
    'Writes that waited because a sync of the append-only file was not done',
    (u) => u.delayedSyncs,
  );
  ofRedis('gauge', 'spindle_redis_aof_failing', '1 while the append-only file cannot be written', (u) =>
    u.isLogFailing ? 1 : 0,
  );
  const deliveries = sharedLook(() => pendingDeliveries(sql));
  metrics.gaugeBy('spindle_webhook_deliveries', 'Deliveries of webhooks that wait', 'state', async () => [
    ['pending', (await deliveries()).pending],
  ]);
  metrics.gaugeBy(
    'spindle_webhook_oldest_due_seconds',
    'For how long the oldest delivery that is due has waited',
    'state',
    async () => [['pending', (await deliveries()).oldestDueSeconds]],
  );
}
