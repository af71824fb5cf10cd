/** Limits the time to wait for a promise, by a duration or by an abort signal. */

export class TimeoutError extends Error {
  override readonly name = 'TimeoutError';
}

/**
 * Settles as the promise does, unless the limit is reached first. Work that exceeds the limit continues, but
 * its result is ignored.
 * @param limit milliseconds, or a signal
 * @throws TimeoutError after the milliseconds; the signal's reason once the signal is aborted
 */
export function withTimeout<T>(promise: Promise<T>, limit: number | AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (typeof limit === 'number') {
      const timer = setTimeout(() => reject(new TimeoutError(`Not finished within ${limit} ms`)), limit);
      promise.then(resolve, reject).finally(() => clearTimeout(timer));
      return;
    }
    const abort = (): void => reject(limit.reason);
    if (limit.aborted) abort();
    limit.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => limit.removeEventListener('abort', abort));
  });
}
