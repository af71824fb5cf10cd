/** What happens to all sequences at once: between two commands of each of them the service is started anew, or so. */
import type { Drawn } from './command.js';

export class Shared {
  readonly #events: readonly { readonly drawn: Drawn; happen(): Promise<void> }[];
  readonly #every: number;
  /** Commands since the last event. */
  #commands = 0;
  #happened = 0;
  /** Sequences that are under way, and those of them that wait for the event. */
  #playing = 0;
  readonly #waiting: ((error?: unknown) => void)[] = [];
  readonly #outside: (() => void)[] = [];
  #isDue = false;

  /** @param every commands of all sequences together between two events, which happen in turn. */
  constructor(every: number, events: readonly { readonly drawn: Drawn; happen(): Promise<void> }[]) {
    this.#every = every;
    this.#events = events;
  }

  /** A sequence begins; it waits while an event is due. */
  async enter(): Promise<void> {
    while (this.#isDue) await new Promise<void>((resolve) => this.#outside.push(resolve));
    this.#playing++;
  }

  /** A sequence that has entered ends. */
  leave(): void {
    this.#playing--;
    this.#happenOnceAllWait();
  }

  /** Between two commands of a sequence. @returns what happened meanwhile, if anything did */
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
