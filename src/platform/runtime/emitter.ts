/** A small typed event emitter. It calls the subscribers synchronously in the order of their subscription. */

export class Emitter<Events> {
  readonly #handlers = new Map<keyof Events, ((data: never) => void)[]>();

  /** @param onHandlerError called when a handler throws; the other handlers are still called */
  constructor(private readonly onHandlerError: (error: unknown, event: keyof Events) => void) {}

  on<E extends keyof Events>(event: E, handler: (data: Events[E]) => void): void {
    const handlers = this.#handlers.get(event);
    if (handlers === undefined) this.#handlers.set(event, [handler]);
    else handlers.push(handler);
  }

  /** Emits an event. It never throws. */
  emit<E extends keyof Events>(event: E, data: Events[E]): void {
    for (const handler of this.#handlers.get(event) ?? []) {
      try {
        (handler as (data: Events[E]) => void)(data);
      } catch (error) {
        this.onHandlerError(error, event);
      }
    }
  }
}
