/**
 * For how long request ids of spins and deals bind: by when they were bound, because IDEMPOTENCY_TTL_S may change at any start. A
 * shorter time holds for ids that are bound afterwards; a longer one also for those that still bind.
 */

/** Ids that are bound from a moment on bind for so long, until the next of these. */
export interface BindingTime {
  readonly sinceMs: number;
  readonly seconds: number;
}

/** Moments from the first on, before the second. */
export interface Span {
  readonly fromMs: number;
  readonly beforeMs: number;
}

export class BindingTimes {
  readonly #times: readonly BindingTime[];

  /** @param times one at least, in order; the first also holds for everything earlier */
  constructor(times: readonly BindingTime[]) {
    if (times.length === 0) throw new RangeError('Nobody has said for how long request ids bind');
    this.#times = times;
  }

  /** Ids that are bound now bind for so long. */
  get seconds(): number {
    return this.#times.at(-1)!.seconds;
  }

  /** No id binds longer, milliseconds. */
  get longestMs(): number {
    return Math.max(...this.#times.map(({ seconds }) => seconds)) * 1000;
  }

  /** An id that was bound at a moment binds before this one. */
  untilMs(boundMs: number): number {
    const place = Math.max(
      0,
      this.#times.findLastIndex(({ sinceMs }) => sinceMs <= boundMs),
    );
    let until = boundMs + this.#times[place]!.seconds * 1000;
    for (const { sinceMs, seconds } of this.#times.slice(place + 1)) {
      if (sinceMs >= until) break;
      until = Math.max(until, boundMs + seconds * 1000);
    }
    return until;
  }

  /** None of the ids that were bound in a span binds at this moment or later. */
  untilMsOf({ fromMs, beforeMs }: Span): number {
    let until = 0;
    for (const span of this.#spans())
      if (span.fromMs < beforeMs && span.beforeMs > fromMs)
        until = Math.max(until, this.untilMs(Math.min(span.beforeMs, beforeMs) - 1));
    return until;
  }

  /** When the ids were bound that bind at a moment, in order. */
  boundAt(nowMs: number): Span[] {
    return this.#spans().flatMap(({ fromMs, beforeMs }) => {
      // Of ids for which the same was said, none binds longer than a later one.
      let low = fromMs;
      let high = Math.max(fromMs, Math.min(beforeMs, nowMs));
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        if (this.untilMs(middle) > nowMs) high = middle;
        else low = middle + 1;
      }
      return low < beforeMs ? [{ fromMs: low, beforeMs }] : [];
    });
  }

  /** All ids that were bound from this moment on bind at `nowMs`. */
  allBoundFromMs(nowMs: number): number {
    const spans = this.boundAt(nowMs);
    let { fromMs } = spans.at(-1)!;
    for (const span of spans.toReversed()) if (span.beforeMs === fromMs) fromMs = span.fromMs;
    return fromMs;
  }

  /** Those that are of use while some cell is as late as this. */
  since(nowMs: number): readonly BindingTime[] {
    const first = this.#times.findIndex((_, i) => {
      const next = this.#times[i + 1];
      return next === undefined || next.sinceMs + this.longestMs > nowMs;
    });
    return this.#times.slice(first);
  }

  #spans(): Span[] {
    return this.#times.map(({ sinceMs }, i) => ({
      fromMs: i === 0 ? 0 : sinceMs,
      beforeMs: this.#times[i + 1]?.sinceMs ?? Number.MAX_SAFE_INTEGER,
    }));
  }
}
