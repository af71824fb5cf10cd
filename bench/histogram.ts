/** Latencies of a period of load, in microseconds to three digits, and the figures that are read off them. */
import { build, type Histogram } from 'hdr-histogram-js';
import type { LoadResult } from './measurement.js';

const MAX_MICROS = 60_000_000;

/** autocannon's own histogram holds whole milliseconds, too coarse for answers within one. */
export const newHistogram = (): Histogram =>
  build({ highestTrackableValue: MAX_MICROS, numberOfSignificantValueDigits: 3 });

export const latenciesOf = (micros: Histogram): Pick<LoadResult, 'p50Ms' | 'p99Ms' | 'p999Ms' | 'maxMs'> => ({
  p50Ms: micros.getValueAtPercentile(50) / 1000,
  p99Ms: micros.getValueAtPercentile(99) / 1000,
  p999Ms: micros.getValueAtPercentile(99.9) / 1000,
  maxMs: micros.maxValue / 1000,
});
