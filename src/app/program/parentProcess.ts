/** The side of a front end in its exchange of messages with the process that has started it. */
import type { Metrics } from '../metrics/metrics.js';
import type { MetricSamples } from '../metrics/scraped.js';

/**
 * Messages of a front end. It sends its metrics each time that it is asked for them, or undefined if it can't
 * read them.
 */
export type FrontEndMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly problem: string }
  | { readonly kind: 'metrics'; readonly metrics: readonly MetricSamples[] | undefined };

/**
 * Sends a message and resolves once it is sent. A message that can't be sent is lost, because the process
 * that would receive it has ended.
 */
export const tellParent = (message: FrontEndMessage): Promise<void> =>
  new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => resolve());
    else resolve();
  });

export function answerScrapes(metrics: Metrics): void {
  process.on('message', () => {
    const samples = metrics.samples().catch(() => undefined);
    void samples.then((read) => tellParent({ kind: 'metrics', metrics: read }));
  });
}
