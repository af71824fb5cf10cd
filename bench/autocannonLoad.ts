/**
 * Load by autocannon's clients. Requests are patched templates (spinRequests.ts): autocannon's `setupRequest` builds headers
 * and body anew and cost more than all the rest. Its own rates (`overallRate`, `connectionRate`) send each connection's share
 * of a second as fast as answers come and then pause, and correct the latencies by an interval of `ceil(1 / rate)`
 * milliseconds, which is 1 for every rate; so an open loop follows schedule.ts.
 *
 * A period ends without a cut: each connection gets its last answer, so that the answers that were counted are exactly
 * the spins that the server dealt.
 */
import autocannon from 'autocannon';
import type { LoadOrder, LoadResult } from './load.js';
import { newHistogram, Schedule } from './schedule.js';
import { SpinRequests } from './spinRequests.js';

/** What is used of autocannon's client beyond its published type: what it sends, when, and after how many it ends. */
interface Client {
  getRequestBuffer(): Buffer;
  /** Is called once the connection is made, and after each answer. */
  _doRequest(): void;
  responseMax?: number;
  destroy(): void;
  /** Ours: when the spin that is under way was due. */
  dueMs: number;
}

const SAMPLE_MS = 100;
/** A request that has no answer after this many seconds has failed. */
const TIMEOUT_SECONDS = 10;

/** Takes a client over: it sends nothing by itself any more. */
function follow(schedule: Schedule, client: Client): void {
  const send = client._doRequest.bind(client);
  const connection = {
    send: (dueMs: number) => {
      client.dueMs = dueMs;
      send();
    },
    finish: () => client.destroy(),
  };
  client._doRequest = () => schedule.isFree(connection);
}

export function loadByAutocannon(order: LoadOrder): Promise<LoadResult> {
  const requests = new SpinRequests(order);
  const nextRequest = (): Buffer => {
    const request = Buffer.allocUnsafe(requests.length);
    requests.writeNext(request);
    return request;
  };
  const clients: Client[] = [];
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
        setupClient: (published) => {
          const client = published as unknown as Client;
          if (typeof client.getRequestBuffer !== 'function' || typeof client._doRequest !== 'function')
            throw new Error('Not the autocannon expected');
          client.getRequestBuffer = nextRequest;
          if (schedule !== undefined) follow(schedule, client);
          clients.push(client);
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
          p999Ms: latencyMicros.getValueAtPercentile(99.9) / 1000,
          maxMs: latencyMicros.maxValue / 1000,
          lateP99Ms: schedule && schedule.lateMicros.getValueAtPercentile(99) / 1000,
        });
      },
    );
    instance.on('response', (client, _status, _bytes, responseMs) => {
      endedMs = performance.now();
      const latencyMs = schedule === undefined ? responseMs : endedMs - (client as unknown as Client).dueMs;
      latencyMicros.recordValue(Math.round(latencyMs * 1000));
    });
    if (schedule === undefined) {
      setTimeout(() => {
        for (const client of clients) client.responseMax = 1;
      }, order.seconds * 1000);
    }
  });
}
