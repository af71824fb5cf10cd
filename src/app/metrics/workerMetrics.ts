/** Registers all metrics of a worker. */

import type { Piscina } from 'piscina';
import type { SettlementJob } from '../../books/settlement/job.js';
import { readStep } from '../../domain/games/round.js';
import { openRoundCounts, type RoundEntry } from '../../engine/blackjack/rounds.store.js';
import type { Catalog } from '../../engine/catalog/catalog.js';
import type { UnservedCells } from '../../engine/ledger/unservedCells.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { SegmentRelease } from '../../engine/requestIds/segmentRelease.js';
import type { Sql } from '../../postgres/connection.js';
import type { Deliverer } from '../../webhooks/deliverer.js';
import { type CellMetricsParts, registerCellMetrics } from './cellMetrics.js';
import { registerCommunalMetrics } from './communalMetrics.js';
import { type GameMetricsParts, registerGameMetrics } from './gameMetrics.js';
import type { Metrics } from './metrics.js';
import { registerStoreMetrics } from './storeMetrics.js';

export interface WorkerMetricsParts
  extends Omit<CellMetricsParts, 'outboxMax' | 'unservedCells' | 'catalog'>,
    Omit<GameMetricsParts, 'gamesMax'>,
    Omit<RoundMetricsParts, 'gamesMax'>,
    Omit<WorkMetricsParts, 'pool'> {
  readonly config: {
    readonly outboxMax: CellMetricsParts['outboxMax'];
    readonly constants: { readonly metricsGamesMax: number };
  };
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  readonly catalog: Catalog;
  readonly unservedCells: UnservedCells;
  readonly threads: Piscina;
}

export function registerWorkerMetrics(parts: WorkerMetricsParts): void {
  const { config, metrics, sql, nodes, threads } = parts;
  registerCellMetrics({
    ...parts,
    outboxMax: config.outboxMax,
    unservedCells: () => parts.unservedCells.cells,
  });
  registerGameMetrics({ ...parts, gamesMax: config.constants.metricsGamesMax });
  registerRoundMetrics({ ...parts, gamesMax: config.constants.metricsGamesMax });
  registerCommunalMetrics({ ...parts, gamesMax: config.constants.metricsGamesMax });
  registerStoreMetrics(metrics, sql, nodes);
  registerWorkMetrics({ ...parts, pool: threads });
}

interface RoundMetricsParts {
  readonly metrics: Metrics;
  readonly events: EventEmitter;
  readonly sql: Sql;
  /** Maximum number of games with their own time series. */
  readonly gamesMax: number;
  readonly ownership: { readonly cells: readonly number[] };
}

type End = 'settled' | 'timedOut' | 'voided';

function endOf({ kind, code }: RoundEntry): End | undefined {
  if (kind === 'roundDeal') return code === 0 ? undefined : 'settled';
  const { isEnd, move } = readStep(code);
  if (!isEnd) return undefined;
  if (move === 'void') return 'voided';
  return move === 'timeout' ? 'timedOut' : 'settled';
}

function registerRoundMetrics({ metrics, events, sql, gamesMax, ownership }: RoundMetricsParts): void {
  const ended: Record<End, Map<number, number>> = {
    settled: new Map(),
    timedOut: new Map(),
    voided: new Map(),
  };
  events.on('LedgerCommitted', ({ rounds }) => {
    for (const entry of rounds) {
      const end = endOf(entry);
      if (end === undefined) continue;
      const counts = ended[end];
      const before = counts.get(entry.gameId);
      if (before !== undefined || counts.size < gamesMax) counts.set(entry.gameId, (before ?? 0) + 1);
    }
  });
  metrics.gaugeBy('spindle_rounds_open', 'Number of open blackjack rounds, by game', 'game', async () =>
    (await openRoundCounts(sql, ownership.cells, gamesMax)).map(({ gameId, open }) => [gameId, open]),
  );
  const byGame = (name: string, help: string, end: End): void =>
    metrics.counterBy(name, help, 'game', async () => [...ended[end]]);
  byGame(
    'spindle_rounds_settled_total',
    'Blackjack rounds that players ended, committed since the start, by game',
    'settled',
  );
  byGame(
    'spindle_rounds_timed_out_total',
    'Blackjack rounds that were played out after a timeout, committed since the start, by game',
    'timedOut',
  );
  byGame(
    'spindle_rounds_voided_total',
    'Blackjack rounds that were voided, committed since the start, by game',
    'voided',
  );
}

interface WorkMetricsParts {
  readonly metrics: Metrics;
  readonly pool: Piscina;
  readonly settlement: Pick<SettlementJob, 'overdueSeconds' | 'failing'>;
  readonly deliverer: Pick<Deliverer, 'underWay'>;
  readonly release: Pick<SegmentRelease, 'ids'>;
}

function registerWorkMetrics(parts: WorkMetricsParts): void {
  const { metrics, pool, settlement, deliverer, release } = parts;
  metrics.gauge('spindle_block_pool_queue', 'Number of blocks that wait for a thread', () => pool.queueSize);
  metrics.gauge(
    'spindle_block_pool_threads',
    'Maximum number of threads that make blocks',
    () => pool.options.maxThreads,
  );
  metrics.gauge(
    'spindle_settlement_overdue_seconds',
    'Time since the end of the oldest due day without a complete settlement report, in seconds; 0 if no report is due',
    () => settlement.overdueSeconds,
  );
  metrics.gauge(
    'spindle_settlement_failing',
    'Number of settlement reports that failed in the latest run; they are retried every minute',
    () => settlement.failing,
  );
  metrics.gauge(
    'spindle_webhook_under_way',
    'Number of webhook delivery attempts in progress in this process',
    () => deliverer.underWay,
  );
  metrics.counters('spindle_request_ids_written_total', 'Request ids copied to runs in Postgres', () => [
    { labels: {}, value: release.ids },
  ]);
}
