/**
 * The load generator, a process of its own: autocannon in a closed loop, each connection with one spin under way.
 *
 * It shares the machine with what it measures, so it is kept cheap: a request is one string put together from parts
 * that are made beforehand (autocannon's `setupRequest` builds headers and body anew and cost more than all the rest).
 * A period ends without a cut: each connection gets its last answer, so that the answers that were counted are exactly
 * the spins that the server dealt.
 */
import autocannon from 'autocannon';
import { build } from 'hdr-histogram-js';

export interface LoadOrder {
  readonly base: string;
  readonly path: string;
  readonly apiKey: string;
  readonly gameId: number;
  readonly wagerUsd: number;
  readonly connections: number;
  readonly players: number;
  readonly seconds: number;
  /** Unlike that of any other run: request ids begin with it. */
  readonly requestIdPrefix: string;
}

export interface LoadResult {
  /** Answers with a 2xx status: spins that were dealt. */
  readonly spins: number;
  readonly non2xx: number;
  /** Connections that failed, and requests that were given up. */
  readonly errors: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** From the first request to the last answer. */
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** What is used of autocannon's client beyond its published type: what it sends, and after how many it ends. */
interface Connection {
  getRequestBuffer(): Buffer;
  responseMax?: number;
}

const TIMEOUT_SECONDS = 10;
const SAMPLE_MS = 100;
/** Added to the counter so that every id has the same length. */
const COUNTER_FROM = 100_000_000_000;

let requestCount = 0;

/** The bytes of the next spin: a random player, an id that was never sent. */
function requestMaker(order: LoadOrder): () => Buffer {
  const { base, path, apiKey, gameId, wagerUsd, players, requestIdPrefix } = order;
  const playerIds = Array.from({ length: players }, (_, i) => `player-${String(i).padStart(6, '0')}`);
  const start = `{"gameId":${gameId},"playerId":"`;
  const middle = `","wagerUsd":${wagerUsd},"requestId":"${requestIdPrefix}-`;
  const bodyBytes = `${start}${playerIds[0]}${middle}${COUNTER_FROM}"}`.length;
  const head =
    `POST ${path} HTTP/1.1\r\nHost: ${new URL(base).host}\r\nConnection: keep-alive\r\nX-API-Key: ${apiKey}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${bodyBytes}\r\n\r\n${start}`;
  return () => {
    const player = playerIds[Math.floor(Math.random() * players)]!;
    return Buffer.from(`${head}${player}${middle}${COUNTER_FROM + requestCount++}"}`, 'latin1');
  };
}

function run(order: LoadOrder): Promise<LoadResult> {
  const nextRequest = requestMaker(order);
  const connections: Connection[] = [];
  // autocannon's own histogram holds whole milliseconds, too coarse for answers within one; its clock is as good here.
  const latencyMicros = build({ highestTrackableValue: 60_000_000, numberOfSignificantValueDigits: 3 });
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
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
          if (typeof connection.getRequestBuffer !== 'function')
            throw new Error('Not the autocannon expected');
          connection.getRequestBuffer = nextRequest;
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
        resolve({
          spins: result['2xx'],
          non2xx: result.non2xx,
          errors: result.errors,
          statuses: Object.fromEntries(statuses),
          seconds: (endedMs - startedMs) / 1000,
          p50Ms: latencyMicros.getValueAtPercentile(50) / 1000,
          p99Ms: latencyMicros.getValueAtPercentile(99) / 1000,
          maxMs: latencyMicros.maxValue / 1000,
        });
      },
    );
    instance.on('response', (_client, _status, _bytes, responseMs) => {
      endedMs = performance.now();
      latencyMicros.recordValue(Math.round(responseMs * 1000));
    });
    setTimeout(() => {
      for (const connection of connections) connection.responseMax = 1;
    }, order.seconds * 1000);
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
