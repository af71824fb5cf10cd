/** Requests and errors by partner. Of thousands of partners only the busiest have series of their own; the others share one. */
import type { Sample } from './scraped.js';

/** Partners that are shown: so many by requests, and so many by errors. */
const SHOWN = 10;
/** How long a ranking holds. Partners that change places at each scrape would make graphs of gaps. */
const RANKED_FOR_MS = 60_000;
/** The series of all partners that are not shown. */
const OTHERS = 'other';

interface Count {
  /** Since the start. */
  requests: number;
  errors: number;
  /** As they were at the last ranking. */
  rankedRequests: number;
  rankedErrors: number;
  /** As they were when they were last added to a series. */
  addedRequests: number;
  addedErrors: number;
}

interface Totals {
  requests: number;
  errors: number;
}

interface PartnerFigures extends Readonly<Totals> {
  /** Null: all others. */
  readonly partnerId: number | null;
}

/**
 * Every request is counted in one series only: that of its partner while it is shown, else that of the others. So no
 * series ever falls but by its end, and their sum is that of all requests.
 */
export class PartnerTraffic {
  readonly #counts = new Map<number, Count>();
  readonly #others: Totals = { requests: 0, errors: 0 };
  #shown = new Map<number, Totals>();
  #rankedAtMs = Number.NEGATIVE_INFINITY;

  /** @param partnerId one that there is: their number bounds what is kept */
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

  /** @param nowMs of a clock that never goes back */
  samples(of: keyof Totals, nowMs = performance.now()): Sample[] {
    if (this.#rankedAtMs === Number.NEGATIVE_INFINITY) this.#rank(nowMs);
    this.#add();
    // What is counted until now was of those shown until now.
    if (nowMs - this.#rankedAtMs >= RANKED_FOR_MS) this.#rank(nowMs);
    const shown = [...this.#shown].map(([partner, totals]) => ({ labels: { partner }, value: totals[of] }));
    return [...shown, { labels: { partner: OTHERS }, value: this.#others[of] }];
  }

  /** Since the start: those with the most requests, those with the most errors, and all others together. */
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

  /** Shows those that had the most since the last ranking. */
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

  /** Partners with the most by either measure. */
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
