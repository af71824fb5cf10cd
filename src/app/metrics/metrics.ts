/**
 * Metrics for Prometheus. The spin path counts in plain numbers and its own histograms, which takes
 * nanoseconds; prom-client reads them at each scrape. All other metrics use prom-client directly.
 *
 * Each process is scraped separately. With FRONT_ENDS above 1, the first process answers for all processes of
 * the program, and the label `process` distinguishes them. Metrics of a process are summed over processes.
 * Metrics of a cell come from the worker that owns the cell and are summed too. Metrics of a store are
 * reported by every worker; the maximum is used.
 */
import { performance } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, type Metric, Registry } from 'prom-client';
import type { ProcessFigures } from '../../api/overview/contract.js';
import { ERRORS } from '../../domain/errors.js';
import { FastHistogram } from './fastHistogram.js';
import { PartnerTraffic } from './partnerTraffic.js';
import { inTime, type Labels, type MetricSamples, type Sample, Scraped, type Series } from './scraped.js';

export const LATENCY_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const LAG_BUCKETS = [0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 5, 15, 60, 300, 1800];
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/**
 * Errors of spins that count against the error budget. Their time series exist from the start, so that the
 * first error is visible as an increase.
 */
const SPIN_FAILURES = [
  ERRORS.spinInProgress,
  ERRORS.queueExhausted,
  ERRORS.internal,
  ERRORS.unavailable,
  ERRORS.spinFailed,
  ERRORS.authenticationFailed,
  ERRORS.noBlockServable,
];

/**
 * Sampling interval of the event loop delay, in ms. The library's default of 10 ms would wake an idle process
 * more often than everything else together.
 */
const EVENT_LOOP_SAMPLED_MS = 100;

export class Metrics {
  readonly registry = new Registry();
  /** Reads the metrics of the other processes of the program, if this process answers scrapes for them. */
  others: () => Promise<readonly (readonly MetricSamples[])[]> = async () => [];
  readonly partners = new PartnerTraffic();
  readonly #errors: Counter;
  readonly #requests = new FastHistogram('operation', LATENCY_BUCKETS);
  readonly #batchSize = new FastHistogram('script', BATCH_BUCKETS);
  readonly #batchSeconds = new FastHistogram('script', LATENCY_BUCKETS);
  readonly faults: Counter;
  readonly flushSeconds: Histogram;
  readonly flushEntries: Counter;
  readonly flushLagSeconds: Histogram;
  readonly blockMakeSeconds: Histogram;
  readonly blockOutcomes: Counter;
  readonly blockPoolSeconds: Counter;
  readonly storeErrors: Counter;
  readonly clockRefusals = new Counter({
    name: 'spindle_clock_refusals_total',
    help: 'Calls to cells that were refused because of clock skew',
    registers: [this.registry],
  });
  readonly recoveriesUnderWay: Gauge;
  readonly recoverySeconds: Histogram;
  readonly outcomesVoided: Counter;
  readonly ackSeconds: Histogram;
  readonly redisVolatile: Gauge;
  readonly postgresVolatile = new Gauge({
    name: 'spindle_postgres_volatile',
    help: '1 while Postgres may lose committed writes, otherwise 0',
    registers: [this.registry],
  });
  readonly settlementReports: Counter;
  readonly settlementFaults: Counter;
  readonly webhookAttempts: Counter;
  readonly webhookAttemptSeconds: Histogram;
  #dealt = 0;
  #forced = 0;
  // Floating-point sums for graphs only; the exact amounts are in the ledger.
  #wageredMicros = 0;
  #paidMicros = 0;

