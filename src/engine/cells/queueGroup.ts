/**
 * The queues of one operation whose cells are on one node. They are sent together: while a call of any of them is on its way,
 * the next ones wait until enough has gathered for a call of each, so that many cells make no smaller batches than one. A node
 * answers the calls of a connection in their order: whoever waits for another cell's call waits for little more than its own.
 */
export interface GroupedQueue {
  /** Sends what waits, as far as slots are free. @param isMuch enough waits in all queues: little of this one goes, too */
  send(isMuch: boolean): void;
}

/** How the calls of the queues leave: see CellOperation. */
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
  /** Commands that wait, of all queues. */
  #waiting = 0;
  /** Queues in which any wait. */
  #filled = 0;
  /** Calls that are on their way for the first time. One that is repeated holds up nobody else. */
  firstTries = 0;

  /**
   * @param leaving while a call is under way, others leave once they have `overlapMin` commands on average
   * @param onReady called when there is something to send; it calls `flush` soon, or at once where a call is full: then nothing
   *   that comes could go along
   */
  constructor(leaving: Leaving, onReady: (group: QueueGroup, isFull: boolean) => void) {
    this.#leaving = leaving;
    this.#onReady = onReady;
  }

  add(queue: GroupedQueue): void {
    this.#queues.push(queue);
  }

  /** The queue's cell has come to another node. */
  remove(queue: GroupedQueue): void {
    this.#queues.splice(this.#queues.indexOf(queue), 1);
  }

  get isEmpty(): boolean {
    return this.#queues.length === 0;
  }

  /** Takes note that in a queue other commands wait than before. */
  changed(before: number, now: number): void {
    this.#waiting += now - before;
    this.#filled += (now > 0 ? 1 : 0) - (before > 0 ? 1 : 0);
  }

  /** The calls have as many commands as one that leaves beside others has at the least. */
  #isMuch(): boolean {
    return this.#waiting >= this.#leaving.overlapMin * Math.max(1, this.#filled);
  }

  /** A call has as many commands as it can, and there may be a slot for it. */
  #isFull(): boolean {
    const { batchMax, slots } = this.#leaving;
    return batchMax > 1 && this.#waiting >= batchMax && this.firstTries < slots && this.#isMuch();
  }

  /** Something came, or a call has ended. */
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

  /** The calls are written before this returns. */
  send(): void {
    this.#isScheduled = false;
    const isMuch = this.#isMuch();
    for (const queue of this.#queues) queue.send(isMuch);
  }
}
