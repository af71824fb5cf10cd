/** What a worker says of the public log. */
import { Histogram } from 'prom-client';
import type { EventEmitter } from '../events.js';
import { LATENCY_BUCKETS, type Metrics } from './metrics.js';

export interface LogMetricsParts {
  readonly metrics: Metrics;
  readonly events: EventEmitter;
  readonly publicLog: { readonly size: number; readonly waitingSeconds: number };
}

export function registerLogMetrics({ metrics, events, publicLog }: LogMetricsParts): void {
  const appendSeconds = new Histogram({
    name: 'spindle_log_append_seconds',
    help: 'Time to append what waits for the public log, in one transaction',
    buckets: LATENCY_BUCKETS,
    registers: [metrics.registry],
  });
  events.on('LogAppended', ({ seconds }) => appendSeconds.observe(seconds));
  let removed = 0;
  events.on('OutcomesRemoved', ({ blocks }) => {
    removed += blocks;
  });
  metrics.counter(
    'spindle_blocks_outcomes_removed_total',
    'Blocks whose outcomes this process removed, 90 days after they were exhausted',
    () => removed,
  );
  metrics.gauge(
    'spindle_log_size',
    'Records in the newest published tree of the public log, as this process knows it',
    () => publicLog.size,
  );
  metrics.gauge(
    'spindle_log_waiting_seconds',
    'Since when the oldest entry waits for the public log; 0: none does. Above 30: SpindleLogStalled',
    () => publicLog.waitingSeconds,
  );
}
