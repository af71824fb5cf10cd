/**
 * The windows that Redis has said are exhausted: until such a window ends, a request of the partner is refused here, as Redis
 * would refuse it, and costs it nothing. A window never becomes free before its end, unless its limit is changed.
 */
import type { Partner } from '../../domain/game.js';
import { KIND } from './batch.js';

const WINDOW_MS = 60_000;

interface Exhausted {
  readonly limit: number;
  /** When it ends at the earliest, as performance.now() counts. */
  readonly endsAt: number;
  /** The same by the store's clock, milliseconds since the epoch. */
  readonly endMs: number;
}

export class ExhaustedWindows {
  /** By partner: two for each, of spins and of API requests. At most as many as there are partners. */
  readonly #spins = new Map<number, Exhausted>();
  readonly #api = new Map<number, Exhausted>();

  /**
   * Learns that a request was refused.
   * @param kind as in {@link KIND}
   * @param timeMs the store's clock then
   * @param sentAt when the call was made, as performance.now() counts: the window has not ended before the rest of it from then
   */
  learn(partner: Partner, kind: number, timeMs: number, sentAt: number): void {
    const leftMs = WINDOW_MS - (timeMs % WINDOW_MS);
    const exhausted = { limit: limitOf(partner, kind), endsAt: sentAt + leftMs, endMs: timeMs + leftMs };
    this.#of(kind).set(partner.partnerId, exhausted);
  }

  /** The store's clock now, milliseconds since the epoch, where the request's window is exhausted; else undefined. */
  refusedAt(partner: Partner, kind: number): number | undefined {
    const windows = this.#of(kind);
    if (windows.size === 0 || kind === KIND.dealCounted) return undefined;
    const exhausted = windows.get(partner.partnerId);
    if (exhausted === undefined) return undefined;
    const leftMs = exhausted.endsAt - performance.now();
    if (leftMs > 0 && exhausted.limit === limitOf(partner, kind)) return Math.floor(exhausted.endMs - leftMs);
    windows.delete(partner.partnerId);
    return undefined;
  }

  #of(kind: number): Map<number, Exhausted> {
    return kind === KIND.countApi ? this.#api : this.#spins;
  }
}

const limitOf = ({ apiRateLimit, spinRateLimit }: Partner, kind: number): number =>
  kind === KIND.countApi ? apiRateLimit : spinRateLimit;
