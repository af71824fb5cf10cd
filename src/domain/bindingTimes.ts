/**
 * Durations for which the request ids of spins and deals bind (a repetition gets the same response). They
 * depend on the time of binding, because IDEMPOTENCY_TTL_S may change at any start. A shorter duration
 * applies only to ids bound afterwards; a longer one also applies to ids that still bind.
 */

/**
 * Duration of binding, in seconds, for ids that are bound in an interval. The interval starts at `sinceMs`
 * and ends at the `sinceMs` of the next element.
 */
export interface BindingTime {
  readonly sinceMs: number;
  readonly seconds: number;
}

/** Time span from `fromMs` (inclusive) to `beforeMs` (exclusive). */
export interface Span {
  readonly fromMs: number;
  readonly beforeMs: number;
}

export class BindingTimes {
  /** @param times at least one, in chronological order; the first also applies to all earlier times */
  constructor(private readonly times: readonly BindingTime[]) {
    if (times.length === 0) throw new RangeError('The list of binding times of request ids is empty');
  }

  /** Duration for which ids bound now will bind, in seconds. */
  get seconds(): number {
    return this.times.at(-1)!.seconds;
  }

  /** Longest duration for which any id binds, in milliseconds. */
  get longestMs(): number {
    return Math.max(...this.times.map(({ seconds }) => seconds)) * 1000;
  }

  /** Returns the time at which an id that was bound at `boundMs` stops binding. */
  untilMs(boundMs: number): number {
    const place = Math.max(
      0,
      this.times.findLastIndex(({ sinceMs }) => sinceMs <= boundMs),
    );
    let until = boundMs + this.times[place]!.seconds * 1000;
    for (const { sinceMs, seconds } of this.times.slice(place + 1)) {
      if (sinceMs >= until) break;
      until = Math.max(until, boundMs + seconds * 1000);
    }
    return until;
  }

  /** Returns the time from which none of the ids that were bound in the span binds any more. */
  untilMsOf({ fromMs, beforeMs }: Span): number {
    let until = 0;
    for (const span of this.#spans())
      if (span.fromMs < beforeMs && span.beforeMs > fromMs)
        until = Math.max(until, this.untilMs(Math.min(span.beforeMs, beforeMs) - 1));
    return until;
  }

  /** Returns the spans in which ids that still bind at `nowMs` were bound, in order. */
  boundAt(nowMs: number): Span[] {
    return this.#spans().flatMap(({ fromMs, beforeMs }) => {
      // Among ids with the same duration, an earlier one never binds longer than a later one, so a binary
      // search works.
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

  /** Returns the earliest time T such that all ids bound since T still bind at `nowMs`. */
  allBoundFromMs(nowMs: number): number {
    const spans = this.boundAt(nowMs);
    let { fromMs } = spans.at(-1)!;
    for (const span of spans.toReversed()) if (span.beforeMs === fromMs) fromMs = span.fromMs;
    return fromMs;
  }

  /** Returns the binding times that still matter to a cell whose clock is at `nowMs`. */
  since(nowMs: number): readonly BindingTime[] {
    const first = this.times.findIndex((_, i) => {
      const next = this.times[i + 1];
      return next === undefined || next.sinceMs + this.longestMs > nowMs;
    });
    return this.times.slice(first);
  }

  #spans(): Span[] {
    return this.times.map(({ sinceMs }, i) => ({
      fromMs: i === 0 ? 0 : sinceMs,
      beforeMs: this.times[i + 1]?.sinceMs ?? Number.MAX_SAFE_INTEGER,
    }));
  }
}
