/** Metrics of a worker about the public log. */
import { Histogram } from 'prom-client';
import type { EventEmitter } from '../../engine/processEvents.js';
import { LATENCY_BUCKETS, type Metrics } from './metrics.js';

export interface LogMetricsParts {
  readonly metrics: Metrics;
  readonly events: EventEmitter;
  readonly publicLog: { readonly size: number; readonly waitingSeconds: number; readonly isHalted: boolean };
  readonly copies: { readonly behindSeconds: number };
  readonly witnesses: () => readonly {
    readonly witness: string;
    readonly seconds: number;
    readonly isRefusing: boolean;
  }[];
}

export function registerLogMetrics({ metrics, events, publicLog, copies, witnesses }: LogMetricsParts): void {
  const appendSeconds = new Histogram({
    name: 'spindle_log_append_seconds',
    help: 'Time to append the waiting records to the public log in one transaction, in seconds',
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
    'Blocks whose outcomes this process removed 90 days after the blocks were exhausted',
    () => removed,
  );
  metrics.gauge(
    'spindle_log_size',
    'Number of records in the newest published tree of the public log known to this process',
    () => publicLog.size,
  );
  metrics.gauge(
    'spindle_log_waiting_seconds',
    'Time for which the oldest entry has waited for the public log, in seconds; 0 if none waits. Alert SpindleLogStalled above 30',
    () => publicLog.waitingSeconds,
  );
  metrics.gauge(
    'spindle_log_halted',
    '1 if the public log is halted because somebody has a tree with its signature that the log does not contain, otherwise 0',
    () => Number(publicLog.isHalted),
  );
  metrics.gauge(
    'spindle_log_copy_behind_seconds',
    'Time for which Redis or LOG_COPY_DIR has lacked published data, in seconds; 0 if both are complete. Alert SpindleLogCopyStale above 60',
    () => copies.behindSeconds,
  );
  metrics.gauges(
    'spindle_log_witness_age_seconds',
    'Time since the newest cosignature of a witness of LOG_POLICY, in seconds; without a cosignature, since the witness was configured',
    () => witnesses().map(({ witness, seconds }) => ({ labels: { witness }, value: seconds })),
  );
  metrics.gauges(
    'spindle_log_witness_refuses',
    '1 if the newest response of a witness was a refusal, otherwise 0; the next attempt follows after 60 s',
    () => witnesses().map(({ witness, isRefusing }) => ({ labels: { witness }, value: Number(isRefusing) })),
  );
}
