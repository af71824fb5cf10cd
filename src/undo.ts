/** What a start has begun and a stop must end. */
import type { Logger } from 'pino';

/** Undone in reverse order; each step is tried even where one fails. */
export class Undo {
  readonly #steps: (() => Promise<unknown> | unknown)[] = [];
  constructor(readonly log: Logger) {}
  add(step: () => Promise<unknown> | unknown): void {
    this.#steps.push(step);
  }
  async run(): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        this.log.error({ err: error }, 'a step of the shutdown failed');
      }
    }
  }
}
