/**
 * Histogram for the spin path. An observation takes nanoseconds, and prom-client reads the samples at each
 * scrape.
 */
import type { Labels, Sample } from './scraped.js';

interface Buckets {
  readonly counts: Float64Array;
  sum: number;
  count: number;
}

/**
 * Histogram with one text label and optionally a status class. An observation costs a short scan of the
 * buckets.
 */
export class FastHistogram {
  readonly #series = new Map<string, (Buckets | undefined)[]>();

  constructor(
    private readonly label: string,
    private readonly bounds: readonly number[],
  ) {}

  observe(labelValue: string, value: number, statusClass = 0): void {
    let classes = this.#series.get(labelValue);
    if (classes === undefined) {
      classes = new Array<Buckets | undefined>(6).fill(undefined);
      this.#series.set(labelValue, classes);
    }
    let series = classes[statusClass];
    if (series === undefined) {
      series = { counts: new Float64Array(this.bounds.length), sum: 0, count: 0 };
      classes[statusClass] = series;
    }
    series.sum += value;
    series.count++;
    for (let i = 0; i < this.bounds.length; i++) {
      if (value <= this.bounds[i]!) {
        series.counts[i]!++;
        return;
      }
    }
  }

  /**
   * Returns the cumulative number of observations up to each bound, and their total, over all status classes.
   */
  cumulated(labelValue: string): number[] {
    const cumulated = new Array<number>(this.bounds.length + 1).fill(0);
    for (const series of this.#series.get(labelValue) ?? []) {
      let sum = 0;
      series?.counts.forEach((count, i) => {
        sum += count;
        cumulated[i]! += sum;
      });
      cumulated[this.bounds.length]! += series?.count ?? 0;
    }
    return cumulated;
  }

  samples(name: string): Sample[] {
    const samples: Sample[] = [];
    for (const [labelValue, classes] of this.#series) {
      classes.forEach((series, statusClass) => {
        if (series === undefined) return;
        const labels: Labels = { [this.label]: labelValue };
        if (statusClass > 0) labels.status = `${statusClass}xx`;
        const metricName = `${name}_bucket`;
        let cumulated = 0;
        this.bounds.forEach((le, i) => {
          cumulated += series.counts[i]!;
          samples.push({ labels: { ...labels, le }, metricName, value: cumulated });
        });
        samples.push({ labels: { ...labels, le: '+Inf' }, metricName, value: series.count });
        samples.push({ labels, metricName: `${name}_sum`, value: series.sum });
        samples.push({ labels, metricName: `${name}_count`, value: series.count });
      });
    }
    return samples;
  }
}
