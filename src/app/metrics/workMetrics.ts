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
