/** The processes and folders of a measurement: whatever was started is ended, however the run ends. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** The folder of package.json; this file runs as dist/bench/processes.js. */
export const ROOT = join(import.meta.dirname, '..', '..');

const READY_DEADLINE_MS = 60_000;
const END_DEADLINE_MS = 20_000;
const OUTPUT_KEPT = 4000;

/** Steps undone in reverse order; each is tried even where one fails. */
export class Cleanup {
  readonly #steps: (() => Promise<unknown> | unknown)[] = [];

  add(step: () => Promise<unknown> | unknown): void {
    this.#steps.push(step);
  }

  async run(): Promise<void> {
    for (const step of this.#steps.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        console.error('A step of the clean-up failed:', error);
      }
    }
  }
}

export interface ServerProcess {
  readonly pid: number;
  /** `http://host:port`; undefined where it serves no API. */
  readonly base: string | undefined;
  /** URL of its metrics; undefined where it has none. */
  readonly metrics: string | undefined;
}

/**
 * Starts a server as a Node process of its own and waits until it prints where it is: the service's last line of that is
 * `metrics http://host:port/metrics`, a baseline's `API http://host:port`.
 * @param args Node's own options, the program, its arguments.
 */
export async function startServerProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cleanup: Cleanup,
  lastLine: 'API' | 'metrics',
): Promise<ServerProcess> {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, NODE_ENV: 'production', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  cleanup.add(() => endProcess(child));
  let output = '';
  const place = (line: string): string | undefined =>
    new RegExp(`${line}\\s+(http://\\S+)\\s`).exec(output)?.[1];
  await new Promise<void>((resolve, reject) => {
    const deadline = setTimeout(() => reject(new Error(`Not ready in time: ${output}`)), READY_DEADLINE_MS);
    const read = (chunk: Buffer): void => {
      output = (output + chunk).slice(-OUTPUT_KEPT);
      if (place(lastLine) === undefined) return;
      clearTimeout(deadline);
      resolve();
    };
    child.stdout.on('data', read);
    child.stderr.on('data', read);
    child.once('exit', (code, signal) => {
      clearTimeout(deadline);
      reject(new Error(`The server ended with ${code ?? signal}: ${output}`));
    });
  });
  // What it says of its start matters only where that fails; what it says afterwards is a warning.
  child.stderr.pipe(process.stderr);
  const api = place('API');
  return { pid: child.pid!, base: api && new URL(api).origin, metrics: place('metrics') };
}

/** Asks a process to end and waits until it has; kills one that takes too long. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const deadline = setTimeout(() => child.kill('SIGKILL'), END_DEADLINE_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(deadline);
}
