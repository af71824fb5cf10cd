/**
 * Groups the queues of one operation whose cells are on the same node, and sends their commands together.
 * While a call of any queue is under way, the next calls are delayed until each of them can have enough
 * commands. Batches therefore don't get smaller when there are more cells. A node answers the calls of a
 * connection in order, so waiting for another cell's call costs little.
 */
export interface GroupedQueue {
  /**
   * Sends waiting commands while slots are free.
   * @param isMuch true if many commands wait in the group as a whole; then even a queue with few commands is
   * sent
   */
  send(isMuch: boolean): void;
}

/** Limits that decide when calls are sent, as in CellOperation. */
export interface Leaving {
  readonly batchMax: number;
  readonly slots: number;
  readonly overlapMin: number;
}

export class QueueGroup {
  readonly #leaving: Leaving;
  readonly #onReady: (group: QueueGroup, isFull: boolean) => void;
  readonly #queues: GroupedQueue[] = [];
  #isScheduled = false;
  #waiting = 0;
  #filled = 0;
  /** Number of calls under way that are first attempts. A repeated call does not delay other queues. */
  firstTries = 0;

  /**
   * @param leaving limits that decide when calls are sent: while a call is under way, further calls are sent
   * once they have `overlapMin` commands on average
   * @param onReady called when there are commands to send. The callee then calls `send` soon, or immediately
   * if a call is full, because a full call gains nothing by waiting.
   */
  constructor(leaving: Leaving, onReady: (group: QueueGroup, isFull: boolean) => void) {
    this.#leaving = leaving;
    this.#onReady = onReady;
  }

  add(queue: GroupedQueue): void {
    this.#queues.push(queue);
  }

  remove(queue: GroupedQueue): void {
    this.#queues.splice(this.#queues.indexOf(queue), 1);
  }

  get isEmpty(): boolean {
    return this.#queues.length === 0;
  }

  changed(before: number, now: number): void {
    this.#waiting += now - before;
    this.#filled += (now > 0 ? 1 : 0) - (before > 0 ? 1 : 0);
  }

  /**
   * True if the next calls would have, on average, enough commands to be sent while another call is under
   * way.
   */
  #isMuch(): boolean {
    return this.#waiting >= this.#leaving.overlapMin * Math.max(1, this.#filled);
  }

  /** True if a call can have the maximum number of commands and its queue may have a free slot. */
  #isFull(): boolean {
    const { batchMax, slots } = this.#leaving;
    return batchMax > 1 && this.#waiting >= batchMax && this.firstTries < slots && this.#isMuch();
  }

  schedule(): void {
    if (this.#isFull()) {
      this.#onReady(this, true);
      return;
    }
    const isDue = this.firstTries === 0 ? this.#waiting > 0 : this.#isMuch();
    if (this.#isScheduled || !isDue) return;
    this.#isScheduled = true;
    this.#onReady(this, false);
  }

  /** Sends the waiting commands of all queues. The calls have been written when this function returns. */
  send(): void {
    this.#isScheduled = false;
    const isMuch = this.#isMuch();
    for (const queue of this.#queues) queue.send(isMuch);
  }
}
