/**
 * The queues of one operation whose cells are on one node. They are sent together: while a call of any of them is on its way,
 * the next ones wait until enough has gathered in all of them, so that many cells make no smaller batches than one. A node
 * answers the calls of a connection in their order: whoever waits for another cell's call waits for little more than its own.
 */
export interface GroupedQueue {
  /** Sends what waits, as far as slots are free. @param isMuch enough waits in all queues: little of this one goes, too */
  send(isMuch: boolean): void;
}

export class QueueGroup {
  readonly #overlapMin: number;
  readonly #onReady: (group: QueueGroup) => void;
  readonly #queues: GroupedQueue[] = [];
  #isScheduled = false;
  /** Commands that wait, of all queues. */
  waiting = 0;
  /** Calls that are on their way for the first time. One that is repeated holds up nobody else. */
  firstTries = 0;

  /**
   * @param overlapMin while a call is under way, others leave once so many commands wait
   * @param onReady told when there is something to send; it calls `flush` soon
   */
  constructor(overlapMin: number, onReady: (group: QueueGroup) => void) {
    this.#overlapMin = overlapMin;
    this.#onReady = onReady;
  }

  add(queue: GroupedQueue): void {
    this.#queues.push(queue);
  }

  /** Something came, or a call has ended. */
  schedule(): void {
    const isDue = this.waiting >= (this.firstTries === 0 ? 1 : this.#overlapMin);
    if (this.#isScheduled || !isDue) return;
    this.#isScheduled = true;
    this.#onReady(this);
  }

  /** The calls are written before this returns. */
  flush(): void {
    this.#isScheduled = false;
    const isMuch = this.waiting >= this.#overlapMin;
    for (const queue of this.#queues) queue.send(isMuch);
  }
}
