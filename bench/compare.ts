/**
 * `npm run bench -- compare --against DIR [shape …]`, or `npm run bench -- compare shape …`
 *
 * Compares two builds of the service under the same load in alternation, over several rounds. A is the build
 * in DIR (a built checkout of version 1.3.0 or later). B is this build. Both have the same shape (shape.ts).
 * Without --against, A and B are both this build: A with one partner and one slot game, B with the given
 * shape. With --cluster, A runs on one Redis server and B on three primaries.
 *
 * Each build is started by its own bench (`dist/bench/service.js`), as it would be deployed, on its own fresh
 * stores. A and B both run during a round and get slices of its seconds in turn. The program prints each
 * round, the medians, and the ratios B/A of neighboring slices. The exit status is 1 if a number is invalid
 * because an answer was not 2xx or a spin is not in the ledger. Needs Linux.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { Cleanup, runToEnd } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { startGenerator } from './load.js';
import { median, requireProc } from './measure.js';
import {
  closeBooks,
  isDisturbed,
  type Loads,
  lostOf,
  measurePeriod,
  type Period,
  type Shares,
} from './period.js';
import type { Service, startService } from './service.js';
import { readSettings, readShape, SHAPE, SHAPE_OPTIONS, wholeNumber } from './shape.js';

const BUILDS = ['A', 'B'] as const;
type Build = (typeof BUILDS)[number];
const FIGURES = ['spins/s', 'server', 'redis', 'postgres', 'total', 'generator', 'p50 ms', 'p99 ms'] as const;
type Figure = (typeof FIGURES)[number];
type Row = Readonly<Record<Figure, number>> & {
  readonly build: Build;
  readonly round: number;
  readonly connections: number;
  readonly shares: Shares;
  readonly slices: readonly Period[];
};

/** Slices are short, so that other activity changes little between neighboring slices. */
const SLICE_SECONDS = 2;
const WARM_UP_SECONDS = 3;
const SLICE_WARM_UP_SECONDS = 0.3;
/** Number of players of all partners together. The warm-up creates all of them. */
const PLAYERS = 1000;

function readOptions() {
  const { values } = parseArgs({
    options: {
      ...SHAPE_OPTIONS,
      against: { type: 'string' },
      cluster: { type: 'boolean', default: false },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '8' },
      connections: { type: 'string', default: '64,256' },
    },
  });
  const { against, cluster } = values;
  const alike = readShape(values);
  const shape = cluster ? { ...alike, nodes: 3 } : alike;
  const settings = readSettings(values.set);
  const isUsual = isDeepStrictEqual(
    { ...shape, communal: undefined },
    { ...SHAPE, communal: shape.communal },
  );
  if (against === undefined && isUsual && values.set === undefined)
    throw new Error('Use --against DIR to name the build to compare with. Without --against, give a shape.');
  return {
    dirs: { A: resolve(against ?? ROOT), B: ROOT },
    // With --cluster only the stores differ. Without --cluster and --against only the shape differs.
    shapes: { A: cluster ? alike : against === undefined ? SHAPE : shape, B: shape },
    settings: { A: against === undefined && !cluster ? {} : settings, B: settings },
    rounds: wholeNumber('rounds', values.rounds),
    seconds: wholeNumber('seconds', values.seconds),
    connections: values.connections.split(',').map((each) => wholeNumber('connections', each)),
  };
}
type Options = ReturnType<typeof readOptions>;

const serviceModule = (dir: string): string => join(dir, 'dist', 'bench', 'service.js');

let isVoid = false;

interface Side {
  readonly build: Build;
  readonly service: Service;
  readonly loads: Loads;
}

/** Starts both builds, which get short slices of load in turn. */
async function measureRound(
  round: number,
  { dirs, shapes, settings, connections, seconds }: Options,
  cleanup: Cleanup,
): Promise<Row[]> {
  const sides: Side[] = [];
  for (const build of BUILDS) {
    const module = await import(pathToFileURL(serviceModule(dirs[build])).href);
    const service = await (module.startService as typeof startService)(
      shapes[build],
      cleanup,
      [],
      settings[build],
    );
    sides.push({ build, service, loads: [] });
  }
  const generator = startGenerator(cleanup);
  const slice = async (side: Side, count: number, sliceSeconds: number, warmUpSeconds: number) => {
    const { base, targets } = side.service;
    const order = {
      base,
      targets,
      connections: count,
      players: Math.ceil(PLAYERS / shapes[side.build].partners),
      hasRequestId: true,
      seconds: sliceSeconds,
      rate: undefined,
    };
    return measurePeriod(side.service, generator, order, warmUpSeconds, side.loads);
  };
  const rows: Row[] = [];
  for (const count of connections) {
    for (const side of sides) await slice(side, count, SLICE_WARM_UP_SECONDS, WARM_UP_SECONDS);
    const slices: Record<Build, Period[]> = { A: [], B: [] };
    for (let taken = 0; taken < seconds / SLICE_SECONDS; taken++)
      // The order alternates (A B, B A, A B, …), so that neither build always comes first.
      for (const side of taken % 2 === 0 ? sides : sides.toReversed())
        slices[side.build].push(await slice(side, count, SLICE_SECONDS, SLICE_WARM_UP_SECONDS));
    for (const build of BUILDS) {
      const row = { build, round, connections: count, ...sumOf(slices[build]), slices: slices[build] };
      rows.push(row);
      console.log(lineOf(`${build} round ${round}`, count, (figure) => row[figure], shareLine(row)));
    }
  }
  for (const { build, loads, service } of sides)
    for (const fault of await closeBooks(loads, service.books)) {
      console.log(`VOID: ${build}, round ${round}: ${fault}`);
      isVoid = true;
    }
  return rows;
}

