/**
 * Counts requests and errors by partner. Of thousands of partners only the busiest have their own time
 * series; all other partners share one.
 */
import type { Sample } from './scraped.js';

/**
 * Number of partners that get their own time series because they have the most requests, and number of those
 * that get one because they have the most errors.
 */
const SHOWN = 10;
/** Interval between two rankings, in ms. A new ranking at each scrape would cause gaps in the graphs. */
const RANKED_FOR_MS = 60_000;
/** Label of the shared time series of all other partners. */
const OTHERS = 'other';

interface Count {
  /** Requests and errors since the start of the process. */
  requests: number;
  errors: number;
  /** Requests and errors at the last ranking. */
  rankedRequests: number;
  rankedErrors: number;
  /** Number of requests and errors of the partner when they were last added to a time series. */
  addedRequests: number;
  addedErrors: number;
}

interface Totals {
  requests: number;
  errors: number;
}

interface PartnerFigures extends Readonly<Totals> {
  /** Partner id; null for all other partners together. */
  readonly partnerId: number | null;
}

/**
 * Request and error counts of all partners. Each request is counted in exactly one time series: that of its
 * partner if there is one at the time, otherwise the shared one. So no time series ever decreases, and their
 * sum is the number of all requests.
 */
export class PartnerTraffic {
  readonly #counts = new Map<number, Count>();
  readonly #others: Totals = { requests: 0, errors: 0 };
  #shown = new Map<number, Totals>();
  #rankedAtMs = Number.NEGATIVE_INFINITY;

  /** @param partnerId id of an existing partner; the number of partners bounds the memory */
  count(partnerId: number, isError: boolean): void {
    let count = this.#counts.get(partnerId);
    if (count === undefined) {
      count = {
        requests: 0,
        errors: 0,
        rankedRequests: 0,
        rankedErrors: 0,
        addedRequests: 0,
        addedErrors: 0,
      };
      this.#counts.set(partnerId, count);
    }
    count.requests++;
    if (isError) count.errors++;
  }

  /**
   * Returns the samples of one measure (requests or errors).
   * @param nowMs time of a monotonic clock, in ms
   */
  samples(of: keyof Totals, nowMs = performance.now()): Sample[] {
    if (this.#rankedAtMs === Number.NEGATIVE_INFINITY) this.#rank(nowMs);
    this.#add();
    // The requests counted so far belong to the time series that exist now, so they are added to these before
    // the partners are ranked again.
    if (nowMs - this.#rankedAtMs >= RANKED_FOR_MS) this.#rank(nowMs);
    const shown = [...this.#shown].map(([partner, totals]) => ({ labels: { partner }, value: totals[of] }));
    return [...shown, { labels: { partner: OTHERS }, value: this.#others[of] }];
  }

  /**
   * Returns the totals since the start: the partners with the most requests, those with the most errors, and
   * all others together.
   */
  figures(): PartnerFigures[] {
    const shown = this.#top(
      ({ requests }) => requests,
      ({ errors }) => errors,
    );
    const others = { partnerId: null, requests: 0, errors: 0 };
    for (const [partnerId, { requests, errors }] of this.#counts) {
      if (shown.has(partnerId)) continue;
      others.requests += requests;
      others.errors += errors;
    }
    const lines = [...shown].map((partnerId) => {
      const { requests, errors } = this.#counts.get(partnerId)!;
      return { partnerId, requests, errors };
    });
    return others.requests === 0 ? lines : [...lines, others];
  }

  #add(): void {
    for (const [partnerId, count] of this.#counts) {
      const totals = this.#shown.get(partnerId) ?? this.#others;
      totals.requests += count.requests - count.addedRequests;
      totals.errors += count.errors - count.addedErrors;
      count.addedRequests = count.requests;
      count.addedErrors = count.errors;
    }
  }

  /** Gives time series to the partners with the highest counts since the last ranking. */
  #rank(nowMs: number): void {
    const top = this.#top(
      ({ requests, rankedRequests }) => requests - rankedRequests,
      ({ errors, rankedErrors }) => errors - rankedErrors,
    );
    this.#shown = new Map(
      [...top].map((partnerId) => [partnerId, this.#shown.get(partnerId) ?? { requests: 0, errors: 0 }]),
    );
    for (const count of this.#counts.values()) {
      count.rankedRequests = count.requests;
      count.rankedErrors = count.errors;
    }
    this.#rankedAtMs = nowMs;
  }

  /** Returns the partners with the highest values of any of the given measures. */
  #top(...measures: ((count: Count) => number)[]): Set<number> {
    const counts = [...this.#counts];
    const tops = measures.map((measure) =>
      counts
        .map(([partnerId, count]) => ({ partnerId, value: measure(count) }))
        .filter(({ value }) => value > 0)
        .sort((a, b) => b.value - a.value || a.partnerId - b.partnerId)
        .slice(0, SHOWN),
    );
    return new Set(tops.flat().map(({ partnerId }) => partnerId));
  }
}
