/** Waiting: for conditions, and for answers. */
import { Wire, type WireAnswer } from '../support/load.js';

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for a condition; the deadline is there to end what would never come. @throws Error after it. */
export async function until(
  condition: () => Promise<boolean> | boolean,
  what: string,
  timeoutMs: number,
  everyMs = 20,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not within ${timeoutMs / 1000} s: ${what}`);
    await pause(everyMs);
  }
}

/** Asks on a connection of its own; undefined where no answer came in time, or the connection ended. */
export async function askOnce(
  port: number,
  bytes: string | Uint8Array,
  timeoutMs: number,
): Promise<WireAnswer | undefined> {
  let wire: Wire | undefined;
  const timer = setTimeout(() => wire?.close(), timeoutMs);
  try {
    wire = await Wire.open(port);
    return await wire.ask(bytes);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
    wire?.close();
  }
}
