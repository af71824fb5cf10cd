/** The commands that wait for a call: first come, first served, and no more than a bound. Who goes first is decided here. */
export class WaitingList<Command> {
  #commands: Command[] = [];
  readonly #max: number;

  /** @param max commands that may wait */
  constructor(max: number) {
    this.#max = max;
  }

  get length(): number {
    return this.#commands.length;
  }

  /** @returns false where the list is full: the command is not in it. */
  add(command: Command): boolean {
    if (this.#commands.length >= this.#max) return false;
    this.#commands.push(command);
    return true;
  }

  /** Takes the next commands off the list. */
  take(max: number): Command[] {
    const all = this.#commands;
    if (all.length <= max) {
      this.#commands = [];
      return all;
    }
    this.#commands = all.slice(max);
    return all.slice(0, max);
  }
}
