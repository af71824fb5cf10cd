/** What is asked of Postgres before a request's window is: bounded by that window. */
import type { Partner } from '../domain/game.js';

/** Looks things up for partners: in a minute not much more than the window lets through. */
export class LookUps {
  #minute = 0;
  readonly #partners = new Map<number, { count: number; newest: Promise<unknown> }>();

  /** Up to twice the partner's spin limit: the minute of the store's clock may begin earlier or later. Rejects beyond. */
  run<T>(
    { partnerId, spinRateLimit }: Pick<Partner, 'partnerId' | 'spinRateLimit'>,
    nowMs: number,
    look: () => Promise<T>,
  ): Promise<T> {
    const minute = Math.floor(nowMs / 60_000);
    if (minute !== this.#minute) this.#partners.clear();
    this.#minute = minute;
    const known = this.#partners.get(partnerId) ?? { count: 0, newest: Promise.resolve() };
    this.#partners.set(partnerId, known);
    // After those that came before: the window counts in the order of arrival.
    if (known.count >= 2 * spinRateLimit) {
      return known.newest.then(() => Promise.reject(new Error('More than the window lets through')));
    }
    known.count++;
    const found = look();
    known.newest = found.catch(() => {});
    return found;
  }
}
