/**
 * Finds problems in this process's own metrics: those of the alerts that compare a gauge with a bound. So
 * /statusz names what these alerts say, also without Prometheus. An alert over a period needs its history.
 */

import type { Finding, ProblemName } from '../../engine/problems.js';
import type { MetricSamples, Sample } from './scraped.js';

export interface Bounded {
  /** Name of the problem: `outbox-lag` belongs to the alert SpindleOutboxLag. */
  readonly name: ProblemName;
  readonly metric: string;
  /** Gauge that divides the metric, with the same label or without one. */
  readonly per?: string;
  /** Label that distinguishes several problems of the name. */
  readonly by?: string;
  /** The problem exists above or below this value. */
  readonly above?: number;
  readonly below?: number;
  /** @param value value of the metric, or its ratio to `per` */
  readonly message: (value: number, subject: string) => string;
}

const percent = (ratio: number): string => `${Math.round(ratio * 100)} %`;
const time = (seconds: number): string =>
  seconds < 600
    ? `${Math.round(seconds)} s`
    : seconds < 36_000
      ? `${Math.round(seconds / 60)} min`
      : `${Math.round(seconds / 3600)} h`;

export const BOUNDED: readonly Bounded[] = [
  {
    name: 'outbox-lag',
    metric: 'spindle_outbox_lag_seconds',
    by: 'cell',
    above: 30,
    message: (lag, cell) => `Spins of cell ${cell} have waited for the ledger for more than ${time(lag)}`,
  },
  ...['entries', 'bytes'].map(
    (unit): Bounded => ({
      name: 'outbox-near-bound',
      metric: `spindle_outbox_${unit}`,
      per: `spindle_outbox_max_${unit}`,
      by: 'cell',
      above: 0.5,
      message: (fill, cell) => `The outbox of cell ${cell} is ${percent(fill)} full (${unit})`,
    }),
  ),
  {
    name: 'redis-memory-low',
    metric: 'spindle_redis_memory_bytes',
    per: 'spindle_redis_memory_max_bytes',
    above: 0.8,
    message: (fill) => `Redis uses ${percent(fill)} of its maxmemory`,
  },
  {
    name: 'request-filters-large',
    metric: 'spindle_request_filter_bytes_needed',
    per: 'spindle_request_filter_bytes_max',
    above: 0.8,
    message: (fill) => `The filters of request ids need ${percent(fill)} of REQUEST_FILTERS_MAX_MB`,
  },
  {
    name: 'partition-missing',
    metric: 'spindle_ledger_partition_days_ahead',
    below: 1,
    message: () => 'The ledger has no partition for tomorrow',
  },
  {
    name: 'position-file-stale',
    metric: 'spindle_position_file_age_seconds',
    above: 60,
    message: (age) => `POSITION_FILE has not been written for ${time(age)}`,
  },
  ...[1, -1].map(
    (sign): Bounded => ({
      name: 'clock-offset',
      metric: 'spindle_clock_offset_seconds',
      by: 'of',
      ...(sign > 0 ? { above: 0.5 } : { below: -0.5 }),
      message: (offset, of) =>
        `The clock of ${of} differs from this process's clock by ${offset.toFixed(1)} s`,
    }),
  ),
  {
    name: 'log-stalled',
    metric: 'spindle_log_waiting_seconds',
    above: 30,
    message: (age) => `Sealed blocks have waited for the public log for ${time(age)}`,
  },
  {
    name: 'log-halted',
    metric: 'spindle_log_halted',
    above: 0,
    message: () => 'The public log is halted: a checkpoint with our signature does not match it',
  },
  {
    name: 'log-copy-stale',
    metric: 'spindle_log_copy_behind_seconds',
    above: 60,
    message: (age) => `Records of the public log are missing in LOG_COPY_DIR or Redis for ${time(age)}`,
  },
  {
    name: 'log-witness-away',
    metric: 'spindle_log_witness_age_seconds',
    by: 'witness',
    above: 1800,
    message: (age, witness) => `The witness ${witness} has not cosigned the public log for ${time(age)}`,
  },
  {
    name: 'log-witness-refuses',
    metric: 'spindle_log_witness_refuses',
    by: 'witness',
    above: 0,
    message: (_, witness) => `The witness ${witness} refuses to cosign the public log`,
  },
  {
    name: 'settlement-overdue',
    metric: 'spindle_settlement_overdue_seconds',
    above: 21_600,
    message: (age) => `A day that ended ${time(age)} ago has no complete settlement report`,
  },
  {
    name: 'settlement-faults',
    metric: 'spindle_settlement_failing',
    above: 0,
    message: (reports) => `${reports} settlement reports can't be made`,
  },
  {
    name: 'queue-low',
    metric: 'spindle_queue_blocks',
    per: 'spindle_queue_blocks_minimum',
    by: 'game',
    below: 1,
    message: (_, game) => `Game ${game} has fewer blocks than its reserve`,
  },
  {
    name: 'rtp-outside-band',
    metric: 'spindle_game_rtp_surprise_nats',
    by: 'game',
    above: 32,
    message: (_, game) => `The return of game ${game} contradicts its PAR sheet`,
  },
  {
    name: 'rtp-rolling-outside-band',
    metric: 'spindle_rtp_rolling_alerts',
    above: 0,
    message: (games) => `The returns of ${games} games over 30 days contradict their PAR sheets`,
  },
  {
    name: 'rtp-review-overdue',
    metric: 'spindle_rtp_review_oldest_seconds',
    above: 604_800,
    message: (age) => `A review of a game's return has been open for ${time(age)}`,
  },
  {
    name: 'communal-budget-low',
    metric: 'spindle_communal_budget_usd',
    per: 'spindle_communal_largest_tier_usd',
    by: 'game',
    below: 2,
    message: (_, game) => `The bonus budget of game ${game} covers less than two events of its largest tier`,
  },
  {
    name: 'communal-budget-exhausted',
    metric: 'spindle_communal_budget_usd',
    per: 'spindle_communal_smallest_tier_usd',
    by: 'game',
    below: 1,
    message: (_, game) => `The enabled bonus of game ${game} can pay no tier`,
  },
  {
    name: 'webhooks-late',
    metric: 'spindle_webhook_oldest_due_seconds',
    by: 'limited_by',
    above: 300,
    message: (age) => `A webhook delivery has been due for ${time(age)}`,
  },
];