/** Combines all slices as if they were one. For latencies it returns the median of the slices. */
function sumOf(slices: readonly Period[]): Omit<Row, 'build' | 'round' | 'connections' | 'slices'> {
  const total = (value: (slice: Period) => number): number =>
    slices.reduce((sum, slice) => sum + value(slice), 0);
  const spins = total(({ load }) => load.spins);
  const cpu = (name: string): number =>
    total(({ load, cpuPerSpin }) => load.spins * (cpuPerSpin[name] ?? 0)) / spins;
  const share = (name: keyof Shares): number => total(({ shares }) => shares[name]) / slices.length;
  return {
    'spins/s': spins / total(({ load }) => load.seconds),
    server: cpu('server'),
    redis: cpu('redis'),
    postgres: cpu('postgres'),
    total: cpu('total'),
    generator: cpu('generator'),
    'p50 ms': median(slices.map(({ load }) => load.p50Ms)),
    'p99 ms': median(slices.map(({ load }) => load.p99Ms)),
    shares: { idle: share('idle'), others: share('others'), stolen: share('stolen') },
  };
}

const shareLine = (row: Row): string =>
  `idle ${percent(row.shares.idle)}, other processes ${percent(lostOf(row.shares))}${isDisturbed(row.shares) ? ' DISTURBED' : ''}`;
const percent = (share: number): string => `${Math.round(share * 100)} %`;

function lineOf(name: string, connections: number, value: (figure: Figure) => number, note = ''): string {
  const cells = FIGURES.map((figure) => {
    const number = value(figure);
    return (number >= 1000 ? number.toFixed(0) : number.toFixed(2)).padStart(10);
  });
  return `${name.padEnd(12)}${String(connections).padStart(6)}${cells.join('')}  ${note}`;
}

/** Renders the medians of the rounds, and the ratios of neighboring slices with their middle half. */
function renderSummary(rows: readonly Row[], { connections }: Options): string {
  const lines: string[] = [];
  for (const count of connections) {
    const [ofA, ofB] = BUILDS.map((build) =>
      rows.filter((row) => row.build === build && row.connections === count),
    ) as [Row[], Row[]];
    for (const [build, its] of [['A', ofA] as const, ['B', ofB] as const])
      lines.push(lineOf(`${build} median`, count, (figure) => median(its.map((row) => row[figure]))));
    const slicesOf = (its: readonly Row[]): Period[] => its.flatMap(({ slices }) => slices);
    const ratios = (figure: Figure): number[] => {
      const before = slicesOf(ofA).map((slice) => sumOf([slice])[figure]);
      return slicesOf(ofB).map((slice, place) => sumOf([slice])[figure] / before[place]!);
    };
    lines.push(lineOf('B/A', count, (figure) => median(ratios(figure))));
    for (const figure of ['spins/s', 'total'] as const) {
      const sorted = ratios(figure).sort((a, b) => a - b);
      const at = (share: number): string => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(3);
      lines.push(
        `  ${figure} B/A: ${sorted.length} pairs of slices; the middle half is between ${at(0.25)} and ${at(0.75)}`,
      );
    }
  }
  return lines.join('\n');
}

async function main(cleanup: Cleanup): Promise<boolean> {
  requireProc();
  const options = readOptions();
  for (const dir of Object.values(options.dirs))
    if (!existsSync(serviceModule(dir)))
      throw new Error(`${dir} is not built, because ${serviceModule(dir)} is missing`);
  console.log(
    `A: ${options.dirs.A}\nB: ${options.dirs.B}\nCPU in µs per spin; the total excludes the generator.\n`,
  );
  console.log(`${' '.repeat(14)}conn${FIGURES.map((figure) => figure.padStart(10)).join('')}`);
  const rows: Row[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    const own = new Cleanup();
    cleanup.add(() => own.run());
    rows.push(...(await measureRound(round, options, own)));
    await own.run();
  }
  console.log(`\n${renderSummary(rows, options)}`);
  return !isVoid;
}

await runToEnd(main);
