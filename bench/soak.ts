/**
 * `npm run bench -- soak [--minutes 20] [--share 0.7] [--connections 64]`
 *
 * Loads a front end and a worker for a long time with the load of a real operator (mixedService.ts), at a
 * share of their capacity, which is measured first. The run passes only if nothing grows after the warm-up
 * (memory of each process and store, queues, handles), no answer is a 5xx, and the ledger contains exactly
 * the answered spins. RequestIds are bound for one minute, so that Redis releases them during the soak.
 *
 * The shortest useful run takes six and a half minutes. Prints the findings, and exits with 1 if a check
 * failed. Needs Linux.
 */
import { parseArgs } from 'node:util';
import { type Cleanup, runToEnd } from '../test/support/cleanup.js';
import type { Receiver } from '../test/support/receiver.js';
import { pause } from '../test/support/wait.js';
import { type LoadResult, requestsOf, startGenerator } from './load.js';
import { CpuMeter, type CpuTimes, cpuBetween, describeMachine, requireProc, table } from './measure.js';
import { LARGE_WIN_USD, startMixed } from './mixedService.js';
import { Sampler } from './sampler.js';
import { PAR_SHEET, type Service } from './service.js';
import { drained } from './stores.js';
import { type Finding, judge, type Samples } from './trend.js';

const BIND_SECONDS = 60;
const CAPACITY_SECONDS = 10;
const WARM_UP_SECONDS = 5;
/**
 * Returns the length of the warm-up, in which growth is allowed: a quarter of the run, but at least three
 * times as long as a requestId is bound, and at most half of the run.
 */
const warmUpOf = (seconds: number): number =>
  Math.min(seconds / 2, Math.max(seconds / 4, 3 * BIND_SECONDS + 20));
const DELIVERED_WITHIN_MS = 30_000;

interface Options {
  readonly minutes: number;
  readonly share: number;
  readonly connections: number;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '20' },
      share: { type: 'string', default: '0.7' },
      connections: { type: 'string', default: '64' },
    },
  });
  const positive = (name: 'minutes' | 'share' | 'connections'): number => {
    const value = Number(values[name]);
    if (!(value > 0)) throw new Error(`--${name} must be a number above 0`);
    return value;
  };
  return {
    minutes: positive('minutes'),
    share: positive('share'),
    connections: positive('connections'),
  };
}

async function soak(cleanup: Cleanup): Promise<boolean> {
  requireProc();
  const { minutes, share, connections } = readOptions();
  const machine = describeMachine();
  // Only tests may use such a short binding time, on their own database.
  const settings = { REQUEST_ID_WINDOW_S: String(BIND_SECONDS), TEST_CONSTANTS: '{}' };
  const { service, receiver, order: mixed } = await startMixed(cleanup, settings);
  const order = { ...mixed, connections };
  const generator = startGenerator(cleanup);

  const closed = { ...order, rate: undefined };
  const warmUp = await generator.load({ ...closed, seconds: WARM_UP_SECONDS });
  const full = await generator.load({ ...closed, seconds: CAPACITY_SECONDS });
  await drained(service.books);
  const capacity = requestsOf(full) / full.seconds;
  const rate = Math.round(capacity * share);
  const seconds = Math.round(minutes * 60);
  console.log(
    `capacity ${capacity.toFixed(0)} requests/s (closed loop, ${connections} connections); running ${rate} requests/s for ${seconds} s`,
  );

  const sampler = new Sampler(service, rate / 5);
  sampler.start();
  const processes = { ...service.processes, generator: [generator.pid], bench: [process.pid] };
  const meter = new CpuMeter(processes);
  const before = meter.sample();
  const load = await generator.load({ ...order, rate, seconds });
  const cpu = cpuBetween(before, meter.sample());
  const watched = await sampler.stop();
  await drained(service.books);
  await delivered(service);

  const fromSeconds = warmUpOf(seconds);
  const findings = [
    ...watched.flatMap(({ samples, bound }) =>
      bound === undefined ? [] : [judge(samples, bound, fromSeconds, BIND_SECONDS)],
    ),
    answersOf(load),
    await booksOf(service, [warmUp, full, load]),
    await webhooksOf(service, receiver),
    paceOf(load, rate),
  ];
  const missed = findings.filter(({ isMet }) => !isMet).length;
  console.log(`\n${machine}; ${PAR_SHEET}; the first ${fromSeconds.toFixed(0)} s are warm-up`);
  for (const [place, line] of table(
    findings.map(({ what, isMet }) => [what, isMet ? 'pass' : 'MISS']),
  ).entries())
    console.log(`${line}  ${findings[place]!.text}`);
  console.log(
    missed === 0 ? 'SOAK: all checks passed' : `SOAK: ${missed} of ${findings.length} checks failed`,
  );
  for (const { samples, bound } of watched) if (bound === undefined) console.log(shown(samples, fromSeconds));
  console.log(`CPU in microseconds per spin: ${cpuText(cpu, load.spins)}`);
  return missed === 0;
}

