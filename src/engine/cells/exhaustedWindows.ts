/**
 * Caches the rate limit windows that Redis has reported as exhausted. Until such a window ends, this process
 * itself refuses the partner's requests, as Redis would do, and saves the call. An exhausted window accepts
 * no request before its end unless the limit is changed.
 */
import type { Partner } from '../../domain/game.js';
import { KIND } from './batch.js';

const WINDOW_MS = 60_000;

interface Exhausted {
  readonly limit: number;
  /** Earliest end of the rate limit window, on the scale of performance.now(). */
  readonly endsAt: number;
  /** Earliest end of the window by the clock of Redis, in ms since the Unix epoch. */
  readonly endMs: number;
}

export class ExhaustedWindows {
  /**
   * Exhausted windows by partner, one map for spins and one for API requests. Neither map has more entries
   * than there are partners.
   */
  readonly #spins = new Map<number, Exhausted>();
  readonly #api = new Map<number, Exhausted>();

  /**
   * @param kind a value of {@link KIND}
   * @param timeMs time of the refusal by the clock of Redis, in ms
   * @param sentAt time of the call, on the scale of performance.now(). From then on, the window lasts at
   * least for the time that it had left at the refusal.
   */
  learn(partner: Partner, kind: number, timeMs: number, sentAt: number): void {
    const leftMs = WINDOW_MS - (timeMs % WINDOW_MS);
    const exhausted = { limit: limitOf(partner, kind), endsAt: sentAt + leftMs, endMs: timeMs + leftMs };
    this.#of(kind).set(partner.partnerId, exhausted);
  }

  /**
   * Returns the current time by the clock of Redis, in ms since the Unix epoch, if the request's window is
   * exhausted; otherwise undefined.
   */
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
