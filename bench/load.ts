/**
 * The load generator, a process of its own, made of autocannon's clients. It shares the machine with what it measures, so
 * it is kept cheap: a request is one string put together from parts that are made beforehand (autocannon's `setupRequest`
 * builds headers and body anew and cost more than all the rest).
 *
 * Closed loop: each connection has one spin under way, always. Open loop: spins are due at fixed intervals, whatever
 * became of those before; each goes out on a connection that is free, or waits for one, and its latency counts from when
 * it was due. That is a scheduler of ours: autocannon's own rates (`overallRate`, `connectionRate`) send each
 * connection's share of a second as fast as answers come and then pause, and correct the latencies by an interval of
 * `ceil(1 / rate)` milliseconds, which is 1 for every rate.
 *
 * A period ends without a cut: each connection gets its last answer, so that the answers that were counted are exactly
 * the spins that the server dealt.
 */

import { Worker } from 'node:worker_threads';
import autocannon from 'autocannon';
import { build } from 'hdr-histogram-js';
import type { LoadResult } from './measurement.js';
import { playerName } from './players.js';

/** A game, and the key of its partner. */
export interface Target {
  readonly apiKey: string;
  readonly gameId: number;
  readonly wagerUsd: number;
}

export interface LoadOrder {
  readonly base: string;
  readonly path: string;
  /** Each spin is of one of these, drawn at random; one that is named twice is drawn twice as often. */
  readonly targets: readonly Target[];
  readonly connections: number;
  readonly players: number;
  readonly hasRequestId: boolean;
  readonly seconds: number;
  /** Spins a second of an open loop; undefined: closed. */
  readonly rate: number | undefined;
  /** Unlike that of any other run: request ids begin with it. */
  readonly requestIdPrefix: string;
}

/** What is used of autocannon's client beyond its published type: what it sends, when, and after how many it ends. */
interface Connection {
  getRequestBuffer(): Buffer;
  /** Is called once the connection is made, and after each answer. */
  _doRequest(): void;
  responseMax?: number;
  destroy(): void;
  /** Ours: sends the next spin. */
  send(): void;
  /** Ours: when the spin that is under way was due. */
  dueMs: number;
}

const TIMEOUT_SECONDS = 10;
const SAMPLE_MS = 100;
/** Added to counters so that every id has the same length. */
const COUNTER_FROM = 100_000_000_000;

let requestCount = 0;

/** The bytes of the next spin: a random target and player, an id that was never sent. */
function requestMaker(order: LoadOrder): () => Buffer {
  const { base, path, players, hasRequestId, requestIdPrefix } = order;
  const { host } = new URL(base);
  const parts = order.targets.map(({ apiKey, gameId, wagerUsd }) => {
    const start = `{"gameId":${gameId},"playerId":"`;
    const middle = `","wagerUsd":${wagerUsd}${hasRequestId ? `,"requestId":"${requestIdPrefix}-` : ''}`;
    const end = hasRequestId ? '"}' : '}';
    const bodyBytes = `${start}${playerName(0)}${middle}${hasRequestId ? COUNTER_FROM : ''}${end}`.length;
    const head =
      `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive\r\nX-API-Key: ${apiKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n\r\n${start}`;
    return { head, middle, end };
  });
  return () => {
    const { head, middle, end } = parts[Math.floor(Math.random() * parts.length)]!;
    const player = playerName(Math.floor(Math.random() * players));
    const id = hasRequestId ? COUNTER_FROM + requestCount++ : '';
    return Buffer.from(`${head}${player}${middle}${id}${end}`, 'latin1');
  };
}

// autocannon's own histogram holds whole milliseconds, too coarse for answers within one; its clock is as good here.
const newHistogram = () => build({ highestTrackableValue: 60_000_000, numberOfSignificantValueDigits: 3 });

/** A timer of Node's takes a millisecond or two, which is more than a fast answer: a thread that sleeps for less wakes us. */
const TICK_MS = 0.2;
/** Nothing is due before all connections are there. */
const CONNECTED_MS = 200;
const TICKER = `
  const { parentPort, workerData } = require('node:worker_threads');
  const [ASLEEP, WOKEN] = [0, 1];
  for (;;) {
    Atomics.wait(workerData.state, 1, 0, workerData.tickMs);
    // Not woken again before it has been up.
    if (Atomics.compareExchange(workerData.state, 0, ASLEEP, WOKEN) === ASLEEP) parentPort.postMessage(0);
  }`;

