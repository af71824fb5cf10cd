/** Metrics whose samples are made when they are scraped, and the looks at a store that several of them share. */

import { withTimeout } from '../../platform/runtime/withTimeout.js';

export type Labels = Record<string, string | number>;
export interface Sample {
  readonly labels: Labels;
  readonly metricName?: string;
  readonly value: number;
}

/** A metric whose samples are made when it is scraped, as prom-client's registry takes it. */
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

/** Series by the value of their label; one without a value is left out. */
export type Series = () => Promise<[string | number, number | undefined][]>;

/** Prometheus waits ten seconds for a scrape, and whoever looks by hand less. */
const SCRAPE_PATIENCE_MS = 500;

/** Whoever asks while an answer is awaited gets the same one: all metrics of a scrape are read in one turn of the event loop. */
export function singleFlight<T>(look: () => Promise<T>): () => Promise<T> {
  let looking: Promise<T> | undefined;
  return () => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
}

/** A store that hangs must not hold up what the scrape knows without it. */
export function inTime<T>(series: Promise<T[]>): Promise<T[]> {
  return withTimeout(series, SCRAPE_PATIENCE_MS).catch(() => []);
}
