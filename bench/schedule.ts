/**
 * Determines when the requests of an open loop are sent: at fixed intervals, regardless of earlier requests.
 * Each request is sent on a free connection, or waits for one. Its latency counts from the time at which it
 * was due.
 */
import { Worker } from 'node:worker_threads';
import { build, type Histogram } from 'hdr-histogram-js';

const MAX_MICROS = 60_000_000;
/** Latencies in µs. Autocannon's own histogram has whole milliseconds, which is too coarse. */
export const newHistogram = (): Histogram =>
  build({ highestTrackableValue: MAX_MICROS, numberOfSignificantValueDigits: 3 });

/** A connection without a request in progress. */
export interface FreeConnection {
  /** @param dueMs time at which the request was due, by `performance.now()` */
  send(dueMs: number): void;
  /** Ends the client of this connection, because no further request is due. */
  finish(): void;
}

/** Interval in ms at which a separate thread wakes this thread, because timers may be 2 ms late. */
const TICK_MS = 0.2;
/** Delay of the first request in ms. All connections are established during this delay. */
const CONNECTED_MS = 200;
const TICKER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const [ASLEEP, WOKEN] = [0, 1];
  for (;;) {
    Atomics.wait(workerData.state, 1, 0, workerData.tickMs);
    // Not woken again before it has been up.
    if (Atomics.compareExchange(workerData.state, 0, ASLEEP, WOKEN) === ASLEEP) parentPort.postMessage(0);
  }`;

export class Schedule {
  readonly #intervalMs: number;
  readonly #count: number;
  readonly #free: FreeConnection[] = [];
  readonly startMs = performance.now() + CONNECTED_MS;
  readonly #state = new Int32Array(new SharedArrayBuffer(8));
  readonly #ticker: Worker;
  #sent = 0;
  /** Delays of requests that were due and had a free connection: the generator's own part. */
  readonly lateMicros = newHistogram();

  /** @param rate requests per second */
  constructor(rate: number, seconds: number) {
    this.#intervalMs = 1000 / rate;
    this.#count = Math.floor(rate * seconds);
    this.#ticker = new Worker(TICKER, { eval: true, workerData: { state: this.#state, tickMs: TICK_MS } });
    this.#ticker.on('message', () => {
      Atomics.store(this.#state, 0, 0);
      this.#sendWhatIsDue(true);
      if (this.#sent < this.#count) return;
      void this.#ticker.terminate();
      for (const connection of this.#free.splice(0)) connection.finish();
    });
  }

  /** The connection sends the next request when the request is due, or is told to finish. */
  isFree(connection: FreeConnection): void {
    if (this.#sent >= this.#count) {
      connection.finish();
      return;
    }
    const wasFree = this.#free.length > 0;
    this.#free.push(connection);
    this.#sendWhatIsDue(wasFree);
  }

  #sendWhatIsDue(wasFree: boolean): void {
    const nowMs = performance.now();
    while (this.#free.length > 0 && this.#sent < this.#count) {
      const dueMs = this.startMs + this.#sent * this.#intervalMs;
      if (dueMs > nowMs) return;
      this.#sent++;
      if (wasFree) this.lateMicros.recordValue(Math.round((nowMs - dueMs) * 1000));
      this.#free.shift()!.send(dueMs);
    }
  }
}
