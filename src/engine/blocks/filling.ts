/**
 * Limits how many queues are filled at once, in total and for each partner. At a start with many games,
 * connections thus remain for the renewal of leases and for the ledger. A free turn goes to the partner that
 * has the fewest queues being filled. Among this partner's queues, the one that runs dry first gets the turn.
 */
import { type Queue, queueSecondsLeft } from './queue.js';

/** Maximum number of queues that are filled at once. Most of these queues only wait for the public log. */
const FILLING_MAX = 64;
const FILLING_PER_PARTNER_MAX = 16;

export class FillingTurns {
  readonly #filling = new Map<number, number>();
  readonly #waiting = new Map<number, Set<Queue>>();
  #total = 0;

  get underWay(): number {
    return this.#total;
  }

  hasTurn({ partnerId }: Pick<Queue, 'partnerId'>): boolean {
    return this.#total < FILLING_MAX && this.#of(partnerId) < FILLING_PER_PARTNER_MAX;
  }

  begin({ partnerId }: Pick<Queue, 'partnerId'>): void {
    this.#total++;
    this.#filling.set(partnerId, this.#of(partnerId) + 1);
  }

  end({ partnerId }: Pick<Queue, 'partnerId'>): void {
    this.#total--;
    const left = this.#of(partnerId) - 1;
    if (left === 0) this.#filling.delete(partnerId);
    else this.#filling.set(partnerId, left);
  }

  /** Adds a queue to those that wait. {@link next} returns it once its turn has come. */
  wait(queue: Queue): void {
    const waiting = this.#waiting.get(queue.partnerId);
    if (waiting === undefined) this.#waiting.set(queue.partnerId, new Set([queue]));
    else waiting.add(queue);
  }

  /**
   * Removes and returns the queue to fill next. Undefined if no queue waits or no waiting queue has a turn.
   */
  next(): Queue | undefined {
    let partner: number | undefined;
    for (const partnerId of this.#waiting.keys()) {
      if (!this.hasTurn({ partnerId })) continue;
      if (partner === undefined || this.#of(partnerId) < this.#of(partner)) partner = partnerId;
    }
    if (partner === undefined) return undefined;
    const waiting = this.#waiting.get(partner)!;
    let next: Queue | undefined;
    for (const queue of waiting) {
      if (next === undefined || queueSecondsLeft(queue) < queueSecondsLeft(next)) next = queue;
    }
    waiting.delete(next!);
    if (waiting.size === 0) this.#waiting.delete(partner);
    return next;
  }

  #of(partnerId: number): number {
    return this.#filling.get(partnerId) ?? 0;
  }
}

const RETRY_MS = 250;
const RETRY_MS_MAX = 8000;

/**
 * Returns the back-off before a queue is filled again, after this many failures in a row. The back-off
 * doubles with each failure and has a jitter of up to a third.
 */
export const retryMs = (failures: number): number =>
  Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (failures - 1)) * (1 - Math.random() / 3);
