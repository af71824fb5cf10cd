/**
 * `spindle rng`: runs statistical tests of the program's random draws, and exports random bytes for external
 * tests (docs/compliance.md).
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { drawSeed, type Of, SUBJECTS, type TallyTask, testsOf, wordsOf } from '../../workers/tallyDraws.js';
import { DEMO_SHEET } from '../domain/demoSheet.js';
import { checkParSheet, type ParSheet } from '../domain/par.js';
import { addCounts, judge, type RandomTest, type RandomTestVerdict } from '../domain/rng/randomTest.js';
import { openThreads } from '../engine/blocks/threads.js';
import { lineOf } from '../platform/secretsInLogs.js';
import { UsageError } from './command.js';
import { table } from './output.js';
import { manifestHash } from './programCommands.js';

const SIZE_MAX = 10_000_000_000;
const BYTES_MAX = 2 ** 50;
/** Number of ranges of draws that a thread counts in one task. */
const TASK_STRETCHES = 16;
const THREADS_MAX = 16;

interface TestOptions {
  readonly of: Of;
  readonly sheet?: string;
  readonly seed?: string;
  readonly size?: number;
  readonly json?: boolean;
  readonly version: string;
}

/** Report of a test run. The same seed, size and version give the same report byte for byte. */
interface Report extends RandomTestVerdict {
  readonly of: Of;
  /** Seed in hexadecimal. */
  readonly seed: string;
  readonly size: number;
  readonly version: string;
  /** SHA-256 of the build's list of files; null if there is none. */
  readonly manifest: string | null;
  readonly node: string;
  readonly openssl: string;
}

/** @returns the exit status: 0 if all tests passed, 1 if not */
export async function rngTest({ of, sheet: file, json, version, ...options }: TestOptions): Promise<number> {
  const { usual, least, unit } = SUBJECTS[of];
  const size = options.size ?? usual;
  if (size < least || size > SIZE_MAX) {
    throw new UsageError(`--size must be ${grouped(least)} to ${grouped(SIZE_MAX)} ${unit}`);
  }
  if (file !== undefined && of !== 'outcomes') throw new UsageError('--sheet requires --of outcomes');
  const seed = seedOf(options.seed);
  const sheet = sheetOf(file);
  const verdict = await runTests({ of, seed, sheet }, size);
  const { node, openssl } = process.versions;
  const report: Report = {
    of,
    seed: seed.toString('hex'),
    size,
    ...verdict,
    version,
    manifest: manifestHash(),
    node,
    openssl,
  };
  process.stdout.write(json === true ? `${JSON.stringify(report)}\n` : textOf(report));
  return report.passed ? 0 : 1;
}

async function runTests(
  run: Pick<TallyTask, 'of' | 'seed' | 'sheet'>,
  size: number,
): Promise<RandomTestVerdict> {
  const threads = openThreads(
    new URL('../../workers/tallyDraws.js', import.meta.url).pathname,
    Math.min(THREADS_MAX, availableParallelism()),
  );
  const tests = testsOf(run.of, run.sheet);
  try {
    return await judge(tests, size, (draw, units) => countsOf(threads, tests, { ...run, draw, units }));
  } finally {
    await threads.destroy();
  }
}

/**
 * Draws the given number of units (words, outcomes, tickets or shoes) and returns the counts of each test.
 * The counts of the tasks are added in the order of the tasks, so that the same seed gives exactly the same
 * sums.
 */
async function countsOf(
  threads: ReturnType<typeof openThreads>,
  tests: readonly RandomTest<unknown>[],
  { units, ...run }: Omit<TallyTask, 'first'>,
): Promise<Float64Array[]> {
  const perTask = SUBJECTS[run.of].stretch * TASK_STRETCHES;
  const sums = tests.map(({ counters }) => new Float64Array(counters));
  const running: Promise<Float64Array[]>[] = [];
  const taken = async (): Promise<void> => {
    const counts = await running.shift()!;
    for (const [i, test] of tests.entries()) addCounts(test, sums[i]!, counts[i]!);
  };
  for (let done = 0; done < units; done += perTask) {
    const first = (done / perTask) * TASK_STRETCHES;
    const task: TallyTask = { ...run, first, units: Math.min(perTask, units - done) };
    running.push(threads.run(task) as Promise<Float64Array[]>);
    if (running.length > 2 * THREADS_MAX) await taken();
  }
  while (running.length > 0) await taken();
  return sums;
}

/** Runs `rng export`: writes the requested number of bytes, or until the reader closes the pipe. */
export async function rngExport(options: { readonly bytes: number; readonly seed?: string }): Promise<void> {
  if (options.bytes < 1 || options.bytes > BYTES_MAX) {
    throw new UsageError(`--bytes must be 1 to ${grouped(BYTES_MAX)}`);
  }
  const seed = seedOf(options.seed);
  const { stretch } = SUBJECTS.keystream;
  for (let left = options.bytes, number = 0; left > 0; left -= stretch * 4, number++) {
    const words = wordsOf(drawSeed('keystream', seed, 0, number, 0), stretch);
    const bytes = new Uint8Array(words.buffer, words.byteOffset, Math.min(left, words.byteLength));
    if (!process.stdout.write(bytes)) await once(process.stdout, 'drain');
  }
}

function seedOf(text: string | undefined): Buffer {
  if (text === undefined) return randomBytes(32);
  if (!/^[0-9a-fA-F]{64}$/.test(text)) throw new UsageError('--seed must be 64 hexadecimal digits');
  return Buffer.from(text, 'hex');
}

function sheetOf(file: string | undefined): ParSheet {
  let value: unknown = DEMO_SHEET;
  try {
    if (file !== undefined) value = JSON.parse(readFileSync(file === '-' ? 0 : file, 'utf8'));
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${lineOf(error)}`);
  }
  const checked = checkParSheet(value);
  if ('faults' in checked) {
    const [first] = checked.faults;
    throw new UsageError(`${file} is not a valid PAR sheet: ${first!.path || 'it'} ${first!.message}`);
  }
  return checked.sheet;
}

const grouped = (number: number): string => number.toLocaleString('en-US');
const rounded = (p: number | null): string =>
  p === null ? '' : p < 0.0001 ? p.toExponential(2) : p.toFixed(4);

function textOf({ tests, notApplicable, passed, ...report }: Report): string {
  const { of, seed, size, version, manifest, node, openssl } = report;
  const head = [
    `Random number tests, ${of}: ${passed ? 'PASSED' : 'FAILED'}`,
    `  program   spindle ${version}, manifest ${manifest ?? 'none'}`,
    `  runtime   Node ${node}, OpenSSL ${openssl}`,
    `  seed      ${seed}`,
    `  size      ${grouped(size)} ${SUBJECTS[of].unit}`,
    `  rule      a test fails if p < ${(0.01 / tests.length).toPrecision(2)}; if p < 0.01 it is repeated with 4 times the size, and fails if p < 0.01 again`,
  ];
  const rows = table(
    [
      { heading: 'test', value: ({ name }) => name },
      { heading: 'p', value: ({ p }) => rounded(p), kind: 'number' },
      { heading: 'drawn again', value: ({ repeated }) => rounded(repeated), kind: 'number' },
      { heading: 'result', value: (each) => (each.passed ? 'passed' : 'FAILED') },
    ],
    tests,
  );
  const left = notApplicable.map((name) => `${name}: not applicable to these draws\n`).join('');
  return `${head.join('\n')}\n\n${rows}${left}`;
}
