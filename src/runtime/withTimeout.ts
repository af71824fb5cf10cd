/** A promise with a deadline. */

export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/**
 * Settles as the promise does. Work that is late goes on, and what becomes of it is ignored.
 * @throws TimeoutError after the milliseconds.
 */
export function withTimeout<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new TimeoutError(`Not done within ${timeoutMs} ms`)), timeoutMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
