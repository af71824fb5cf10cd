/** Metrics whose samples are computed at each scrape, and store reads shared by several metrics. */

import { withTimeout } from '../../platform/runtime/withTimeout.js';

export type Labels = Record<string, string | number>;
export interface Sample {
  readonly labels: Labels;
  readonly metricName?: string;
  readonly value: number;
}

/** Metric whose samples are computed at each scrape, in the form that prom-client's registry expects. */
export class Scraped {
  readonly aggregator = 'sum';

  constructor(
    readonly name: string,
    readonly help: string,
    readonly type: 'gauge' | 'counter' | 'histogram',
    readonly read: () => Promise<Sample[]> | Sample[],
  ) {}

  async get() {
    const { name, help, type, aggregator } = this;
    return { name, help, type, aggregator, values: await this.read() };
  }
}

/** A metric with its samples at one scrape. */
export type MetricSamples = Awaited<ReturnType<Scraped['get']>>;

/** Returns pairs of label value and metric value. A label value without a metric value is omitted. */
export type Series = () => Promise<[string | number, number | undefined][]>;

/**
 * Maximum wait for a store during a scrape, in ms. Prometheus waits ten seconds, but people who open the page
 * wait less.
 */
const SCRAPE_PATIENCE_MS = 500;

/**
 * Shares one result between concurrent callers. All metrics of a scrape are read in one turn of the event
 * loop, so they share one read.
 */
export function singleFlight<T>(look: () => Promise<T>): () => Promise<T> {
  let looking: Promise<T> | undefined;
  return () => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
}

/**
 * Returns an empty list if a store does not answer in time, so that the other metrics of the scrape are not
 * delayed.
 */
export function inTime<T>(series: Promise<T[]>): Promise<T[]> {
  return withTimeout(series, SCRAPE_PATIENCE_MS).catch(() => []);
}
