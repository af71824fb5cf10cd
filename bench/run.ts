/**
 * `npm run bench -- run [SERVER …]`: measures the service, or baselines besides it, under load, one server at
 * a time, in turn, over several rounds. Prints a table of the medians over the rounds. The exit status is 1
 * if a number is invalid because an answer was not 2xx or a spin is not in the ledger.
 */
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Cleanup, runToEnd } from '../test/support/cleanup.js';
import { startGenerator } from './load.js';
import {
  describeMachine,
  median,
  requireProc,
  residentBytes,
  table,
  treeBytes,
  wholeBytes,
} from './measure.js';
import { closeBooks, isDisturbed, type Loads, measurePeriod, type Period } from './period.js';
import { isServerName, type RunningServer, SERVERS, type ServerName, startServer } from './servers.js';
import { readSettings, readShape, SHAPE_OPTIONS, wholeNumber } from './shape.js';
import { newDiskFolder } from './stores.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ...SHAPE_OPTIONS,
    connections: { type: 'string', default: '64,256' },
    rate: { type: 'string' },
    rounds: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '8' },
    'warm-up': { type: 'string', default: '3' },
    players: { type: 'string', default: '1000' },
    'no-request-id': { type: 'boolean', default: false },
  },
});
const SHAPE = readShape(values);
const SETTINGS = readSettings(values.set);
const CONNECTIONS = values.connections.split(',').map((each) => wholeNumber('connections', each));
const SECONDS = wholeNumber('seconds', values.seconds);
const WARM_UP_SECONDS = wholeNumber('warm-up', values['warm-up']);
/** Seconds of warm-up for a server that has already been under load. */
const WARM_UP_AGAIN_SECONDS = 1;
const PLAYERS = wholeNumber('players', values.players);
const PERCENT = /^(\d+)%$/.exec(values.rate ?? '')?.[1];
const RATE =
  values.rate === undefined || PERCENT !== undefined ? undefined : wholeNumber('rate', values.rate);
const SYNCS = 200;
const SYNC_BYTES = 4096;
const MB = 1_048_576;

const FIGURES = [
  ...['spins/s', 'p50 ms', 'p99 ms', 'late p99 ms'],
  ...['server µs', 'worker µs', 'redis µs', 'postgres µs', 'total µs', 'generator µs', 'idle %'],
] as const;
type Figures = Readonly<Record<string, number | undefined>>;
/** Measured figures, by the name of their table row or of the measurement. */
type Result = Map<string, Figures>;

/** Starts a server and measures its periods. Returns its rows, and the faults that invalidate them. */
async function takeTurn(name: ServerName, cleanup: Cleanup): Promise<{ rows: Result; faults: string[] }> {
  const server = await startServer(name, SHAPE, SETTINGS, cleanup);
  const generator = startGenerator(cleanup);
  const loads: Loads = [];
  const rows: Result = new Map();
  const measure = async (connections: number, rate: number | undefined, label: string): Promise<Period> => {
    const period = await measurePeriod(
      server,
      generator,
      {
        base: server.base,
        targets: server.targets,
        connections,
        players: Math.ceil(PLAYERS / SHAPE.partners),
        hasRequestId: !values['no-request-id'],
        seconds: SECONDS,
        rate,
      },
      loads.length === 0 ? WARM_UP_SECONDS : WARM_UP_AGAIN_SECONDS,
      loads,
    );
    rows.set(label, figuresOf(period));
    if (isDisturbed(period.shares))
      console.log(`DISTURBED: ${label}: other processes used a part of the machine`);
    return period;
  };
  for (const connections of CONNECTIONS) {
    const label = `${name}, ${connections}`;
    if (RATE !== undefined) await measure(connections, RATE, `${label}, ${RATE}/s`);
    else {
      const { load } = await measure(connections, undefined, label);
      const share = PERCENT && (Number(PERCENT) / 100) * (load.spins / load.seconds);
      if (share) await measure(connections, share, `${label}, ${PERCENT} %`);
    }
  }
  rows.set(`${name}: memory, MB`, memoryOf(server));
  return { rows, faults: await closeBooks(loads, server.books) };
}

