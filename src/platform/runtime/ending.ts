/** The end of a part, as a promise that what waits can race with. */

/** A promise that rejects once it is told to, and fails nobody who does not wait for it. */
export function ending(what: string): { readonly promise: Promise<never>; end(): void } {
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<never>((_, refuse) => {
    reject = refuse;
  });
  promise.catch(() => {});
  return { promise, end: () => reject(new Error(`The ${what} is stopped`)) };
}
