/**
 * Coordinates events that affect all sequences, such as a restart of the service. An event happens while
 * every sequence is between two commands.
 */
import type { Drawn } from './command.js';

export interface SharedEvent {
  readonly drawn: Drawn;
  /** @param inside what each sequence does during the event; the event waits for it */
  happen(inside: () => Promise<unknown>): Promise<void>;
}

export class Shared {
  #commands = 0;
  #happened = 0;
  /**
   * Number of sequences in progress (`playing`) and callbacks of those that wait for the event (`waiting`).
   */
  #playing = 0;
  readonly #waiting: { readonly during: () => Promise<unknown>; go(error?: unknown): void }[] = [];
  readonly #outside: (() => void)[] = [];
  #isDue = false;

  /**
   * @param every number of commands, counted over all sequences, between two events. The kinds of events are
   * used in turn.
   */
  constructor(
    private readonly every: number,
    private readonly events: readonly SharedEvent[],
  ) {}

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
   * @param during what the sequence does while an event happens
   * @returns the event that happened during the call, or undefined
   */
  async pass(during: (event: Drawn) => Promise<unknown>): Promise<Drawn | undefined> {
    if (!this.#isDue && ++this.#commands < this.every) return undefined;
    this.#isDue = true;
    const { drawn } = this.#next;
    await new Promise<void>((resolve, reject) => {
      const go = (error?: unknown): void => (error === undefined ? resolve() : reject(error));
      this.#waiting.push({ during: () => during(drawn), go });
      this.#happenOnceAllWait();
    });
    return drawn;
  }

  get #next() {
    return this.events[this.#happened % this.events.length]!;
  }

  #happenOnceAllWait(): void {
    if (!this.#isDue || this.#waiting.length === 0 || this.#waiting.length < this.#playing) return;
    const go = (error?: unknown): void => {
      this.#happened++;
      this.#commands = 0;
      this.#isDue = false;
      for (const each of this.#waiting.splice(0)) each.go(error);
      for (const resolve of this.#outside.splice(0)) resolve();
    };
    const inside = () => Promise.all(this.#waiting.map(({ during }) => during()));
    this.#next.happen(inside).then(
      () => go(),
      (error: unknown) => go(error ?? new Error('the event failed')),
    );
  }
}
