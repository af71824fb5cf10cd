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
  metrics.gauge(
    'spindle_log_halted',
    '1: nothing is appended to the public log, because somebody has a tree with its signature that it does not contain',
    () => Number(publicLog.isHalted),
  );
  metrics.gauge(
    'spindle_log_copy_behind_seconds',
    'Since when something is published that Redis (the note) or LOG_COPY_DIR (the files) does not have; 0: they have all. Above 60: SpindleLogCopyStale',
    () => copies.behindSeconds,
  );
  metrics.gauges(
    'spindle_log_witness_age_seconds',
    'Time since the newest cosignature of a witness of LOG_POLICY, or since one that has never cosigned is known',
    () => witnesses().map(({ witness, seconds }) => ({ labels: { witness }, value: seconds })),
  );
  metrics.gauges(
    'spindle_log_witness_refuses',
    '1: the newest answer of a witness was a refusal; it is asked again after 60 s',
    () => witnesses().map(({ witness, isRefusing }) => ({ labels: { witness }, value: Number(isRefusing) })),
  );
}
