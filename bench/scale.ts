/**
 * `npm run bench -- scale [--minutes 6]`: measures how the throughput and the CPU per spin change with the
 * number of front ends, Redis nodes and partners, on a machine of any size.
 *
 * Each row has 256 connections in a closed loop for each front end. On four cores or more, load generators
 * have cores of their own. The bench says for which rows the machine has fewer cores than processes: these
 * rows show whether the CPU per spin stays the same, but not the throughput. Needs Linux.
 */
import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { capacityOf } from '../src/domain/capacity.js';
import { Cleanup, runToEnd } from '../test/support/cleanup.js';
import { type LoadResult, requestsOf, startGenerator } from './load.js';
import {
  CpuMeter,
  type CpuTimes,
  cpuBetween,
  describeMachine,
  machineTimes,
  type Processes,
  requireProc,
  table,
  treeOf,
} from './measure.js';
import { startMixed } from './mixedService.js';
import { closeBooks, type Loads } from './period.js';
import { startService } from './service.js';
import { SHAPE } from './shape.js';
import { drained } from './stores.js';

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '6' } } });
const CONNECTIONS = 256;
const PLAYERS = 20_000;
/** Warm-up for each front end in seconds, because V8 optimizes the code of each process separately. */
const WARM_UP_SECONDS = 4;
/** Duration of a start, in seconds, which is only used to divide the minutes. */
const START_SECONDS = 8;
const MANY = 50;
const CORES = availableParallelism();
/** Cores of the load generators, the last ones of the machine; 0: all processes share all cores. */
const GENERATOR_CORES = CORES < 4 ? 0 : Math.max(1, Math.floor(CORES / 4));

interface Row {
  readonly load: 'slots' | 'mix';
  readonly partners: number;
  readonly frontEnds: number;
  readonly nodes: number;
}
const row = (load: Row['load'], partners: number, frontEnds: number, nodes: number): Row => ({
  load,
  partners,
  frontEnds,
  nodes,
});
/** The first row of each load and number of partners is the one that the others are compared with. */
const ROWS = [
  ...[1, 2, 4, 8].map((frontEnds) => row('slots', 1, frontEnds, 1)),
  ...[1, 2, 4].map((nodes) => row('slots', MANY, 1, nodes)),
  ...[2, 4].map((nodes) => row('slots', MANY, 4, nodes)),
  row('mix', MANY, 1, 1),
  row('mix', MANY, 4, 2),
];
const BESIDE_SECONDS = ROWS.reduce(
  (sum, { frontEnds }) => sum + START_SECONDS + WARM_UP_SECONDS * frontEnds,
  0,
);
const SECONDS = Math.max(3, Math.round((Number(values.minutes) * 60 - BESIDE_SECONDS) / ROWS.length));

/** Number of cores that a row needs, so that each process has its own. */
const coresOf = ({ frontEnds, nodes }: Row): number => frontEnds + nodes + 2 + Math.ceil(frontEnds / 2);

function pin(pids: readonly number[], cores: string): void {
  for (const pid of pids.flatMap(treeOf)) execFileSync('taskset', ['-a', '-p', '-c', cores, String(pid)]);
}

async function start({ load, partners, frontEnds, nodes }: Row, cleanup: Cleanup) {
  const scale = { frontEnds, nodes: nodes === 1 ? undefined : nodes };
  if (load === 'mix') return startMixed(cleanup, {}, scale);
  const service = await startService({ ...SHAPE, partners, games: partners, ...scale }, cleanup);
  const { base, targets } = service;
  return { service, order: { base, targets, players: PLAYERS / partners, hasRequestId: true } };
}

interface Result {
  readonly perSecond: number;
  readonly p99Ms: number;
  /** CPU in µs per request, without the generators. */
  readonly micros: number;
  /** Busy cores of the service and its stores. */
  readonly cores: number;
  readonly busiest: string;
  /** CPU in µs per request, by process. */
  readonly parts: string;
  readonly faults: readonly string[];
}

