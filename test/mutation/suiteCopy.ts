/**
 * Makes a copy of the project and runs tests of the suite on its sources and build, into which a fault was
 * put.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { transform } from 'esbuild';
import { ROOT } from '../support/root.js';
import { type Fault, withFault } from './mutant.js';

export interface SuiteTest {
  readonly file: string;
  /** Full name of the test: the titles of its suites and its own title. */
  readonly test: string;
}

export interface TestResult extends SuiteTest {
  readonly isPassed: boolean;
  readonly failure: string;
}

/** Escapes a text for a regular expression. */
export const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Folders that are the same in each copy and are linked. */
const LINKED = ['node_modules', '.cache'];
const LEFT_OUT = [...LINKED, '.git'];

export class SuiteCopy {
  private constructor(private readonly root: string) {}

  static async make(): Promise<SuiteCopy> {
    const root = await mkdtemp(join(tmpdir(), 'spindle-suite-'));
    const filter = (path: string): boolean => !LEFT_OUT.includes(relative(ROOT, path));
    await cp(ROOT, root, { recursive: true, filter });
    for (const name of LINKED) await symlink(join(ROOT, name), join(root, name));
    return new SuiteCopy(root);
  }

  remove(): Promise<void> {
    return rm(this.root, { recursive: true, force: true });
  }

  /**
   * Puts faults into the sources and their build.
   * @returns a function that removes them
   */
  async plant(faults: readonly Fault[]): Promise<() => Promise<void>> {
    const before = new Map<string, Buffer>();
    const write = async (file: string, text: string): Promise<void> => {
      const path = join(this.root, file);
      if (!before.has(path)) before.set(path, await readFile(path));
      await writeFile(path, text);
    };
    for (const fault of faults) {
      const text = withFault(await readFile(join(this.root, fault.file), 'utf8'), fault);
      await write(fault.file, text);
      if (!fault.file.endsWith('.ts')) continue;
      const { code } = await transform(text, { loader: 'ts', format: 'esm', target: 'node20' });
      await write(join('dist', fault.file.replace(/\.ts$/, '.js')), code);
    }
    return async () => {
      for (const [path, bytes] of before) await writeFile(path, bytes);
    };
  }

  /**
   * Runs tests with servers of their own.
   * @throws if a test did not run, for example because its set-up failed
   */
  async run(tests: readonly SuiteTest[]): Promise<TestResult[]> {
    const files = [...new Set(tests.map(({ file }) => file))];
    const names = `^(${tests.map(({ test }) => escaped(test)).join('|')})$`;
    const written = join(this.root, 'results.json');
    await rm(written, { force: true });
    const projects = ['unit', 'service', 'faults'].flatMap((name) => ['--project', name]);
    const args = ['run', ...projects, ...files, '--testNamePattern', names];
    const runner = join(this.root, 'node_modules', 'vitest', 'vitest.mjs');
    const child = spawn(process.execPath, [runner, ...args, '--reporter=json', `--outputFile=${written}`], {
      cwd: this.root,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, TMPDIR: process.env.TMPDIR },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk;
      });
    }
    await once(child, 'close');
    const text = await readFile(written, 'utf8').catch(() => {
      throw new Error(`The tests did not run: ${output}`);
    });
    return tests.map((wanted) => resultOf(JSON.parse(text) as Report, this.root, wanted));
  }
}

/** The JSON report of the test runner. */
interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages?: readonly string[];
    }[];
  }[];
}

function resultOf({ testResults }: Report, root: string, wanted: SuiteTest): TestResult {
  const ran = testResults
    .filter(({ name }) => name === join(root, wanted.file))
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ fullName, status }) => fullName === wanted.test && ['passed', 'failed'].includes(status));
  if (ran.length !== 1) {
    const why = testResults.map(({ message }) => message).join('\n');
    throw new Error(`${wanted.file} ran «${wanted.test}» ${ran.length} times: ${why}`);
  }
  const { status, failureMessages = [] } = ran[0]!;
  return { ...wanted, isPassed: status === 'passed', failure: failureMessages.join('\n') };
}
