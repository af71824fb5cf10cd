/**
 * Models settings that the operator changes, and the windows of rate limits. Determines which values a front
 * end may use at a given time.
 */

import { IS_WHOLE } from '../support/root.js';

/**
 * Time in ms after which a change must be in force on every front end. The contract promises one second after
 * the response, and `npm run test:time` enforces it. In other executions a process may be paused for longer
 * on a busy machine.
 */
const IN_FORCE_MS = IS_WHOLE ? 1000 : 2500;

export class Violation extends Error {}

/**
 * A value that the operator changes. Front ends may use the new value as soon as the response to the change
 * arrives. A front end must not use an older value one second later, or after it has used the new one.
 */
export class Changing<T> {
  readonly #versions: { readonly value: T; readonly changedAt: number }[];
  /** Index of the oldest version of the value that a front end may still use, by front end. */
  readonly #shown = new Map<number, number>();

  constructor(first: T) {
    this.#versions = [{ value: first, changedAt: Number.NEGATIVE_INFINITY }];
  }

  get newest(): T {
    return this.#versions.at(-1)!.value;
  }

  /** @param changedAt time of the response to the change, by performance.now() */
  change(value: T, changedAt: number): void {
    this.#versions.push({ value, changedAt });
  }

  /** Returns the values that a front end may use for a request sent at a given time, oldest first. */
  possible(front: number, sentAt: number): T[] {
    return this.#versions.slice(this.#oldest(front, sentAt)).map(({ value }) => value);
  }

  /** Returns all values that may have been in force at or after a given time on any front end. */
  since(time: number): T[] {
    return this.#versions.slice(this.#inForce(time)).map(({ value }) => value);
  }

  /**
   * Records that only the given values explain a front end's response to a request that was sent at the given
   * time.
   */
  showed(front: number, sentAt: number, values: readonly T[]): void {
    const from = this.#oldest(front, sentAt);
    const oldest = this.#versions.findIndex(({ value }, place) => place >= from && values.includes(value));
    if (oldest > from) this.#shown.set(front, oldest);
  }

  #oldest(front: number, sentAt: number): number {
    return Math.max(this.#inForce(sentAt), this.#shown.get(front) ?? 0);
  }

  #inForce(time: number): number {
    return this.#versions.findLastIndex(({ changedAt }) => changedAt + IN_FORCE_MS <= time);
  }
}

/** A rate limit window as a response states it. */
export interface WindowSeen {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
  readonly isLimited: boolean;
}

/** Kinds of windows. Spins are counted in one window, and all other requests in another. */
export type WindowKind = 'spin' | 'API';

/** A partner's fixed windows of one kind. Responses contain the end of a window (X-RateLimit-Reset). */
export class Windows {
  #reset = 0;
  #used = 0;
  /** Number of requests with an unknown result. Each of them may be counted once, at any time. */
  #strays = 0;

  constructor(readonly kind: WindowKind) {}

  addStray(): void {
    this.#strays++;
  }

  /**
   * Accepts the responses to requests that were in progress together, in any order.
   * @throws Violation if no order of counting explains the responses
   */
  take(seen: readonly WindowSeen[]): void {
    for (const reset of [...new Set(seen.map((each) => each.reset))].sort((a, b) => a - b)) {
      this.#takeOne(
        reset,
        seen.filter((each) => each.reset === reset),
      );
    }
  }

  #takeOne(reset: number, seen: readonly WindowSeen[]): void {
    if (reset < this.#reset) this.#fail(`goes back from ${this.#reset} to ${reset}`);
    if (reset > this.#reset) this.#used = 0;
    this.#reset = reset;
    const counts = seen.filter((each) => !each.isLimited).map(({ limit, remaining }) => limit - remaining);
    counts.sort((a, b) => a - b);
    let used = this.#used;
    for (const count of counts) {
      if (count <= used) {
        this.#fail(
          `let a request through as number ${count}, when ${used} had been counted (${this.#used} before)`,
        );
      }
      used = count;
    }
    this.#explainGap(used - this.#used - counts.length, `counted up to ${used}`);
    for (const { limit } of seen.filter((each) => each.isLimited)) {
      if (limit <= used) continue;
      this.#explainGap(limit - used, `refused a request at a limit of ${limit} when ${used} were counted`);
      used = limit;
    }
    this.#used = used;
  }

  /**
   * The window counts more requests than were answered. The other requests must be among those with an
   * unknown result.
   */
  #explainGap(gap: number, what: string): void {
    this.#strays -= gap;
    if (this.#strays < 0) this.#fail(`${what}: ${-this.#strays} more than there were requests`);
  }

  #fail(what: string): never {
    throw new Violation(`The ${this.kind} window that ends at ${this.#reset} ${what}`);
  }
}
