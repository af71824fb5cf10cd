/**
 * Coordinates events that affect all sequences, such as a restart of the service. An event happens while
 * every sequence is between two commands.
 */
import type { Drawn } from './command.js';

export class Shared {
  readonly #events: readonly { readonly drawn: Drawn; happen(): Promise<void> }[];
  readonly #every: number;
  #commands = 0;
  #happened = 0;
  /**
   * Number of sequences in progress (`playing`) and callbacks of those that wait for the event (`waiting`).
   */
  #playing = 0;
  readonly #waiting: ((error?: unknown) => void)[] = [];
  readonly #outside: (() => void)[] = [];
  #isDue = false;

  /**
   * @param every number of commands, counted over all sequences, between two events. The kinds of events are
   * used in turn.
   */
  constructor(every: number, events: readonly { readonly drawn: Drawn; happen(): Promise<void> }[]) {
    this.#every = every;
    this.#events = events;
  }

  /** Registers a sequence. A new sequence waits while an event is due. */
  async enter(): Promise<void> {
    while (this.#isDue) await new Promise<void>((resolve) => this.#outside.push(resolve));
    this.#playing++;
  }

  /** Unregisters a sequence that has ended. */
  leave(): void {
    this.#playing--;
    this.#happenOnceAllWait();
  }

  /**
   * Called between two commands of a sequence.
   * @returns the event that happened during the call, or undefined
   */
  async pass(): Promise<Drawn | undefined> {
    if (!this.#isDue && ++this.#commands < this.#every) return undefined;
    this.#isDue = true;
    const { drawn } = this.#next;
    await new Promise<void>((resolve, reject) => {
      this.#waiting.push((error) => (error === undefined ? resolve() : reject(error)));
      this.#happenOnceAllWait();
    });
    return drawn;
  }

  get #next() {
    return this.#events[this.#happened % this.#events.length]!;
  }

  #happenOnceAllWait(): void {
    if (!this.#isDue || this.#waiting.length === 0 || this.#waiting.length < this.#playing) return;
    const go = (error?: unknown): void => {
      this.#happened++;
      this.#commands = 0;
      this.#isDue = false;
      for (const resolve of this.#waiting.splice(0)) resolve(error);
      for (const resolve of this.#outside.splice(0)) resolve();
    };
    this.#next.happen().then(
      () => go(),
      (error: unknown) => go(error ?? new Error('the event failed')),
    );
  }
}
