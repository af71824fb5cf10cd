/**
 * The metrics (Prometheus). What the spin path counts is counted in plain numbers and histograms of our own, which cost
 * nanoseconds, and handed to prom-client when it is scraped; everything else uses prom-client directly.
 */
import { createServer, type Server } from 'node:http';
import { Counter, collectDefaultMetrics, Gauge, Histogram, type Metric, Registry } from 'prom-client';

const LATENCY_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
/** Prometheus waits ten seconds for a scrape, and whoever looks by hand less. */
const SCRAPE_PATIENCE_MS = 500;
const BATCH_BUCKETS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/** A histogram with one label, whose observations cost a short scan. */
class FastHistogram {
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  readonly #series = new Map<string, { counts: Float64Array; sum: number; count: number }>();

  constructor(
    readonly name: string,
    readonly help: string,
    readonly label: string,
    readonly buckets: readonly number[],
  ) {}

  observe(labelValue: string, value: number): void {
    let series = this.#series.get(labelValue);
    if (series === undefined) {
      series = { counts: new Float64Array(this.buckets.length), sum: 0, count: 0 };
      this.#series.set(labelValue, series);
    }
    series.sum += value;
    series.count++;
    for (let i = 0; i < this.buckets.length; i++) {
      if (value <= this.buckets[i]!) {
        series.counts[i]!++;
        return;
      }
    }
  }

  reset(): void {
    this.#series.clear();
  }

  async get() {
    const values: { labels: Record<string, string | number>; metricName: string; value: number }[] = [];
    for (const [labelValue, series] of this.#series) {
      const labels = { [this.label]: labelValue };
      let cumulated = 0;
      this.buckets.forEach((bucket, i) => {
        cumulated += series.counts[i]!;
        values.push({
          labels: { ...labels, le: bucket },
          metricName: `${this.name}_bucket`,
          value: cumulated,
        });
      });
      values.push({
        labels: { ...labels, le: '+Inf' },
        metricName: `${this.name}_bucket`,
        value: series.count,
      });
      values.push({ labels, metricName: `${this.name}_sum`, value: series.sum });
      values.push({ labels, metricName: `${this.name}_count`, value: series.count });
    }
    return { name: this.name, help: this.help, type: this.type, aggregator: this.aggregator, values };
  }
}

export class Metrics {
  readonly registry = new Registry();
  readonly #errors: Counter;
  readonly #requests: FastHistogram;
  readonly #batchSize: FastHistogram;
  readonly #batchSeconds: FastHistogram;
  readonly faults: Counter;
  readonly flushSeconds: Histogram;
  readonly flushEntries: Counter;
  readonly flushLagSeconds: Gauge;
  readonly cellHalted: Gauge;
  readonly blockMakeSeconds: Histogram;
  readonly blockOutcomes: Counter;
  readonly storeErrors: Counter;
  readonly recoveriesUnderWay: Gauge;
  readonly recoverySeconds: Histogram;
  readonly outcomesVoided: Counter;
  readonly ackSeconds: Histogram;
  readonly redisVolatile: Gauge;
  readonly settlementReports: Counter;
  readonly settlementFaults: Counter;
  readonly webhookAttempts: Counter;
  readonly webhookAttemptSeconds: Histogram;
  #dealt = 0;
  // Sums for a graph, which is drawn in doubles: the books are the ledger.
  #wageredMicros = 0;
  #paidMicros = 0;

