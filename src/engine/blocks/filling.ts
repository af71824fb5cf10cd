/**
 * Turns of queues that are filled: a bounded number at once, in all and of one partner, so that a start with many games leaves connections
 * to the renewal of leases and to the ledger. A free turn goes to the partner with the fewest queues under way, and of its queues to the
 * one that runs dry first.
 */
import { type Queue, queueSecondsLeft } from './queue.js';

/** Queues that are filled at once; most of them wait for the public log. */
const FILLING_MAX = 64;
/** The same of one partner. */
const FILLING_PER_PARTNER_MAX = 16;

export class FillingTurns {
  /** By partner: how many of its queues are filled now. */
  readonly #filling = new Map<number, number>();
  /** By partner: queues that wait. */
  readonly #waiting = new Map<number, Set<Queue>>();
  #total = 0;

  /** Queues that are filled now. */
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

  /** The queue is given by {@link next} once it has a turn. */
  wait(queue: Queue): void {
    const waiting = this.#waiting.get(queue.partnerId);
    if (waiting === undefined) this.#waiting.set(queue.partnerId, new Set([queue]));
    else waiting.add(queue);
  }

  /** Takes the queue out that is to be filled next; undefined: none waits, or none has a turn. */
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

/** The pause before a queue is filled again whose filling failed so often in a row: twice as long each time, with a third of jitter. */
export const retryMs = (failures: number): number =>
  Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (failures - 1)) * (1 - Math.random() / 3);
