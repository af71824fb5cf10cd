/**
 * `npm run bench:compare -- --against DIR [--rounds 3] [--seconds 8] [--connections 64,256] [--profile DIR]`
 *
 * Measures two builds of the service under the same load, in turn, round after round: A, the one in DIR (a checkout that
 * is built, version 1.3.0 or later), and B, this one. Each is started by its own bench (`dist/bench/service.js`), as it is
 * deployed, on fresh stores of its own. Prints each round, the medians, and the ratios B/A, taken within a round. Ends
 * with 1 where a number is void: an answer that was not 200, a spin that is not in the ledger. Needs Linux.
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { startGenerator } from './generator.js';
import { requireProc } from './measure.js';
import { isDisturbed, type LoadResult, lostOf, type Measurement } from './measurement.js';
import { closeBooks, measurePeriod, WARM_UP_AGAIN_SECONDS } from './period.js';
import type { startService } from './service.js';
import { median } from './summary.js';

type Build = 'A' | 'B';
type Row = Pick<Measurement, 'spinsPerSecond' | 'load' | 'cpuPerSpin' | 'shares'> & {
  readonly build: Build;
  readonly round: number;
  readonly connections: number;
};

const WARM_UP_SECONDS = 4;
const PLAYERS = 1000;
const SHAPE = { ack: 'redis', frontEnds: 0, partners: 1, games: 1, gameType: 'slot' } as const;
const FIGURES = ['spins/s', 'server', 'redis', 'postgres', 'total', 'generator', 'p50 ms', 'p99 ms'] as const;
type Figure = (typeof FIGURES)[number];

function readOptions() {
  const { values } = parseArgs({
    options: {
      against: { type: 'string' },
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
  if (values.against === undefined) throw new Error('--against DIR names the build to compare with');
  return {
    dirs: { A: resolve(values.against), B: ROOT },
    rounds: whole('rounds', values.rounds),
    seconds: whole('seconds', values.seconds),
    connections: values.connections.split(',').map((each) => whole('connections', each)),
    profileDir: values.profile === undefined ? undefined : resolve(values.profile),
  };
}
type Options = ReturnType<typeof readOptions>;

const serviceModule = (dir: string): string => join(dir, 'dist', 'bench', 'service.js');

/** One start of one build, and a period for each number of connections. */
async function measureBuild(
  build: Build,
  round: number,
  { dirs, connections, seconds, profileDir }: Options,
  cleanup: Cleanup,
): Promise<{ rows: Row[]; faults: readonly string[] }> {
  const module = await import(pathToFileURL(serviceModule(dirs[build])).href);
  const profile = profileDir === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${join(profileDir, build)}`];
  const service = await (module.startService as typeof startService)(SHAPE, cleanup, profile);
  const generator = startGenerator(cleanup);
  const rows: Row[] = [];
  const loads: [string, LoadResult][] = [];
  for (const count of connections) {
    const order = {
      base: service.base,
      targets: service.targets,
      connections: count,
      players: PLAYERS,
      hasRequestId: true,
      rate: undefined,
    };
    const warmUpSeconds = rows.length === 0 ? WARM_UP_SECONDS : WARM_UP_AGAIN_SECONDS;
    const { warmUp, ...measured } = await measurePeriod(service, generator, order, {
      seconds,
      warmUpSeconds,
    });
    const row = { build, round, connections: count, ...measured };
    rows.push(row);
    loads.push([`${count} connections, warm-up`, warmUp], [`${count} connections`, measured.load]);
    console.log(lineOf(`${build} round ${round}`, count, (figure) => figureOf(row, figure), shareLine(row)));
  }
  return { rows, faults: (await closeBooks(loads, service.books)).faults };
}

function figureOf({ spinsPerSecond, load, cpuPerSpin }: Row, figure: Figure): number {
  if (figure === 'spins/s') return spinsPerSecond;
  if (figure === 'p50 ms') return load.p50Ms;
  if (figure === 'p99 ms') return load.p99Ms;
  return cpuPerSpin[figure] ?? 0;
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

function renderSummary(rows: readonly Row[], { connections, rounds }: Options): string {
  const lines: string[] = [];
  const find = (build: Build, round: number, count: number): Row =>
    rows.find((row) => row.build === build && row.round === round && row.connections === count)!;
  for (const count of connections) {
    const perRound = (value: (round: number) => number): number[] =>
      Array.from({ length: rounds }, (_, index) => value(index + 1));
    for (const build of ['A', 'B'] as const)
      lines.push(
        lineOf(`${build} median`, count, (figure) =>
          median(perRound((round) => figureOf(find(build, round, count), figure))),
        ),
      );
    const ratios = (figure: Figure): number[] =>
      perRound(
        (round) => figureOf(find('B', round, count), figure) / figureOf(find('A', round, count), figure),
      );
    lines.push(lineOf('B/A median', count, (figure) => median(ratios(figure))));
    for (const figure of ['spins/s', 'total'] as const)
      lines.push(
        `  ${figure} B/A by round: ${ratios(figure)
          .map((ratio) => ratio.toFixed(3))
          .join(', ')}`,
      );
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
  for (let round = 1; round <= options.rounds; round++)
    for (const build of ['A', 'B'] as const) {
      const cleanup = new Cleanup();
      const interrupted = (): void => {
        cleanup.run().finally(() => process.exit(130));
      };
      process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
      try {
        const measured = await measureBuild(build, round, options, cleanup);
        rows.push(...measured.rows);
        for (const fault of measured.faults) console.log(`VOID: ${build}, round ${round}: ${fault}`);
        if (measured.faults.length > 0) process.exitCode = 1;
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
