/**
 * `npm run bench -- [--suite targets,closed,open,kinds,frontEnds,growth | all] [--only SCENARIO,…] [--rounds N] [--seconds N]
 *                   [--warm-up N] [--retries 2] [--generator ring|autocannon] [--json FILE] [--profile DIR]`
 * `npm run bench -- --list`     the scenarios
 * `npm run bench -- --quick`    what to expect of this machine, in under two minutes (quick.ts)
 *
 * Measures the scenarios of a suite (scenarios.ts) in turn, one server under load at a time, round after round. Prints
 * tables, and for each suite appends a line of JSON to bench/results/runs.jsonl or the given file. Ends with 1 where a
 * number is void: an answer that was not 2xx, a spin that is not in the ledger. A missed target is printed, but does not
 * change the exit status. Needs Linux.
 */
import { execFile } from 'node:child_process';
import { appendFile, mkdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { GENERATORS, type GeneratorName } from './generator.js';
import { describeMachine } from './machine.js';
import { requireProc } from './measure.js';
import { isDisturbed, lostOf, type Measurement, type Run, type Turn } from './measurement.js';
import { quick } from './quick.js';
import { SCENARIOS, type Scenario, SUITES, type Suite, type SuiteName } from './scenarios.js';
import { PAR_SHEET } from './service.js';
import { renderSlowSeconds } from './slowSeconds.js';
import { summarise, verdictsOf } from './summary.js';
import { renderRun } from './table.js';
import { type TurnSettings, takeTurn } from './turn.js';

const BLOCK_OUTCOMES = 1_000_000;
const BLOCK_SECONDS = 1;
const WARM_UP_SECONDS = 3;
const RESULTS = join(ROOT, 'bench', 'results');

interface Options {
  readonly suites: readonly SuiteName[];
  readonly only: readonly string[] | undefined;
  readonly rounds: number | undefined;
  readonly seconds: number | undefined;
  readonly warmUpSeconds: number | undefined;
  /** How often a turn is taken again because the machine was busy with something else. */
  readonly retries: number;
  readonly jsonFile: string;
  readonly profileDir: string | undefined;
  readonly generator: GeneratorName;
  readonly lists: boolean;
  readonly isQuick: boolean;
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      suite: { type: 'string' },
      only: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      'warm-up': { type: 'string' },
      retries: { type: 'string' },
      json: { type: 'string', default: join(RESULTS, 'runs.jsonl') },
      profile: { type: 'string' },
      generator: { type: 'string', default: 'ring' },
      list: { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
    },
  });
  const number = (name: 'seconds' | 'warm-up' | 'rounds' | 'retries', least = 1): number | undefined => {
    if (values[name] === undefined) return undefined;
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < least)
      throw new Error(`--${name} must be a whole number, ${least} or more`);
    return value;
  };
  const only = values.only?.split(',');
  for (const name of only ?? [])
    if (!SCENARIOS.some((scenario) => scenario.name === name))
      throw new Error(`There is no scenario ${name}`);
  const all = Object.keys(SUITES) as SuiteName[];
  // With names only, the suites are those that they belong to.
  const named =
    only && all.filter((suite) => SCENARIOS.some((each) => each.suite === suite && only.includes(each.name)));
  const suites =
    values.suite === undefined
      ? (named ?? ['targets'])
      : values.suite === 'all'
        ? all
        : values.suite.split(',');
  for (const suite of suites)
    if (!Object.hasOwn(SUITES, suite)) throw new Error(`--suite takes ${all.join(', ')} or all`);
  const generator = GENERATORS.find((name) => name === values.generator);
  if (generator === undefined) throw new Error(`--generator takes ${GENERATORS.join(' or ')}`);
  return {
    suites: suites as SuiteName[],
    only,
    rounds: number('rounds'),
    seconds: number('seconds'),
    warmUpSeconds: number('warm-up'),
    retries: number('retries', 0) ?? 2,
    jsonFile: resolve(values.json),
    profileDir: values.profile === undefined ? undefined : resolve(values.profile),
    generator,
    lists: values.list,
    isQuick: values.quick,
  };
}

