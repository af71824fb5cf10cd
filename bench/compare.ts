/**
 * `npm run bench:compare -- --against DIR [--rounds 3] [--seconds 8] [--connections 64,256] [--profile DIR] [shape …]`
 * `npm run bench:compare -- [shape …]`
 * shape: `--partners 100`, `--games 1000`, `--ack ledger`, `--raffles 1`, `--front-ends 1`, `--communal rare|often`, `--set NAME=VALUE`
 * `npm run bench:compare -- --cluster --partners 12 --set CELLS=12 [shape …]`: A on one Redis server, B on three primaries
 * Each takes `--sync-ms 4`: syncs of the stores' files take so much longer (slowSync.ts).
 *
 * Measures two builds of the service under the same load, in turn, round after round: A, the one in DIR (a checkout that
 * is built, version 1.3.0 or later), and B, this one, both of the same shape (scenarios.ts). Without --against it is this
 * build twice: A with one partner and one slot game, B of the shape. Each is started by its own bench (`dist/bench/service.js`), as it is
 * deployed, on fresh stores of its own; both stay up for a round and get slices of its seconds in turn. Prints each
 * round, the medians, and the ratios B/A, taken of neighbouring slices. Ends with 1 where a number is void: an answer that was
 * not 200, a spin that is not in the ledger. Needs Linux.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { startGenerator } from './generator.js';
import { requireProc } from './measure.js';
import { isDisturbed, type LoadResult, lostOf, type Shares } from './measurement.js';
import { closeBooks, measurePeriod } from './period.js';
import type { Shape } from './scenarios.js';
import type { Service, startService } from './service.js';
import { slowCommits, slowRedis } from './slowSync.js';
import { median } from './summary.js';

const BUILDS = ['A', 'B'] as const;
type Build = (typeof BUILDS)[number];
const FIGURES = ['spins/s', 'server', 'redis', 'postgres', 'total', 'generator', 'p50 ms', 'p99 ms'] as const;
type Figure = (typeof FIGURES)[number];
type Slice = Omit<Awaited<ReturnType<typeof measurePeriod>>, 'warmUp'>;
type Row = Readonly<Record<Figure, number>> & {
  readonly build: Build;
  readonly round: number;
  readonly connections: number;
  readonly shares: Shares;
  readonly slices: readonly Slice[];
};

/** Short, so that what else the machine does changes little from one to the next. */
const SLICE_SECONDS = 2;
const WARM_UP_SECONDS = 3;
const SLICE_WARM_UP_SECONDS = 0.3;
/** Of all partners together: players are opened in the warm-up, however many partners share them. */
const PLAYERS = 1000;
const SHAPE: Shape = { ack: 'redis', frontEnds: 0, partners: 1, games: 1, gameType: 'slot' };

