/** Latencies second by second, as the answers come. */
import type { Histogram } from 'hdr-histogram-js';
import { newHistogram } from './histogram.js';
import type { Second } from './slowSeconds.js';

/** Takes the latencies of answers, in the order in which they come. */
export class SecondMeter {
  readonly #micros: Histogram = newHistogram();
  readonly #seconds: Second[] = [];
  #at = 0;

  record(micros: number): void {
    const at = Math.floor(Date.now() / 1000);
    if (at !== this.#at) this.#close();
    this.#at = at;
    this.#micros.recordValue(micros);
  }

  /** @returns the seconds with an answer */
  end(): readonly Second[] {
    this.#close();
    return this.#seconds;
  }

  #close(): void {
    if (this.#micros.totalCount === 0) return;
    const p99Ms = this.#micros.getValueAtPercentile(99) / 1000;
    this.#seconds.push({ at: this.#at, p99Ms, maxMs: this.#micros.maxValue / 1000 });
    this.#micros.reset();
  }
}