/** Waits until no delivery is pending, but at most DELIVERED_WITHIN_MS. */
async function delivered({ stores }: Service): Promise<void> {
  const deadline = performance.now() + DELIVERED_WITHIN_MS;
  while (performance.now() < deadline) {
    const [row] = await stores.ask<{ pending: bigint }>(
      "SELECT count(*) AS pending FROM deliveries WHERE status = 'pending'",
    );
    if (row!.pending === 0n) return;
    await pause(500);
  }
}

function answersOf({ statuses, errors }: LoadResult): Finding {
  const failed = Object.entries(statuses).reduce(
    (sum, [status, count]) => sum + (Number(status) >= 500 ? count : 0),
    errors,
  );
  return { what: 'answers: no 5xx', isMet: failed === 0, text: JSON.stringify({ ...statuses, errors }) };
}

async function booksOf({ books }: Service, loads: readonly LoadResult[]): Promise<Finding> {
  const spins = loads.reduce((sum, load) => sum + load.spins, 0);
  const rows = await books.ledgerRows();
  const waiting = await books.outboxEntries();
  return {
    what: 'ledger: contains exactly the answered spins',
    isMet: rows === spins && waiting === 0,
    text: `${spins} answered with 2xx, ${rows} committed, ${waiting} in the outbox`,
  };
}

async function webhooksOf({ stores }: Service, { received }: Receiver): Promise<Finding> {
  const [row] = await stores.ask<{ wins: bigint; events: bigint }>(
    `SELECT (SELECT count(*) FROM ledger WHERE kind = 1 AND credit_micros > ${LARGE_WIN_USD * 1e6}) AS wins,
       (SELECT count(*) FROM events WHERE event = 'spin.large_win' AND NOT is_test) AS events`,
  );
  const { wins, events } = row!;
  const ids = new Set(received.filter(({ event }) => event.test !== true).map(({ event }) => event.id)).size;
  return {
    what: 'webhooks: each large win was received',
    isMet: wins > 0n && events === wins && BigInt(ids) === events,
    text: `${wins} large wins, ${events} events, ${ids} received`,
  };
}

/** Checks that the load had the intended rate. Otherwise the run has no meaning. */
function paceOf(load: LoadResult, rate: number): Finding {
  const { seconds, p50Ms, p99Ms, lateP99Ms } = load;
  const pace = requestsOf(load) / seconds;
  return {
    what: 'load: reached the planned rate',
    isMet: pace >= 0.99 * rate,
    text: `${pace.toFixed(0)} requests/s of ${rate}; latency of spins from the planned time: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms; delay of the generator: p99 ${lateP99Ms!.toFixed(1)} ms`,
  };
}

const cpuText = (cpu: CpuTimes, spins: number): string =>
  Object.entries(cpu)
    .map(([name, micros]) => `${name} ${(micros / spins).toFixed(1)}`)
    .join(', ');

/** Describes a sampled value: after the warm-up and at the end. */
function shown({ name, unit, samples }: Samples, fromSeconds: number): string {
  const first = samples.find(([seconds]) => seconds >= fromSeconds)?.[1];
  const last = samples.at(-1)?.[1];
  return `${name}: ${first?.toFixed(1)} ${unit} after the warm-up, ${last?.toFixed(1)} at the end`;
}

await runToEnd(soak);
