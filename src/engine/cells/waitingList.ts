/**
 * A bounded list of commands that wait for a call. If more commands wait than fit in a call, partners take
 * turns. If the list is full, the partner with the most waiting commands loses its newest command. If there
 * is only one partner, the list has no overhead.
 */
export class WaitingList<Command> {
  readonly #max: number;
  readonly #partnerOf: (command: Command) => number;
  /**
   * Commands by partner, in order of arrival for each partner. The partner that was served last is the last
   * in the map.
   */
  #queues = new Map<number, Command[]>();
  #length = 0;

  constructor(max: number, partnerOf: (command: Command) => number) {
    this.#max = max;
    this.#partnerOf = partnerOf;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * @returns the command that is left out because the list is full: the given one, or the newest of the
   * partner with the most waiting commands
   */
  add(command: Command): Command | undefined {
    const partnerId = this.#partnerOf(command);
    const queue = this.#queues.get(partnerId);
    let refused: Command | undefined;
    if (this.#length >= this.#max) {
      const longest = this.#longest();
      if (longest.length <= (queue?.length ?? 0) + 1) return command;
      refused = longest.pop();
      this.#length--;
    }
    if (queue === undefined) this.#queues.set(partnerId, [command]);
    else queue.push(command);
    this.#length++;
    return refused;
  }

  /**
   * Puts back commands that were taken but not executed, ahead of the other commands of their partners,
   * because they arrived earlier.
   */
  putBack(commands: readonly Command[]): void {
    const queues = new Map<number, Command[]>();
    for (const command of commands) {
      const partnerId = this.#partnerOf(command);
      const queue = queues.get(partnerId);
      if (queue === undefined) queues.set(partnerId, [command]);
      else queue.push(command);
    }
    for (const [partnerId, queue] of queues) {
      const behind = this.#queues.get(partnerId);
      this.#queues.set(partnerId, behind === undefined ? queue : [...queue, ...behind]);
    }
    this.#length += commands.length;
  }

  /** Removes and returns the next commands. Commands of one partner keep their order. */
  take(max: number): Command[] {
    if (this.#length > max) return this.#takeInTurn(max);
    const queues = [...this.#queues.values()];
    this.#queues = new Map();
    this.#length = 0;
    return queues.length === 1 ? queues[0]! : queues.flat();
  }

  /** Takes the same number of commands from each partner, as far as each has that many. */
  #takeInTurn(max: number): Command[] {
    const counts = new Map<number, number>();
    let left = max;
    let open = [...this.#queues].map(([partnerId, { length }]) => ({ partnerId, length }));
    while (left > 0) {
      const share = Math.max(1, Math.floor(left / open.length));
      for (const { partnerId, length } of open) {
        const taken = counts.get(partnerId) ?? 0;
        const more = Math.min(share, length - taken, left);
        counts.set(partnerId, taken + more);
        left -= more;
      }
      open = open.filter(({ partnerId, length }) => length > counts.get(partnerId)!);
    }
    const commands: Command[] = [];
    // A partner that got one command more than the other partners is behind them in the next call.
    for (const [partnerId, count] of [...counts].sort(([, a], [, b]) => a - b)) {
      if (count === 0) continue;
      const queue = this.#queues.get(partnerId)!;
      this.#queues.delete(partnerId);
      commands.push(...queue.slice(0, count));
      if (count < queue.length) this.#queues.set(partnerId, queue.slice(count));
    }
    this.#length -= max;
    return commands;
  }

  #longest(): Command[] {
    let longest: Command[] = [];
    for (const queue of this.#queues.values()) if (queue.length > longest.length) longest = queue;
    return longest;
  }
}
