/** Waits for a duration or for a condition. */
const EVERY_MS_MIN = 5;
const EVERY_MS_MAX = 100;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Waits for a condition. The condition is checked often at first and every 100 ms later, because checks take
 * processor time from other tests. The deadline only ends waits that would never end, even on a slow and busy
 * machine.
 *
 * @param what names the condition in the error
 * @throws Error after the deadline
 */
export async function until(
  condition: () => Promise<boolean> | boolean,
  what: string,
  timeoutMs = 180_000,
  everyMs?: number,
): Promise<void> {
  const started = performance.now();
  while (!(await condition())) {
    const waitedMs = performance.now() - started;
    if (waitedMs > timeoutMs) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
    await pause(everyMs ?? Math.min(Math.max(waitedMs / 20, EVERY_MS_MIN), EVERY_MS_MAX));
  }
}