function figuresOf({ load, cpuPerSpin, shares }: Period): Figures {
  const cpu = Object.entries(cpuPerSpin).map(([name, micros]) => [`${name} µs`, micros]);
  return {
    'spins/s': load.spins / load.seconds,
    'p50 ms': load.p50Ms,
    'p99 ms': load.p99Ms,
    'late p99 ms': load.lateP99Ms,
    ...Object.fromEntries(cpu),
    'idle %': 100 * shares.idle,
  };
}

const memoryOf = ({ processes }: RunningServer): Figures =>
  Object.fromEntries(
    Object.entries(processes).map(([name, pids]) => {
      const bytes = (pid: number): number =>
        name === 'postgres' ? wholeBytes(treeBytes(pid)) : residentBytes(pid);
      return [name, pids.reduce((sum, pid) => sum + bytes(pid), 0) / MB];
    }),
  );

/** Returns the minimum time of a durable answer on this disk in ms: a write of 4 KB and its fdatasync. */
async function syncMs(): Promise<number> {
  const folder = await newDiskFolder();
  try {
    const file = await open(join(folder, 'sync'), 'w');
    const bytes = Buffer.alloc(SYNC_BYTES, 1);
    const times: number[] = [];
    for (let i = 0; i < SYNCS; i++) {
      const started = performance.now();
      await file.write(bytes);
      await file.datasync();
      times.push(performance.now() - started);
    }
    await file.close();
    return median(times);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the medians of figures over the rounds. */
function medianOf(rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0]!).filter((name) => rounds[0]![name] !== undefined);
  return Object.fromEntries(names.map((name) => [name, median(rounds.map((round) => round[name]!))]));
}

function digits(value: number | undefined): string {
  return value === undefined ? '–' : value.toFixed(value >= 1000 ? 0 : value >= 10 ? 1 : 2);
}

function render(result: Result): string {
  const periods = [...result].filter(([, figures]) => figures['spins/s'] !== undefined);
  const shown = FIGURES.filter((name) => periods.some(([, figures]) => figures[name] !== undefined));
  const rows = periods.map(([label, figures]) => [label, ...shown.map((name) => digits(figures[name]))]);
  const others = [...result].filter(([, figures]) => figures['spins/s'] === undefined);
  return [
    '',
    `${describeMachine()}; the generator runs on the same machine. CPU in µs per spin; the total excludes the generator.`,
    ...table([['server, connections', ...shown], ...rows]),
    '',
    ...others.map(([label, figures]) => {
      const each = Object.entries(figures).map(
        ([name, value]) => `${name === 'all' ? '' : `${name} `}${digits(value)}`,
      );
      return `  ${label}: ${each.join(', ')}`;
    }),
  ].join('\n');
}

async function main(cleanup: Cleanup): Promise<boolean> {
  requireProc();
  const servers = positionals.length === 0 ? (['spindle'] as const) : positionals;
  for (const name of servers)
    if (!isServerName(name))
      throw new Error(`The server ${name} does not exist. Use one of ${SERVERS.join(', ')}`);
  const rounds = new Map<string, Figures[]>();
  let isVoid = false;
  for (let round = 0; round < wholeNumber('rounds', values.rounds); round++)
    for (const name of servers as readonly ServerName[]) {
      const turn = new Cleanup();
      cleanup.add(() => turn.run());
      const { rows, faults } = await takeTurn(name, turn);
      await turn.run();
      for (const [label, figures] of rows) rounds.set(label, [...(rounds.get(label) ?? []), figures]);
      for (const fault of faults) console.log(`VOID: ${name}: ${fault}`);
      isVoid ||= faults.length > 0;
    }
  const result: Result = new Map([...rounds].map(([label, figures]) => [label, medianOf(figures)]));
  result.set('sync of 4 KB on this disk, ms', { all: await syncMs() });
  console.log(render(result));
  return !isVoid;
}

await runToEnd(main);