/** Sends spins when they are due, the oldest first, as connections are free. */
class Schedule {
  readonly #intervalMs: number;
  readonly #count: number;
  readonly #free: Connection[] = [];
  readonly startMs = performance.now() + CONNECTED_MS;
  readonly #state = new Int32Array(new SharedArrayBuffer(8));
  readonly #ticker: Worker;
  #sent = 0;
  /** From when a spin was due until it was sent, of those for which a connection was free: the generator's own part. */
  readonly lateMicros = newHistogram();

  constructor(rate: number, seconds: number) {
    this.#intervalMs = 1000 / rate;
    this.#count = Math.floor(rate * seconds);
    this.#ticker = new Worker(TICKER, { eval: true, workerData: { state: this.#state, tickMs: TICK_MS } });
    this.#ticker.on('message', () => {
      Atomics.store(this.#state, 0, 0);
      this.#work(true);
      if (this.#sent < this.#count) return;
      void this.#ticker.terminate();
      for (const connection of this.#free.splice(0)) connection.destroy();
    });
  }

  /** Takes a connection over: it sends nothing by itself any more. */
  take(connection: Connection): void {
    connection.send = connection._doRequest.bind(connection);
    connection._doRequest = () => {
      if (this.#sent >= this.#count) {
        connection.destroy();
        return;
      }
      const wasFree = this.#free.length > 0;
      this.#free.push(connection);
      this.#work(wasFree);
    };
  }

  #work(wasFree: boolean): void {
    const now = performance.now();
    while (this.#free.length > 0 && this.#sent < this.#count) {
      const dueMs = this.startMs + this.#sent * this.#intervalMs;
      if (dueMs > now) return;
      this.#sent++;
      if (wasFree) this.lateMicros.recordValue(Math.round((now - dueMs) * 1000));
      const connection = this.#free.shift()!;
      connection.dueMs = dueMs;
      connection.send();
    }
  }
}

function run(order: LoadOrder): Promise<LoadResult> {
  const nextRequest = requestMaker(order);
  const connections: Connection[] = [];
  const latencyMicros = newHistogram();
  return new Promise((resolve, reject) => {
    const schedule = order.rate === undefined ? undefined : new Schedule(order.rate, order.seconds);
    const startedMs = schedule?.startMs ?? performance.now();
    let endedMs = startedMs;
    const instance = autocannon(
      {
        url: order.base + order.path,
        method: 'POST',
        connections: order.connections,
        duration: order.seconds + 2 * TIMEOUT_SECONDS,
        timeout: TIMEOUT_SECONDS,
        sampleInt: SAMPLE_MS,
        setupClient: (client) => {
          const connection = client as unknown as Connection;
          if (
            typeof connection.getRequestBuffer !== 'function' ||
            typeof connection._doRequest !== 'function'
          )
            throw new Error('Not the autocannon expected');
          connection.getRequestBuffer = nextRequest;
          schedule?.take(connection);
          connections.push(connection);
        },
      },
      (error: unknown, result: autocannon.Result) => {
        if (error) {
          reject(error);
          return;
        }
        const statuses = Object.entries(result.statusCodeStats ?? {}).map(([status, { count }]) => [
          status,
          count,
        ]);
        const percentile = (percent: number): number => latencyMicros.getValueAtPercentile(percent) / 1000;
        resolve({
          spins: result['2xx'],
          non2xx: result.non2xx,
          errors: result.errors,
          statuses: Object.fromEntries(statuses),
          seconds: (endedMs - startedMs) / 1000,
          p50Ms: percentile(50),
          p99Ms: percentile(99),
          p999Ms: percentile(99.9),
          maxMs: latencyMicros.maxValue / 1000,
          ...(schedule && { lateP99Ms: schedule.lateMicros.getValueAtPercentile(99) / 1000 }),
        });
      },
    );
    instance.on('response', (client, _status, _bytes, responseMs) => {
      endedMs = performance.now();
      const latencyMs =
        schedule === undefined ? responseMs : endedMs - (client as unknown as Connection).dueMs;
      latencyMicros.recordValue(Math.round(latencyMs * 1000));
    });
    if (schedule === undefined) {
      setTimeout(() => {
        for (const connection of connections) connection.responseMax = 1;
      }, order.seconds * 1000);
    }
  });
}

process.on('disconnect', () => process.exit());
process.on('message', (order: LoadOrder) => {
  run(order).then(
    (result) => process.send!(result),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