function readOptions() {
  const { values } = parseArgs({
    options: {
      against: { type: 'string' },
      partners: { type: 'string' },
      games: { type: 'string' },
      ack: { type: 'string' },
      raffles: { type: 'string' },
      'front-ends': { type: 'string' },
      communal: { type: 'string' },
      cluster: { type: 'boolean', default: false },
      set: { type: 'string', multiple: true },
      'sync-ms': { type: 'string', default: '0' },
      rounds: { type: 'string', default: '3' },
      seconds: { type: 'string', default: '8' },
      connections: { type: 'string', default: '64,256' },
      profile: { type: 'string' },
    },
  });
  const whole = (name: string, text: string): number => {
    const value = Number(text);
    if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes whole numbers from 1`);
    return value;
  };
  const { against } = values;
  const alike = shapeOf(values, whole);
  const shape = values.cluster ? { ...alike, isCluster: true } : alike;
  const settings = Object.fromEntries((values.set ?? []).map((each) => each.split('=', 2)));
  if (against === undefined && shape === SHAPE && values.set === undefined)
    throw new Error('--against DIR names the build to compare with; without it, a shape must be given');
  return {
    dirs: { A: resolve(against ?? ROOT), B: ROOT },
    // With --cluster only the stores differ; without --against otherwise only the shape.
    shapes: { A: values.cluster ? alike : against === undefined ? SHAPE : shape, B: shape },
    settings: { A: against === undefined && !values.cluster ? {} : settings, B: settings },
    syncMs: Number(values['sync-ms']),
    rounds: whole('rounds', values.rounds),
    seconds: whole('seconds', values.seconds),
    connections: values.connections.split(',').map((each) => whole('connections', each)),
    profileDir: values.profile === undefined ? undefined : resolve(values.profile),
  };
}
type Options = ReturnType<typeof readOptions>;

function shapeOf(
  wanted: Readonly<
    Partial<Record<'partners' | 'games' | 'ack' | 'raffles' | 'front-ends' | 'communal', string>>
  >,
  whole: (name: string, text: string) => number,
): Shape {
  const { partners, games, ack, raffles, 'front-ends': frontEnds, communal } = wanted;
  if ([partners, games, ack, raffles, frontEnds, communal].every((each) => each === undefined)) return SHAPE;
  if (communal !== undefined && communal !== 'rare' && communal !== 'often')
    throw new Error('--communal takes rare or often');
  if (ack !== undefined && ack !== 'redis' && ack !== 'ledger')
    throw new Error('--ack takes redis or ledger');
  return {
    ...SHAPE,
    ...(ack !== undefined && { ack }),
    ...(partners !== undefined && {
      partners: whole('partners', partners),
      games: whole('partners', partners),
    }),
    ...(games !== undefined && { games: whole('games', games) }),
    ...(raffles !== undefined && { gameType: 'raffle', games: whole('raffles', raffles) }),
    ...(frontEnds !== undefined && { frontEnds: whole('front-ends', frontEnds) }),
    ...(communal !== undefined && { communal }),
  };
}

const serviceModule = (dir: string): string => join(dir, 'dist', 'bench', 'service.js');

interface Side {
  readonly build: Build;
  readonly service: Service;
  readonly loads: [when: string, load: LoadResult][];
}

/**
 * One start of both builds, and for each number of connections short slices of load in turn: what else the machine does
 * then hits both alike.
 */
async function measureRound(
  round: number,
  { dirs, shapes, settings, syncMs, connections, seconds, profileDir }: Options,
  cleanup: Cleanup,
): Promise<Row[]> {
  const sides: Side[] = [];
  if (syncMs > 0) await slowRedis(syncMs, cleanup);
  for (const build of BUILDS) {
    const module = await import(pathToFileURL(serviceModule(dirs[build])).href);
    const profile =
      profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(profileDir, build)}`];
    const service = await (module.startService as typeof startService)(
      shapes[build],
      cleanup,
      profile,
      settings[build],
    );
    if (syncMs > 0) await slowCommits(syncMs, service.stores.ask);
    sides.push({ build, service, loads: [] });
  }
  const generator = await startGenerator(cleanup);
  const slice = async (side: Side, count: number, sliceSeconds: number, warmUpSeconds: number) => {
    const { base, targets } = side.service;
    const order = {
      base,
      targets,
      connections: count,
      players: Math.ceil(PLAYERS / shapes[side.build].partners),
      hasRequestId: true,
      rate: undefined,
    };
    const settings = { seconds: sliceSeconds, warmUpSeconds };
    const { warmUp, ...measured } = await measurePeriod(side.service, generator, order, settings);
    side.loads.push([`${count} connections`, warmUp], [`${count} connections`, measured.load]);
    return measured;
  };
  const rows: Row[] = [];
  for (const count of connections) {
    for (const side of sides) await slice(side, count, SLICE_WARM_UP_SECONDS, WARM_UP_SECONDS);
    const slices: Record<Build, Slice[]> = { A: [], B: [] };
    for (let taken = 0; taken < seconds / SLICE_SECONDS; taken++)
      // A B, B A, A B, …: neither always comes first.
      for (const side of taken % 2 === 0 ? sides : sides.toReversed())
        slices[side.build].push(await slice(side, count, SLICE_SECONDS, SLICE_WARM_UP_SECONDS));
    for (const build of BUILDS) {
      const row = { build, round, connections: count, ...sumOf(slices[build]), slices: slices[build] };
      rows.push(row);
      console.log(lineOf(`${build} round ${round}`, count, (figure) => row[figure], shareLine(row)));
    }
  }
  for (const { build, loads, service } of sides)
    for (const fault of (await closeBooks(loads, service.books)).faults) {
      console.log(`VOID: ${build}, round ${round}: ${fault}`);
      process.exitCode = 1;
    }
  return rows;
}

