/** Medians, ratios and the table of a run. */
import type { Machine } from './machine.js';
import type { LoadSettings, Measurement } from './turn.js';

export interface Summary {
  readonly server: string;
  readonly spinsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuPerSpin: Readonly<Record<string, number>>;
}

/** A comparison of two servers: taken within each round, so that what drifts from round to round cancels out. */
export interface Ratio {
  readonly of: string;
  readonly rounds: readonly number[];
  readonly median: number;
}

export interface Run {
  readonly at: string;
  readonly machine: Machine;
  readonly versions: { readonly redis: string; readonly postgres: string } | undefined;
  readonly settings: LoadSettings & { readonly rounds: number; readonly parSheet: string };
  readonly summaries: readonly Summary[];
  readonly ratios: readonly Ratio[];
  readonly blockMaking: Readonly<Record<string, number>>;
  readonly faults: readonly string[];
  readonly measurements: readonly Measurement[];
  /** Turns that were taken again, the machine being busy with something else. Their faults count all the same. */
  readonly discarded: readonly Measurement[];
}

/** Share of the machine that may go to others before a turn is called disturbed. */
const DISTURBED_FROM = 0.1;

const atLeast = (bound: number) => ({ text: `wanted ≥ ${bound}`, isMet: (value: number) => value >= bound });
const atMost = (bound: number) => ({ text: `wanted ≤ ${bound}`, isMet: (value: number) => value <= bound });
const WANTED: Readonly<Record<string, ReturnType<typeof atLeast>>> = {
  'spindle / echo, total CPU per spin': atMost(2.5),
  'spindle / echo, spins/s': atLeast(0.4),
  'spindle / fastify, spins/s': atLeast(3.5),
  'spindle / postgres, spins/s': atLeast(15),
};

const CPU_COLUMNS = ['server', 'redis', 'postgres', 'total', 'generator'];

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Whether so much of the machine went to others that the numbers say little. */
export const isDisturbed = ({ shares }: Measurement): boolean =>
  shares.others + shares.stolen >= DISTURBED_FROM;

export function summarise(measurements: readonly Measurement[]): Summary[] {
  const names = [...new Set(measurements.map(({ server }) => server))];
  return names.map((server) => {
    const own = measurements.filter((measurement) => measurement.server === server);
    const over = (value: (measurement: Measurement) => number): number => median(own.map(value));
    return {
      server,
      spinsPerSecond: over((m) => m.spinsPerSecond),
      p50Ms: over((m) => m.load.p50Ms),
      p99Ms: over((m) => m.load.p99Ms),
      cpuPerSpin: Object.fromEntries(
        Object.keys(own[0]!.cpuPerSpin).map((name) => [name, over((m) => m.cpuPerSpin[name]!)]),
      ),
    };
  });
}

export function compare(measurements: readonly Measurement[]): Ratio[] {
  const spins = (m: Measurement): number => m.spinsPerSecond;
  const cpu = (m: Measurement): number => m.cpuPerSpin.total!;
  return [
    ratio(measurements, 'spindle', 'echo', 'spins/s', spins),
    ratio(measurements, 'spindle', 'fastify', 'spins/s', spins),
    ratio(measurements, 'spindle', 'postgres', 'spins/s', spins),
    ratio(measurements, 'spindle', 'echo', 'total CPU per spin', cpu),
    ratio(measurements, 'spindle', 'fastify', 'total CPU per spin', cpu),
  ].filter(({ rounds }) => rounds.length > 0);
}

function ratio(
  measurements: readonly Measurement[],
  over: string,
  under: string,
  what: string,
  value: (measurement: Measurement) => number,
): Ratio {
  const rounds = measurements.flatMap((measurement) => {
    if (measurement.server !== over) return [];
    const other = measurements.find((m) => m.server === under && m.round === measurement.round);
    return other === undefined ? [] : [value(measurement) / value(other)];
  });
  return {
    of: `${over} / ${under}, ${what}`,
    rounds,
    median: rounds.length === 0 ? Number.NaN : median(rounds),
  };
}

/** What is printed of a run. */
export function render(run: Run): string {
  const { machine, versions, settings } = run;
  const stores = versions === undefined ? '' : `, Redis ${versions.redis}, Postgres ${versions.postgres}`;
  const lines = [
    '',
    `${machine.cores} cores of ${machine.cpu}, ${machine.memoryGb} GB, Linux ${machine.kernel}, Node ${machine.node}${stores}; ` +
      `load average before: ${machine.loadBefore.toFixed(2)}`,
    `autocannon, closed loop, ${settings.connections} connections, ${settings.players} players, a fresh requestId each; ` +
      `${settings.parSheet}; ${settings.warmUpSeconds} s warm-up and ${settings.seconds} s counted, ${settings.rounds} rounds in turn`,
    '',
    'Medians over the rounds. CPU in µs per spin, children included; total = server + Redis + Postgres:',
    row(['server', 'spins/s', 'p50 ms', 'p99 ms', ...CPU_COLUMNS.map((name) => `${name} µs`)]),
  ];
  for (const { server, spinsPerSecond, p50Ms, p99Ms, cpuPerSpin } of run.summaries) {
    const cpu = CPU_COLUMNS.map((name) => cpuPerSpin[name]?.toFixed(1) ?? '–');
    lines.push(row([server, spinsPerSecond.toFixed(0), p50Ms.toFixed(2), p99Ms.toFixed(2), ...cpu]));
  }
  if (run.ratios.length > 0) lines.push('', 'Ratios, round by round:');
  for (const { of, rounds, median: middle } of run.ratios) {
    const wanted = WANTED[of];
    const verdict = wanted === undefined ? '' : `  ${wanted.text}: ${wanted.isMet(middle) ? 'pass' : 'MISS'}`;
    lines.push(
      `  ${of.padEnd(40)}${middle.toFixed(2)}  (${rounds.map((r) => r.toFixed(2)).join(', ')})${verdict}`,
    );
  }
  const blocks = Object.entries(run.blockMaking).map(([name, rate]) => `${name} ${(rate / 1e6).toFixed(1)}`);
  lines.push('', `Block making, million outcomes/s on one core: ${blocks.join(', ')}`);
  const checked = [...run.measurements, ...run.discarded].filter(({ books }) => books !== undefined);
  if (checked.length > 0 && run.faults.length === 0) {
    const spins = checked.reduce((sum, { books }) => sum + books!.spins, 0);
    lines.push(`Ledgers: ${spins} spins were answered with 2xx, as many are booked, the outboxes are empty`);
  }
  for (const measurement of run.measurements.filter(isDisturbed)) {
    const { server, round, shares } = measurement;
    const lost = shares.others + shares.stolen;
    lines.push(
      `DISTURBED: ${server}, round ${round}: ${Math.round(lost * 100)} % of the machine went to others`,
    );
  }
  for (const fault of run.faults) lines.push(`VOID: ${fault}`);
  return lines.join('\n');
}

const row = ([name, ...cells]: readonly string[]): string =>
  `  ${name!.padEnd(9)}${cells.map((cell) => cell.padStart(13)).join('')}`;