async function measure(row: Row, cleanup: Cleanup): Promise<Result> {
  const { service, order } = await start(row, cleanup);
  const count = GENERATOR_CORES === 0 ? 1 : Math.min(row.frontEnds, GENERATOR_CORES);
  const generators = Array.from({ length: count }, () => startGenerator(cleanup));
  if (GENERATOR_CORES > 0) {
    pin(Object.values(service.processes).flat(), `0-${CORES - GENERATOR_CORES - 1}`);
    for (const [at, { pid }] of generators.entries()) pin([pid], String(CORES - 1 - at));
  }
  const connections = Math.round((CONNECTIONS * row.frontEnds) / count);
  const load = (seconds: number): Promise<LoadResult[]> =>
    Promise.all(generators.map((each) => each.load({ ...order, connections, rate: undefined, seconds })));
  const warmUp = await load(WARM_UP_SECONDS * row.frontEnds);
  await drained(service.books);
  const meter = new CpuMeter(service.processes);
  const [before, machine] = [meter.sample(), machineTimes()];
  const results = await load(SECONDS);
  const after = machineTimes();
  await drained(service.books);
  const cpu = cpuBetween(before, meter.sample());
  const loads: Loads = [...warmUp, ...results].map((result) => ['load', result]);
  const faults = await closeBooks(loads, service.books, row.load === 'mix' ? [404] : []);
  const requests = results.reduce((sum, result) => sum + requestsOf(result), 0);
  const seconds = Math.max(...results.map((result) => result.seconds));
  const total = Object.values(cpu).reduce((sum, micros) => sum + micros, 0);
  const idle = 1 - (after.busy - machine.busy) / (after.all - machine.all);
  return {
    perSecond: requests / seconds,
    p99Ms: Math.max(...results.map(({ p99Ms }) => p99Ms)),
    micros: total / requests,
    cores: total / seconds / 1e6,
    busiest: busiestOf(cpu, service.processes, seconds, idle),
    parts: Object.entries(cpu)
      .map(([name, micros]) => `${name} ${(micros / requests).toFixed(1)}`)
      .join(', '),
    faults,
  };
}

/** Names the kind of process with the highest CPU use of a process, in percent of a core. */
function busiestOf(cpu: CpuTimes, processes: Processes, seconds: number, idle: number): string {
  const shares = Object.entries(cpu).map(
    ([name, micros]) => [name, micros / processes[name]!.length / seconds / 1e4] as const,
  );
  const [name, share] = shares.reduce((most, each) => (each[1] > most[1] ? each : most));
  return `${name} ${share.toFixed(0)} %, machine ${(100 * (1 - idle)).toFixed(0)} %`;
}

await runToEnd(async (cleanup) => {
  requireProc();
  console.log(
    `${describeMachine()}; ${SECONDS} s per row, ${CONNECTIONS} connections for each front end; ${
      GENERATOR_CORES === 0
        ? 'the load generator shares the cores'
        : `${GENERATOR_CORES} cores for load generators`
    }`,
  );
  const lines: string[][] = [];
  const first = new Map<string, Result>();
  let isVoid = false;
  for (const each of ROWS) {
    const own = new Cleanup();
    cleanup.add(() => own.run());
    const result = await measure(each, own);
    await own.run();
    const key = `${each.load} ${each.partners}`;
    const base = first.get(key) ?? result;
    first.set(key, base);
    const model = capacityOf({ spins: result.perSecond, partners: each.partners, players: PLAYERS, days: 1 });
    const modelCores = Object.values(model.cores).reduce((sum, cores) => sum + cores, 0);
    lines.push([
      `${each.load}, ${each.partners} partners, ${each.frontEnds} front ends, ${each.nodes} nodes`,
      result.perSecond.toFixed(0),
      result.p99Ms.toFixed(1),
      result.micros.toFixed(1),
      (result.micros / base.micros).toFixed(2),
      (result.perSecond / result.cores).toFixed(0),
      each.load === 'mix' ? '–' : (result.perSecond / modelCores).toFixed(0),
      result.busiest,
      coresOf(each) > CORES ? `needs ${coresOf(each)} cores` : '',
    ]);
    console.log(`${lines.at(-1)!.join('  ')}  ${result.parts}`);
    for (const fault of result.faults) console.log(`VOID: ${fault}`);
    isVoid ||= result.faults.length > 0;
  }
  const head = [
    '',
    'per second',
    'p99 ms',
    'CPU µs',
    'of first',
    'per core',
    'model',
    'busiest',
    'too small',
  ];
  console.log('');
  for (const line of table([head, ...lines])) console.log(line);
  return !isVoid;
});
