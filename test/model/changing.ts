/** What the operator changes, and the windows that requests are counted in: what a front end may know at a moment. */

import { IS_WHOLE } from '../support/root.js';

/**
 * The contract: a change is in force on every front end within a second of its answer. `npm run test:time` holds it to that;
 * beside all other tests a process may stand still for longer.
 */
const IN_FORCE_MS = IS_WHOLE ? 1000 : 2500;

export class Violation extends Error {}

/**
 * A value that the operator changes. From a change's answer on the new value may show; from a second later on, or once a
 * front end has shown it, that front end must not show an older one.
 */
export class Changing<T> {
  readonly #versions: { readonly value: T; readonly changedAt: number }[];
  /** The oldest version that a front end may still show, by front end. */
  readonly #shown = new Map<number, number>();

  constructor(first: T) {
    this.#versions = [{ value: first, changedAt: Number.NEGATIVE_INFINITY }];
  }

  get newest(): T {
    return this.#versions.at(-1)!.value;
  }

  /** @param changedAt when the change was answered, by performance.now() */
  change(value: T, changedAt: number): void {
    this.#versions.push({ value, changedAt });
  }

  /** What a front end may go by in answering a request of that time, oldest first. */
  possible(front: number, sentAt: number): T[] {
    return this.#versions.slice(this.#oldest(front, sentAt)).map(({ value }) => value);
  }

  /** All that may have held at or after a time on any front end. */
  since(time: number): T[] {
    return this.#versions.slice(this.#inForce(time)).map(({ value }) => value);
  }

  /** A front end answered a request of that time in a way that only these values explain. */
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

/** What an answer says of its window. */
export interface WindowSeen {
  readonly limit: number;
  readonly remaining: number;
  readonly reset: number;
  readonly isLimited: boolean;
}

/** Spins have a window, and all other requests have one. */
export type WindowKind = 'spin' | 'API';

/** A partner's fixed windows of one kind. Their place in time is what the answers say (X-RateLimit-Reset). */
export class Windows {
  #reset = 0;
  #used = 0;
  /** Requests whose fate is unknown: each may count once, at any time. */
  #strays = 0;

  constructor(readonly kind: WindowKind) {}

  addStray(): void {
    this.#strays++;
  }

  /**
   * Takes the answers to requests that were under way together, in any order.
   * @throws Violation where no order of counting explains them
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

  /** Strays must account for what is counted and was not seen. */
  #explainGap(gap: number, what: string): void {
    this.#strays -= gap;
    if (this.#strays < 0) this.#fail(`${what}: ${-this.#strays} more than there were requests`);
  }

  #fail(what: string): never {
    throw new Violation(`The ${this.kind} window that ends at ${this.#reset} ${what}`);
  }
}
