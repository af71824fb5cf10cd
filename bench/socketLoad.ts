/**
 * The load generator that costs least: keep-alive connections on bare sockets. It shares the machine with what it measures, so
 * a request is a patched template in a buffer of its connection's own, an answer is read into another, and neither
 * makes an object. What is left is the kernel's part, a read and a write for each request.
 *
 * A period ends without a cut: each connection gets its last answer, so that the answers that were counted are exactly
 * the spins that the server dealt.
 */
import { connect, type Socket } from 'node:net';
import { AnswerReader } from './answerReader.js';
import { latenciesOf, newHistogram } from './histogram.js';
import { type LoadOrder, TIMEOUT_SECONDS, takeOrders } from './load.js';
import type { LoadResult } from './measurement.js';
import { Schedule } from './schedule.js';
import { SecondMeter } from './secondMeter.js';
import { SpinRequests } from './spinRequests.js';

const READ_BYTES = 16_384;
const CHECK_MS = 500;
/** Connections that fail before the generator gives up: a server that is gone is not asked for ever. */
const ERRORS_MAX = 1000;

function run(order: LoadOrder): Promise<LoadResult> {
  return new Promise((resolve) => new SocketLoad(order, resolve));
}

class SocketLoad {
  readonly requests: SpinRequests;
  readonly address: { readonly host: string; readonly port: number };
  readonly schedule: Schedule | undefined;
  readonly #latencyMicros = newHistogram();
  /** Of an open loop. */
  readonly #seconds: SecondMeter | undefined;
  readonly #statuses = new Map<number, number>();
  readonly #connections = new Set<Connection>();
  readonly #startedMs: number;
  readonly #check: NodeJS.Timeout;
  readonly #resolve: (result: LoadResult) => void;
  #endedMs: number;
  #errors = 0;
  /** No connection sends another request. */
  #isOver = false;

  constructor(
    { base, connections, rate, seconds, ...order }: LoadOrder,
    resolve: (result: LoadResult) => void,
  ) {
    const { hostname, port } = new URL(base);
    this.address = { host: hostname, port: Number(port) };
    this.requests = new SpinRequests({ base, connections, rate, seconds, ...order });
    this.#resolve = resolve;
    this.schedule = rate === undefined ? undefined : new Schedule(rate, seconds);
    this.#seconds = rate === undefined ? undefined : new SecondMeter();
    this.#startedMs = this.schedule?.startMs ?? performance.now();
    this.#endedMs = this.#startedMs;
    this.#check = setInterval(() => this.#failLate(), CHECK_MS);
    if (this.schedule === undefined)
      setTimeout(() => {
        this.#isOver = true;
      }, seconds * 1000);
    for (let made = 0; made < connections; made++) this.#connections.add(new Connection(this));
  }

  /** The answer to a request that was sent, or due, at `sinceMs`. */
  answered(connection: Connection, status: number, sinceMs: number): void {
    const nowMs = performance.now();
    this.#endedMs = nowMs;
    const micros = Math.round((nowMs - sinceMs) * 1000);
    this.#latencyMicros.recordValue(micros);
    this.#seconds?.record(micros);
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    this.next(connection, nowMs);
  }

  /** Has a connection without a request send one, now or when one is due. */
  next(connection: Connection, nowMs: number): void {
    if (this.#isOver) connection.finish();
    else if (this.schedule === undefined) connection.send(nowMs);
    else this.schedule.isFree(connection);
  }

  failed(connection: Connection): void {
    this.#errors++;
    if (this.#errors >= ERRORS_MAX) this.#isOver = true;
    this.ended(connection);
    if (!this.#isOver) this.#connections.add(new Connection(this));
  }

  /** A request was due on a connection that the server had closed. */
  lostRequest(): void {
    this.#errors++;
  }

  ended(connection: Connection): void {
    this.#connections.delete(connection);
    if (this.#connections.size > 0) return;
    this.#isOver = true;
    clearInterval(this.#check);
    const spins = this.#statuses.get(200) ?? 0;
    const answers = [...this.#statuses.values()].reduce((sum, count) => sum + count, 0);
    this.#resolve({
      spins,
      non2xx: answers - spins,
      errors: this.#errors,
      statuses: Object.fromEntries(this.#statuses),
      seconds: (this.#endedMs - this.#startedMs) / 1000,
      ...latenciesOf(this.#latencyMicros),
      ...(this.schedule && { lateP99Ms: this.schedule.lateMicros.getValueAtPercentile(99) / 1000 }),
      ...(this.#seconds && { bySecond: this.#seconds.end() }),
    });
  }

  #failLate(): void {
    const sentBeforeMs = performance.now() - TIMEOUT_SECONDS * 1000;
    for (const connection of this.#connections) connection.failIfSentBefore(sentBeforeMs);
  }
}

class Connection {
  readonly #load: SocketLoad;
  readonly #socket: Socket;
  readonly #request: Buffer;
  readonly #answers = new AnswerReader();
  /** When the request that is under way was sent, or was due; Infinity: there is none. */
  #sinceMs: number = Number.POSITIVE_INFINITY;
  #isEnded = false;

  constructor(load: SocketLoad) {
    this.#load = load;
    this.#request = Buffer.allocUnsafe(load.requests.length);
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    this.#socket = connect({
      ...load.address,
      noDelay: true,
      onread: {
        buffer,
        callback: (count) => {
          this.#read(buffer.subarray(0, count));
          return true;
        },
      },
    });
    this.#socket.once('connect', () => load.next(this, performance.now()));
    this.#socket.on('error', (error) => this.#fail(error));
    this.#socket.once('close', () => this.#fail(new Error('The server closed the connection')));
  }

  send(sinceMs: number): void {
    if (this.#isEnded) {
      this.#load.lostRequest();
      return;
    }
    this.#sinceMs = sinceMs;
    this.#load.requests.writeNext(this.#request);
    this.#socket.write(this.#request);
  }

  finish(): void {
    this.#isEnded = true;
    this.#socket.destroy();
    this.#load.ended(this);
  }

  failIfSentBefore(ms: number): void {
    if (this.#sinceMs < ms) this.#fail(new Error(`No answer in ${TIMEOUT_SECONDS} s`));
  }

  #read(chunk: Buffer): void {
    if (this.#isEnded) return;
    let status: number | undefined;
    try {
      status = this.#answers.read(chunk);
    } catch (error) {
      this.#fail(error as Error);
      return;
    }
    if (status === undefined) return;
    const sinceMs = this.#sinceMs;
    this.#sinceMs = Number.POSITIVE_INFINITY;
    this.#load.answered(this, status, sinceMs);
  }

  #fail(error: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    console.error(`Load: ${error.message}`);
    this.#socket.destroy();
    this.#load.failed(this);
  }
}

takeOrders(run);