  constructor() {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    this.#requests = new FastHistogram(
      'spindle_http_request_seconds',
      'Time from a request to its answer, by operation and status class',
      'operation',
      LATENCY_BUCKETS,
    );
    this.#batchSize = new FastHistogram(
      'spindle_batch_size',
      'Requests in a script call',
      'script',
      BATCH_BUCKETS,
    );
    this.#batchSeconds = new FastHistogram(
      'spindle_batch_seconds',
      'Time from sending a script call to its answer, by script',
      'script',
      LATENCY_BUCKETS,
    );
    for (const metric of [this.#requests, this.#batchSize, this.#batchSeconds]) {
      this.registry.registerMetric(metric as unknown as Metric);
    }
    this.#errors = new Counter({
      name: 'spindle_errors_total',
      help: 'Error answers by code',
      labelNames: ['code'],
      registers,
    });
    this.faults = new Counter({
      name: 'spindle_faults_total',
      help: 'Faults of the service itself by operation; each has a line in the log',
      labelNames: ['operation'],
      registers,
    });
    this.storeErrors = new Counter({
      name: 'spindle_store_errors_total',
      help: 'Failed calls of a store in the background, by store',
      labelNames: ['store'],
      registers,
    });
    this.flushSeconds = new Histogram({
      name: 'spindle_flush_seconds',
      help: 'Time to book what was read of an outbox',
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.flushEntries = new Counter({
      name: 'spindle_flush_entries_total',
      help: 'Ledger entries booked',
      registers,
    });
    this.flushLagSeconds = new Gauge({
      name: 'spindle_flush_lag_seconds',
      help: 'Age of the oldest entry of the newest flush when it was committed',
      registers,
    });
    this.cellHalted = new Gauge({
      name: 'spindle_cell_halted',
      help: '1 where the flushing of a cell is stopped until an engineer has looked',
      labelNames: ['cell'],
      registers,
    });
    this.blockMakeSeconds = new Histogram({
      name: 'spindle_block_make_seconds',
      help: 'Time to make, lease and load an outcome block',
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.blockOutcomes = new Counter({
      name: 'spindle_block_outcomes_total',
      help: 'Outcomes made',
      registers,
    });
    this.recoveriesUnderWay = new Gauge({
      name: 'spindle_recoveries_under_way',
      help: 'Cells that this process is rebuilding from the ledger',
      registers,
    });
    this.recoverySeconds = new Histogram({
      name: 'spindle_recovery_seconds',
      help: 'Time to rebuild a cell of Redis from the ledger',
      buckets: [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900],
      registers,
    });
    this.outcomesVoided = new Counter({
      name: 'spindle_outcomes_voided_total',
      help: 'Outcomes given up because Redis lost what it held',
      registers,
    });
    this.ackSeconds = new Histogram({
      name: 'spindle_ledger_ack_seconds',
      help: 'Time for which dealt spins waited for the ledger before they were answered, by batch',
      buckets: LATENCY_BUCKETS,
      registers,
    });
    this.redisVolatile = new Gauge({
      name: 'spindle_redis_volatile',
      help: '1 while Redis may lose or evict what it acknowledged',
      registers,
    });
    this.settlementReports = new Counter({
      name: 'spindle_settlement_reports_total',
      help: 'Settlement reports made, revisions among them, by the status they were made with',
      labelNames: ['status'],
      registers,
    });
    this.settlementFaults = new Counter({
      name: 'spindle_settlement_faults_total',
      help: 'Settlement reports that could not be made when they were due, and came again',
      registers,
    });
    this.webhookAttempts = new Counter({
      name: 'spindle_webhook_attempts_total',
      help: 'Attempts of webhook deliveries by result: delivered, failed (an attempt), exhausted (the last one)',
      labelNames: ['result'],
      registers,
    });
    this.webhookAttemptSeconds = new Histogram({
      name: 'spindle_webhook_attempt_seconds',
      help: 'Time of an attempt of a webhook delivery',
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
      registers,
    });
    this.#counter('spindle_spins_total', 'Spins dealt', () => this.#dealt);
    this.#counter('spindle_wagered_usd_total', 'Sum of wagers dealt', () => this.#wageredMicros / 1e6);
    this.#counter('spindle_paid_usd_total', 'Sum of payouts dealt', () => this.#paidMicros / 1e6);
  }

  /** A gauge whose value is asked for at each scrape. */
  gauge(name: string, help: string, read: () => number): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers: [this.registry],
      collect: () => gauge.set(read()),
    });
  }

  /** A gauge with one label, whose series are asked for at each scrape; it has none where a store does not tell in time. */
  gaugeBy(name: string, help: string, label: string, read: () => Promise<[string, number][]>): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [this.registry],
      collect: async () => {
        const series = await soon(read());
        gauge.reset();
        for (const [labelValue, value] of series) gauge.set({ [label]: labelValue }, value);
      },
    });
  }

  request(operation: string, seconds: number, errorCode: string | undefined): void {
    this.#requests.observe(operation, seconds);
    if (errorCode !== undefined) this.#errors.inc({ code: errorCode });
  }

  batch(size: number, seconds: number): void {
    this.#batchSize.observe('spin', size);
    this.#batchSeconds.observe('spin', seconds);
  }

  dealt(wagerMicros: number, payoutMicros: number): void {
    this.#dealt++;
    this.#wageredMicros += wagerMicros;
    this.#paidMicros += payoutMicros;
  }

  #counter(name: string, help: string, read: () => number): void {
    const counter: Counter = new Counter({
      name,
      help,
      registers: [this.registry],
      collect: () => {
        counter.reset();
        counter.inc(read());
      },
    });
  }
}

/** A store that hangs must not hold up what the scrape knows without it. */
async function soon<T>(series: Promise<T[]>): Promise<T[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T[]>((resolve) => {
    timer = setTimeout(() => resolve([]), SCRAPE_PATIENCE_MS);
  });
  try {
    return await Promise.race([series.catch(() => []), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Serves GET /metrics. @throws where the port can't be had. */
export function serveMetrics(metrics: Metrics, host: string, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') {
      response.writeHead(404).end();
      return;
    }
    metrics.registry.metrics().then(
      (text) => response.writeHead(200, { 'Content-Type': metrics.registry.contentType }).end(text),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  return new Promise((resolve, reject) => {
    server.once('error', () =>
      reject(new Error(`Port ${port} of ${host} (METRICS_PORT) is in use or can't be listened on`)),
    );
    server.listen(port, host, () => resolve(server));
  });
}
