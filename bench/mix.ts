/**
 * `npm run bench -- mix [--seconds 60] [--connections 256]`: measures the service under the load of a real
 * operator.
 *
 * 50 partners with 300 slot games, of which the n-th is played with a frequency proportional to 1/n, four
 * raffles, 50 blackjack tables and 20,000 players; 78 % spins, 5 % rounds, 12 % reads and 5 % writes. Large
 * wins go out as webhooks to a receiver that answers at once. First measures the capacity in a closed loop,
 * then the latencies in an open loop at a third and at half of the capacity. Needs Linux.
 */
import { parseArgs } from 'node:util';
import { type Cleanup, runToEnd } from '../test/support/cleanup.js';
import type { Receiver } from '../test/support/receiver.js';
import { KINDS, requestsOf, startGenerator } from './load.js';
import { CpuMeter, cpuBetween, describeMachine, requireProc, table } from './measure.js';
import { startMixed } from './mixedService.js';
import { closeBooks, type Loads } from './period.js';
import { scrapeBuckets } from './sampler.js';
import type { Service } from './service.js';
import { wholeNumber } from './shape.js';
import { drained } from './stores.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    connections: { type: 'string', default: '256' },
  },
});
const SECONDS = wholeNumber('seconds', values.seconds);
const CONNECTIONS = wholeNumber('connections', values.connections);
const WARM_UP_SECONDS = 8;
const CAPACITY_SECONDS = 15;
const RATES = [1 / 3, 1 / 2];

/** Delays of the webhooks from the event until the receiver got them, in seconds, as p50, p99 and maximum. */
function webhookLags({ received }: Receiver, from: number): string {
  const lags = received
    .slice(from)
    .map(({ event, atMs }) => (performance.timeOrigin + atMs - Date.parse(event.createdAt)) / 1000)
    .sort((a, b) => a - b);
  if (lags.length === 0) return 'none';
  const at = (share: number): string => lags[Math.ceil(share * lags.length) - 1]!.toFixed(2);
  return `${at(0.5)}, ${at(0.99)}, ${at(1)} (${lags.length})`;
}

/** Returns the bound of the bucket with the 99th percentile of the flush lags since `before`. */
async function flushLagP99({ metrics }: Service, before: ReadonlyMap<number, number>): Promise<string> {
  const after = await scrapeBuckets(metrics, FLUSH_LAG);
  const counts = [...after].map(([bound, count]) => [bound, count - (before.get(bound) ?? 0)] as const);
  const total = counts.at(-1)![1];
  return `≤ ${counts.find(([, count]) => count >= 0.99 * total)![0]}`;
}
const FLUSH_LAG = 'spindle_flush_lag_seconds';

async function main(cleanup: Cleanup): Promise<boolean> {
  requireProc();
  const machine = describeMachine();
  const { service, receiver, order } = await startMixed(cleanup);
  const generator = startGenerator(cleanup);
  const meter = new CpuMeter({ ...service.processes, generator: [generator.pid] });
  const loads: Loads = [];
  const rows: string[][] = [];
  const measure = async (label: string, rate: number | undefined, seconds: number): Promise<number> => {
    const lags = await scrapeBuckets(service.metrics, FLUSH_LAG);
    const delivered = receiver.received.length;
    const before = meter.sample();
    const load = await generator.load({ ...order, connections: CONNECTIONS, rate, seconds });
    const flushLag = await flushLagP99(service, lags);
    const webhooks = webhookLags(receiver, delivered);
    await drained(service.books);
    const cpu = cpuBetween(before, meter.sample());
    loads.push([label, load]);
    const requests = requestsOf(load);
    const micros = Object.entries(cpu).map(([name, each]) => `${name} ${(each / requests).toFixed(1)}`);
    console.log(
      `${label}: ${(requests / load.seconds).toFixed(0)} requests/s; CPU in µs per request: ${micros.join(', ')}; flush lag p99 ${flushLag} s; ` +
        `webhooks p50, p99, max (count) ${webhooks} s; statuses ${JSON.stringify(load.statuses)}`,
    );
    for (const kind of KINDS) {
      const { count, p50Ms, p99Ms, p999Ms } = load.kinds[kind]!;
      const cells = [p50Ms, p99Ms, p999Ms].map((each) => each.toFixed(1));
      rows.push([`${label}, ${kind}`, (count / load.seconds).toFixed(0), ...cells]);
    }
    return requests / load.seconds;
  };
  await measure('warm-up', undefined, WARM_UP_SECONDS);
  rows.length = 0;
  const capacity = await measure('closed loop', undefined, CAPACITY_SECONDS);
  for (const share of RATES)
    await measure(`${Math.round(100 * share)} % of it`, Math.round(capacity * share), SECONDS);
  console.log(`\n${machine}; ${CONNECTIONS} connections; the generator runs on the same machine`);
  for (const line of table([['load, kind', 'per second', 'p50 ms', 'p99 ms', 'p99.9 ms'], ...rows]))
    console.log(line);
  const faults = await closeBooks(loads, service.books, [404]);
  for (const fault of faults) console.log(`VOID: ${fault}`);
  return faults.length === 0;
}

await runToEnd(main);
