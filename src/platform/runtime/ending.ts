/**
 * Represents the end of a component as a promise, so that waiting code can stop as soon as the component
 * ends.
 */

/**
 * Returns a promise that rejects when `end` is called. The rejection is not reported as unhandled if nobody
 * waits for it.
 */
export function ending(what: string): { readonly promise: Promise<never>; end(): void } {
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<never>((_, refuse) => {
    reject = refuse;
  });
  promise.catch(() => {});
  return { promise, end: () => reject(new Error(`The ${what} is stopped`)) };
}