  /** @param process value of the label `process`; undefined if the program has only one process */
  constructor(private readonly process?: string) {
    if (process !== undefined) this.registry.setDefaultLabels({ process });
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry, eventLoopMonitoringPrecision: EVENT_LOOP_SAMPLED_MS });
    this.#histogram(
      'spindle_http_request_seconds',
      'Time from a request to its response, in seconds, by operation and class of status',
      this.#requests,
    );
    this.#histogram('spindle_batch_size', 'Number of requests in one script call', this.#batchSize);
    this.#histogram(
      'spindle_batch_seconds',
      'Time from sending a script call to its response, in seconds, by script',
      this.#batchSeconds,
    );
    this.#errors = new Counter({
      name: 'spindle_errors_total',
      help: 'Error responses, by operation and code',
      labelNames: ['operation', 'code'],
      registers,
    });
    for (const { code } of SPIN_FAILURES) this.#errors.inc({ operation: 'spin', code }, 0);
    this.faults = new Counter({
      name: 'spindle_faults_total',
      help: 'Internal faults of the service, by operation; each is also logged',
      labelNames: ['operation'],
      registers,
    });
    this.storeErrors = new Counter({
      name: 'spindle_store_errors_total',
      help: 'Failed background calls to a store, by store',
      labelNames: ['store'],
      registers,
    });
    this.flushSeconds = new Histogram({
      name: 'spindle_flush_seconds',
      help: 'Time to commit the entries that were read from an outbox, in seconds',
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.flushEntries = new Counter({
      name: 'spindle_flush_entries_total',
      help: 'Committed ledger entries',
      registers,
    });
    this.flushLagSeconds = new Histogram({
      name: 'spindle_flush_lag_seconds',
      help: 'Age of the oldest entry of a flush at its commit, in seconds',
      buckets: LAG_BUCKETS,
      registers,
    });
    this.blockMakeSeconds = new Histogram({
      name: 'spindle_block_make_seconds',
      help: 'Time to make, lease and load an outcome block, in seconds',
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.blockOutcomes = new Counter({
      name: 'spindle_block_outcomes_total',
      help: 'Outcomes made',
      registers,
    });
    this.blockPoolSeconds = new Counter({
      name: 'spindle_block_pool_busy_seconds_total',
      help: 'Total time for which threads made blocks, in seconds',
      registers,
    });
    this.recoveriesUnderWay = new Gauge({
      name: 'spindle_recoveries_under_way',
      help: 'Number of cells that this process is rebuilding from the ledger',
      registers,
    });
    this.recoverySeconds = new Histogram({
      name: 'spindle_recovery_seconds',
      help: 'Time to rebuild a cell in Redis from the ledger, in seconds',
      buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900],
      registers,
    });
    this.outcomesVoided = new Counter({
      name: 'spindle_outcomes_voided_total',
      help: 'Outcomes voided because Redis lost its data',
      registers,
    });
    this.ackSeconds = new Histogram({
      name: 'spindle_ledger_ack_seconds',
      help: 'Time for which dealt spins waited for the ledger before their response, in seconds, by batch',
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.redisVolatile = new Gauge({
      name: 'spindle_redis_volatile',
      help: '1 while Redis may lose or evict acknowledged writes, otherwise 0',
      registers,
    });
    this.settlementReports = new Counter({
      name: 'spindle_settlement_reports_total',
      help: 'Settlement reports made, including revisions, by their initial status',
      labelNames: ['status'],
      registers,
    });
    this.settlementFaults = new Counter({
      name: 'spindle_settlement_faults_total',
      help: 'Failed attempts to make a due settlement report; each is repeated',
      registers,
    });
    this.webhookAttempts = this.counted(
      'spindle_webhook_attempts_total',
      'Attempts of webhook deliveries, by result: delivered, failed (one attempt), exhausted (the last attempt)',
      [{ result: 'delivered' }, { result: 'failed' }, { result: 'exhausted' }],
    );
    this.webhookAttemptSeconds = new Histogram({
      name: 'spindle_webhook_attempt_seconds',
      help: 'Duration of an attempt of a webhook delivery, in seconds',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
      registers,
    });
    this.#countSpins();
    this.counter(
      'spindle_event_loop_busy_seconds_total',
      'Total time for which the event loop was busy, in seconds; its rate is the utilization',
      () => performance.eventLoopUtilization().active / 1000,
    );
  }

  #countSpins(): void {
    this.counter('spindle_spins_total', 'Spins dealt', () => this.#dealt);
    this.counter(
      'spindle_sandbox_forced_spins_total',
      'Spins of sandbox players with an outcome chosen by a tester; no other counter of spins, wagers or payouts includes them',
      () => this.#forced,
    );
    this.counter('spindle_wagered_usd_total', 'Sum of dealt wagers, in USD', () => this.#wageredMicros / 1e6);
    this.counter('spindle_paid_usd_total', 'Sum of dealt payouts, in USD', () => this.#paidMicros / 1e6);
  }

  /**
   * Returns the figures of this process for operators: spins, errors, latency of spins, and requests by
   * partner.
   */
  async figures(): Promise<ProcessFigures> {
    const { values } = await this.#errors.get();
    return {
      spins: this.#dealt,
      errors: values
        .filter(({ value }) => value > 0)
        .map(({ labels, value }) => ({
          operation: String(labels.operation),
          errorCode: String(labels.code),
          count: value,
        })),
      spinSeconds: this.#requests
        .cumulated('spin')
        .map((count, i) => ({ leSeconds: LATENCY_BUCKETS[i] ?? null, count })),
      partners: this.partners.figures(),
    };
  }

  /** Returns the metrics in the form that Prometheus reads, with those of the program's other processes. */
  async text(): Promise<string> {
    if (this.process === undefined) return this.registry.metrics();
    const [own, others] = await Promise.all([this.samples(), this.others()]);
    const values = new Map<string, Sample[]>();
    const registry = new Registry();
    for (const metric of [own, ...others].flat()) {
      const { name, help, type } = metric;
      const known = values.get(name);
      values.set(name, [...(known ?? []), ...metric.values]);
      if (known !== undefined) continue;
      registry.registerMetric(
        new Scraped(name, help, type, () => values.get(name) ?? []) as unknown as Metric,
      );
    }
    return registry.metrics();
  }

  /** Returns the metrics of this process. */
  samples(): Promise<readonly MetricSamples[]> {
    return this.registry.getMetricsAsJSON() as Promise<unknown> as Promise<readonly MetricSamples[]>;
  }

  /** Registers a counter whose time series are 0 from the start. */
  counted(name: string, help: string, series: readonly Labels[] = [{}]): Counter {
    const labelNames = Object.keys(series[0]!);
    const counter = new Counter({ name, help, labelNames, registers: [this.registry] });
    for (const labels of series) counter.inc(labels, 0);
    return counter;
  }

  /** Registers a gauge whose value is read at each scrape. */
  gauge(name: string, help: string, read: () => number): void {
    this.#register(new Scraped(name, help, 'gauge', () => [{ labels: {}, value: read() }]));
  }

  /** Registers a counter whose value is kept elsewhere and read at each scrape. */
  counter(name: string, help: string, read: () => number): void {
    this.#register(new Scraped(name, help, 'counter', () => [{ labels: {}, value: read() }]));
  }

  /** Registers a counter with labels, whose time series are read at each scrape. */
  counters(name: string, help: string, read: () => Sample[]): void {
    this.#register(new Scraped(name, help, 'counter', read));
  }

  /**
   * Registers a metric whose value is read from a store at each scrape. The metric is absent if the store
   * does not answer in time.
   */
  asked(type: 'gauge' | 'counter', name: string, help: string, read: () => Promise<number>): void {
    const sample = async (): Promise<Sample> => ({ labels: {}, value: await read() });
    this.#register(new Scraped(name, help, type, () => inTime(sample().then((only) => [only]))));
  }

  /**
   * Registers a gauge with one label, whose time series are read at each scrape. The gauge has no time series
   * if a store does not answer in time.
   */
  gaugeBy(name: string, help: string, label: string, read: Series): void {
    this.#by('gauge', name, help, label, read);
  }

  /** Registers a gauge with several labels, read at each scrape. */
  gauges(name: string, help: string, samples: () => Sample[]): void {
    this.#register(new Scraped(name, help, 'gauge', samples));
  }

  /**
   * Registers a counter with one label, whose time series are read at each scrape. The counter has no time
   * series if a store does not answer in time.
   */
  counterBy(name: string, help: string, label: string, read: Series): void {
    this.#by('counter', name, help, label, read);
  }

  /** @param partnerId partner of the API key; undefined for a request without a partner's key */
  request(
    operation: string,
    seconds: number,
    status: number,
    errorCode: string | undefined,
    partnerId: number | undefined,
  ): void {
    if (partnerId !== undefined) this.partners.count(partnerId, errorCode !== undefined);
    this.#requests.observe(operation, seconds, (status / 100) | 0);
    if (errorCode !== undefined) this.#errors.inc({ operation, code: errorCode });
  }

  batch(size: number, seconds: number): void {
    this.#batchSize.observe('spin', size);
    this.#batchSeconds.observe('spin', seconds);
  }

  /** @param payoutMicros payout in micro-USD; undefined for a forced outcome */
  dealt(wagerMicros: number, payoutMicros: number | undefined): void {
    if (payoutMicros === undefined) {
      this.#forced++;
      return;
    }
    this.#dealt++;
    this.#wageredMicros += wagerMicros;
    this.#paidMicros += payoutMicros;
  }

  #by(type: 'gauge' | 'counter', name: string, help: string, label: string, read: Series): void {
    const samples = async (): Promise<Sample[]> =>
      (await inTime(read()))
        .filter(([, value]) => value !== undefined)
        .map(([labelValue, value]) => ({ labels: { [label]: labelValue }, value: value! }));
    this.#register(new Scraped(name, help, type, samples));
  }

  #histogram(name: string, help: string, histogram: FastHistogram): void {
    this.#register(new Scraped(name, help, 'histogram', () => histogram.samples(name)));
  }

  #register(metric: Scraped): void {
    this.registry.registerMetric(metric as unknown as Metric);
  }
}
