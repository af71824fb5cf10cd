/**
 * How long the ledger lags behind Redis, from outside of the service: its flusher announces each commit over Redis, with
 * the newest entry that is booked. The oldest entry of a flush came after the newest of the flush before it, so that one's
 * time, which is in its id, stands for it: the lag that is told is never less than the true one. Its end is the moment at
 * which the announcement has arrived here. Times are of one machine's clock.
 */
import { build } from 'hdr-histogram-js';
import { entryTimeMs } from '../src/domain/entryId.js';
import { listenBooked } from '../src/redis/announcements.js';
import { bookedChannel } from '../src/redis/keys.js';
import type { Cleanup } from '../test/support/cleanup.js';
import type { FlushLag } from './measurement.js';

export class FlushLagMeter {
  /** Newest booked entry of each cell, as its time. */
  readonly #bookedMs = new Map<number, number>();
  #lagMs = build({ highestTrackableValue: 3_600_000, numberOfSignificantValueDigits: 3 });
  #fromMs = Number.POSITIVE_INFINITY;

  static async open(redisUrl: string, cleanup: Cleanup): Promise<FlushLagMeter> {
    const meter = new FlushLagMeter();
    const listener = listenBooked(
      redisUrl,
      bookedChannel(),
      ({ cell, cursor }) => meter.#booked(cell, entryTimeMs(cursor)),
      (error) => console.error(error.message),
    );
    cleanup.add(() => listener.close());
    await listener.isOpen;
    return meter;
  }

  /** Begins anew: entries from now on count. */
  start(): void {
    this.#lagMs.reset();
    this.#fromMs = Date.now();
  }

  /** Undefined where nothing was flushed. */
  stop(): FlushLag | undefined {
    this.#fromMs = Number.POSITIVE_INFINITY;
    const lag = this.#lagMs;
    if (lag.totalCount === 0) return undefined;
    return {
      flushes: lag.totalCount,
      p50Ms: lag.getValueAtPercentile(50),
      p99Ms: lag.getValueAtPercentile(99),
      maxMs: lag.maxValue,
    };
  }

  #booked(cell: number, newestMs: number): void {
    const oldestMs = Math.max(this.#bookedMs.get(cell) ?? 0, this.#fromMs);
    this.#bookedMs.set(cell, newestMs);
    if (newestMs >= this.#fromMs) this.#lagMs.recordValue(Math.max(0, Date.now() - oldestMs));
  }
}