async function runSuite(suite: SuiteName, options: Options): Promise<Run> {
  const startedMs = performance.now();
  const at = new Date().toISOString();
  const machine = describeMachine();
  const { about, goals, ...usual }: Suite = SUITES[suite];
  const rounds = options.rounds ?? usual.rounds;
  const seconds = options.seconds ?? usual.seconds;
  const warmUpSeconds = options.warmUpSeconds ?? usual.warmUpSeconds ?? WARM_UP_SECONDS;
  const { profileDir, generator, only } = options;
  const scenarios = SCENARIOS.filter(
    (each) => each.suite === suite && (only === undefined || only.includes(each.name)),
  );
  console.log(`\n${suite}: ${about}`);
  const turns: Turn[] = [];
  const discarded: Turn[] = [];
  // The servers in turn, so that what drifts hits all of them.
  for (let round = 1; round <= rounds; round++) {
    const known = new Map<string, Measurement>();
    for (const scenario of scenarios) {
      // A turn in which the machine was busy with something else is taken again, a few times; whether it is depends on
      // that alone, never on what was measured.
      for (let retriesLeft = options.retries; ; retriesLeft--) {
        const turn = await turnOf(scenario, round, { seconds, warmUpSeconds, profileDir, generator }, known);
        const isLast = !turn.measurements.some(isDisturbed) || retriesLeft === 0;
        for (const measurement of turn.measurements) {
          console.log(progressLine(measurement));
          const { slowSeconds, load } = measurement;
          if (slowSeconds !== undefined && slowSeconds.length > 0)
            console.log(renderSlowSeconds(slowSeconds, Math.round(load.seconds)).join('\n'));
        }
        if (!isLast) console.log('  the machine was busy with something else: taken again');
        (isLast ? turns : discarded).push(turn);
        if (isLast) break;
      }
    }
  }
  const measurements = turns.flatMap((turn) => turn.measurements);
  return {
    at,
    suite,
    isWhole: only === undefined && rounds >= usual.rounds && seconds >= usual.seconds,
    machine,
    versions: turns.find(({ versions }) => versions !== undefined)?.versions,
    settings: {
      seconds,
      warmUpSeconds,
      rounds,
      parSheet: PAR_SHEET,
      generator: turns[0]?.generator ?? generator,
    },
    summaries: summarise(measurements),
    verdicts: verdictsOf(goals, measurements),
    blockMaking: suite === 'targets' ? await measureBlockMaking() : undefined,
    faults: [...turns, ...discarded].flatMap(({ scenario, round, faults }) =>
      faults.map((fault) => `${scenario}, round ${round}: ${fault}`),
    ),
    turns,
    discarded,
    tookSeconds: Math.round((performance.now() - startedMs) / 1000),
  };
}

/** One turn; what it started is ended, an interrupt by the user included. */
const turnOf = (
  scenario: Scenario,
  round: number,
  settings: TurnSettings,
  known: Map<string, Measurement>,
): Promise<Turn> => cleanedUp((cleanup) => takeTurn(scenario, round, settings, known, cleanup));

async function cleanedUp<T>(run: (cleanup: Cleanup) => Promise<T>): Promise<T> {
  const cleanup = new Cleanup();
  const interrupted = (): void => {
    cleanup.run().finally(() => process.exit(130));
  };
  process.once('SIGINT', interrupted).once('SIGTERM', interrupted);
  try {
    return await run(cleanup);
  } finally {
    await cleanup.run();
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
  }
}

function progressLine(measurement: Measurement): string {
  const { round, scenario, period, spinsPerSecond, load, cpuPerSpin, shares } = measurement;
  const percent = (share: number): string => `${Math.round(share * 100)} %`;
  return (
    `round ${round}  ${`${scenario}/${period}`.padEnd(22)} ${spinsPerSecond.toFixed(0).padStart(6)} spins/s, p99 ` +
    `${load.p99Ms.toFixed(1)} ms, ${cpuPerSpin.total!.toFixed(1)} µs CPU per spin; of the machine ` +
    `${percent(shares.idle)} idle, ${percent(lostOf(measurement))} lost to others`
  );
}

/** Outcomes per second of each sample PAR sheet (blockMaking.ts). */
async function measureBlockMaking(): Promise<Record<string, number>> {
  const program = join(ROOT, 'dist', 'bench', 'blockMaking.js');
  const args = [program, String(BLOCK_OUTCOMES), String(BLOCK_SECONDS)];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return (JSON.parse(stdout) as { outcomesPerSecond: Record<string, number> }).outcomesPerSecond;
}

function list(): void {
  for (const { suite, name, periods } of SCENARIOS)
    console.log(`${suite.padEnd(10)} ${name.padEnd(16)} ${periods.map((period) => period.name).join(', ')}`);
}

async function main(): Promise<void> {
  const options = readOptions();
  if (options.lists) return list();
  requireProc();
  if (options.isQuick) {
    if (!(await cleanedUp(quick))) process.exitCode = 1;
    return;
  }
  await mkdir(dirname(options.jsonFile), { recursive: true });
  for (const suite of options.suites) {
    const run = await runSuite(suite, options);
    await appendFile(options.jsonFile, `${JSON.stringify(run)}\n`);
    console.log(renderRun(run));
    if (run.faults.length > 0) process.exitCode = 1;
  }
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
