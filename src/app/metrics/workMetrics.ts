/**
 * Metrics of a worker's background work, read at each scrape: threads, settlement, deliveries, release of
 * request ids.
 */
import type { Piscina } from 'piscina';
import type { SettlementJob } from '../../books/settlement/job.js';
import type { SegmentRelease } from '../../engine/requestIds/segmentRelease.js';
import type { Deliverer } from '../../webhooks/deliverer.js';
import type { Metrics } from './metrics.js';

export interface WorkMetricsParts {
  readonly metrics: Metrics;
  readonly pool: Piscina;
  readonly settlement: Pick<SettlementJob, 'overdueSeconds' | 'failing'>;
  readonly deliverer: Pick<Deliverer, 'underWay'>;
  readonly release: Pick<SegmentRelease, 'ids'>;
}

export function registerWorkMetrics(parts: WorkMetricsParts): void {
  const { metrics, pool, settlement, deliverer, release } = parts;
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
  metrics.counters('spindle_request_ids_written_total', 'Request ids that were copied into runs', () => [
    { labels: {}, value: release.ids },
  ]);
}