/** Of all slices as if they were one, but for the latencies: of those the median. */
function sumOf(slices: readonly Slice[]): Omit<Row, 'build' | 'round' | 'connections' | 'slices'> {
  const total = (value: (slice: Slice) => number): number =>
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
  `idle ${percent(row.shares.idle)}, others ${percent(lostOf(row))}${isDisturbed(row) ? ' DISTURBED' : ''}`;
const percent = (share: number): string => `${Math.round(share * 100)} %`;

function lineOf(name: string, connections: number, value: (figure: Figure) => number, note = ''): string {
  const cells = FIGURES.map((figure) => {
    const number = value(figure);
    return (number >= 1000 ? number.toFixed(0) : number.toFixed(2)).padStart(10);
  });
  return `${name.padEnd(12)}${String(connections).padStart(6)}${cells.join('')}  ${note}`;
}

/** The medians of the rounds, and of the ratios of neighbouring slices of all rounds with the middle half of these. */
function renderSummary(rows: readonly Row[], { connections }: Options): string {
  const lines: string[] = [];
  for (const count of connections) {
    const [ofA, ofB] = BUILDS.map((build) =>
      rows.filter((row) => row.build === build && row.connections === count),
    ) as [Row[], Row[]];
    for (const [build, its] of [['A', ofA] as const, ['B', ofB] as const])
      lines.push(lineOf(`${build} median`, count, (figure) => median(its.map((row) => row[figure]))));
    const slicesOf = (its: readonly Row[]): Slice[] => its.flatMap(({ slices }) => slices);
    const ratios = (figure: Figure): number[] => {
      const before = slicesOf(ofA).map((slice) => sumOf([slice])[figure]);
      return slicesOf(ofB).map((slice, place) => sumOf([slice])[figure] / before[place]!);
    };
    lines.push(lineOf('B/A', count, (figure) => median(ratios(figure))));
    for (const figure of ['spins/s', 'total'] as const) {
      const sorted = ratios(figure).sort((a, b) => a - b);
      const at = (share: number): string => sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(3);
      lines.push(
        `  ${figure} B/A: ${sorted.length} pairs of slices, half of them ${at(0.25)} to ${at(0.75)}`,
      );
    }
  }
  return lines.join('\n');
}

async function main(): Promise<void> {
  requireProc();
  const options = readOptions();
  for (const dir of Object.values(options.dirs))
    if (!existsSync(serviceModule(dir)))
      throw new Error(`${dir} is not built: ${serviceModule(dir)} is missing`);
  console.log(
    `A: ${options.dirs.A}\nB: ${options.dirs.B}\nCPU in µs per spin; total is without the generator.\n`,
  );
  console.log(`${' '.repeat(14)}conn${FIGURES.map((figure) => figure.padStart(10)).join('')}`);
  const rows: Row[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    const cleanup = new Cleanup();
    const interrupted = (): void => {
      cleanup.run().finally(() => process.exit(130));
    };
    process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
    try {
      rows.push(...(await measureRound(round, options, cleanup)));
    } finally {
      await cleanup.run();
      process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
    }
  }
  console.log(`\n${renderSummary(rows, options)}`);
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
