/**
 * Generates load by autocannon's clients. Requests are patched templates (spinRequests.ts), because
 * autocannon's `setupRequest` builds headers and body anew and would cost more than all other work.
 * Autocannon's own rates (`overallRate`, `connectionRate`) send each connection's share of a second as fast
 * as answers arrive and then pause. They correct latencies by an interval of `ceil(1 / rate)` ms, which is 1
 * for every rate. An open loop therefore uses schedule.ts.
 * Each connection gets its last answer, so that the counted answers are exactly the dealt spins.
 */
import autocannon from 'autocannon';
import type { Histogram } from 'hdr-histogram-js';
import type { Connection, Kind, Latencies, LoadOrder, LoadResult } from './load.js';
import { MixedRequests } from './mixedRequests.js';
import { newHistogram, Schedule } from './schedule.js';
import { SpinRequests } from './spinRequests.js';

/** Members of autocannon's client that its published type lacks. */
interface Client {
  getRequestBuffer(): Buffer;
  /** Autocannon calls this method when the connection is established, and after each response. */
  _doRequest(): void;
  responseMax?: number;
  destroy(): void;
  readonly requestIterator: { recordBody(request: unknown, status: number, body: string): void };
  /** The time at which the current spin was due. This module adds this property and the next one. */
  dueMs: number;
  connection: Connection;
}

const SAMPLE_MS = 100;
/** Seconds after which a request without an answer counts as failed. */
const TIMEOUT_SECONDS = 10;

/** Takes control of a client, so that it sends requests only when the schedule says so. */
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
  const requests = order.mix === undefined ? new SpinRequests(order) : new MixedRequests(order, order.mix);
  const clients: Client[] = [];
  const latencies = new Map<Kind, Histogram>([['spins', newHistogram()]]);
  let spins = 0;
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
            throw new Error('The installed autocannon does not have the expected structure');
          const connection: Connection = { kind: 'spins' };
          client.connection = connection;
          client.getRequestBuffer = () => requests.next(connection);
          if (requests instanceof MixedRequests)
            client.requestIterator.recordBody = (_request, status, body) =>
              requests.received(connection, status, body);
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
          spins,
          non2xx: result.non2xx,
          errors: result.errors,
          statuses: Object.fromEntries(statuses),
          seconds: (endedMs - startedMs) / 1000,
          ...latenciesOf(latencies.get('spins')!),
          lateP99Ms: schedule && schedule.lateMicros.getValueAtPercentile(99) / 1000,
          kinds: Object.fromEntries([...latencies].map(([kind, micros]) => [kind, latenciesOf(micros)])),
        });
      },
    );
    instance.on('response', (published, status, _bytes, responseMs) => {
      endedMs = performance.now();
      const { dueMs, connection } = published as unknown as Client;
      const latencyMs = schedule === undefined ? responseMs : endedMs - dueMs;
      const micros = latencies.get(connection.kind) ?? newHistogram();
      latencies.set(connection.kind, micros);
      micros.recordValue(Math.round(latencyMs * 1000));
      if (connection.kind === 'spins' && status < 300) spins++;
    });
    if (schedule === undefined) {
      setTimeout(() => {
        for (const client of clients) client.responseMax = 1;
      }, order.seconds * 1000);
    }
  });
}

const latenciesOf = (micros: Histogram): Latencies => ({
  count: micros.totalCount,
  p50Ms: micros.getValueAtPercentile(50) / 1000,
  p99Ms: micros.getValueAtPercentile(99) / 1000,
  p999Ms: micros.getValueAtPercentile(99.9) / 1000,
  maxMs: micros.maxValue / 1000,
});
