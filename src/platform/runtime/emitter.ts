/** A small typed emitter: says what happened to whoever subscribed, at once and in the order of subscription. */

export class Emitter<Events> {
  readonly #handlers = new Map<keyof Events, ((data: never) => void)[]>();
  readonly #onHandlerError: (error: unknown, event: keyof Events) => void;

  /** @param onHandlerError called with a handler that threw; the others and the emitter go on. */
  constructor(onHandlerError: (error: unknown, event: keyof Events) => void) {
    this.#onHandlerError = onHandlerError;
  }

  on<E extends keyof Events>(event: E, handler: (data: Events[E]) => void): void {
    const handlers = this.#handlers.get(event);
    if (handlers === undefined) this.#handlers.set(event, [handler]);
    else handlers.push(handler);
  }

  /** Never throws. */
  emit<E extends keyof Events>(event: E, data: Events[E]): void {
    for (const handler of this.#handlers.get(event) ?? []) {
      try {
        (handler as (data: Events[E]) => void)(data);
      } catch (error) {
        this.#onHandlerError(error, event);
      }
    }
  }
}