/** Returns the problems that the samples of a process's metrics show. */
export function problemsIn(metrics: readonly MetricSamples[]): Finding[] {
  const samples = new Map(metrics.map(({ name, values }) => [name, values as readonly Sample[]]));
  const found = BOUNDED.flatMap(({ name, metric, per, by, above, below, message }) =>
    (samples.get(metric) ?? []).flatMap((sample): Finding[] => {
      const subject = by === undefined ? '' : String(sample.labels[by] ?? '');
      const others = per === undefined ? [] : (samples.get(per) ?? []);
      const other =
        others.find(({ labels }) => by === undefined || String(labels[by]) === subject) ?? others[0];
      if (per !== undefined && (other === undefined || other.value <= 0)) return [];
      const value = sample.value / (other?.value ?? 1);
      const isOver =
        value > (above ?? Number.POSITIVE_INFINITY) || value < (below ?? Number.NEGATIVE_INFINITY);
      return isOver ? [{ name, subject: `${metric} ${subject}`, message: message(value, subject) }] : [];
    }),
  );
  // An exhausted budget is also a low one.
  const exhausted = found.filter(({ name }) => name === 'communal-budget-exhausted').map(gameOf);
  return found.filter((each) => each.name !== 'communal-budget-low' || !exhausted.includes(gameOf(each)));
}

const gameOf = ({ subject }: Finding): string => String(subject).split(' ')[1] ?? '';
