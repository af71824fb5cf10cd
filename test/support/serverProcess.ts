/** A server as a process of its own: the service from a build, or a baseline that it is compared with. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { Client } from './client.js';
import { mainOf, ROOT } from './root.js';
import { until } from './wait.js';

const READY_WITHIN_MS = 60_000;
const END_WITHIN_MS = 20_000;
const POLL_MS = 10;
/** Characters of the output that are kept where it is not a file. */
const OUTPUT_KEPT = 4_000_000;

export interface Launch {
  readonly env: NodeJS.ProcessEnv;
  /** Node's own options, before the program. */
  readonly nodeOptions?: readonly string[];
  /** The program; without it the service of this project's build. */
  readonly program?: string;
  readonly args?: readonly string[];
  /** What it prints last once it is ready: the service its metrics, a baseline its API. */
  readonly lastLine?: 'API' | 'metrics';
  /** Takes the output in place of a pipe: a process that is stopped or killed loses no line of it. */
  readonly logFile?: string;
}

export class ServerProcess {
  readonly child: ChildProcess;
  /** Resolves with the exit code or the signal's name. */
  readonly ended: Promise<number | string>;
  /** The output so far. */
  readonly output: () => string;
  readonly #lastLine: 'API' | 'metrics';
  /** What it printed of where it is. */
  readonly #places = new Map<string, string>();
  #hasEnded = false;

  private constructor(child: ChildProcess, output: () => string, lastLine: 'API' | 'metrics') {
    this.child = child;
    this.output = output;
    this.#lastLine = lastLine;
    this.ended = once(child, 'exit').then(([code, signal]) => {
      this.#hasEnded = true;
      return (code ?? signal) as number | string;
    });
  }

  /** Starts the process; {@link ready} tells when it serves. */
  static launch({
    env,
    nodeOptions = [],
    program = mainOf(ROOT),
    args = [],
    lastLine = 'metrics',
    logFile,
  }: Launch): ServerProcess {
    const log = logFile === undefined ? undefined : openSync(logFile, 'a');
    const from = logFile === undefined ? 0 : statSync(logFile).size;
    const child = spawn(process.execPath, [...nodeOptions, program, ...args], {
      cwd: ROOT,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      stdio: ['ignore', log ?? 'pipe', log ?? 'pipe'],
    });
    if (log !== undefined) closeSync(log);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        text = (text + chunk).slice(-OUTPUT_KEPT);
      });
    }
    const output = (): string => (logFile === undefined ? text : textFrom(logFile, from));
    return new ServerProcess(child, output, lastLine);
  }

  get pid(): number {
    return this.child.pid!;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** `http://host:port`; undefined where it serves no API, or does not say so yet. */
  get base(): string | undefined {
    const url = this.#place('API');
    return url && new URL(url).origin;
  }

  /** URL of its metrics; undefined where it has none, or does not say so yet. */
  get metrics(): string | undefined {
    return this.#place('metrics');
  }

  /** Talks to its API. */
  get client(): Client {
    return new Client(this.base ?? 'http://127.0.0.1:0');
  }

  /** Resolves once it says that it is ready. @throws Error where it ends before, or takes too long. */
  async ready(withinMs = READY_WITHIN_MS): Promise<this> {
    const isReady = (): boolean => {
      if (this.#place(this.#lastLine) !== undefined) return true;
      if (this.#hasEnded)
        throw new Error(
          `The server ended with ${this.child.exitCode ?? this.child.signalCode}: ${this.output()}`,
        );
      return false;
    };
    await until(isReady, `process ${this.pid} is ready`, withinMs, POLL_MS);
    return this;
  }

  /** Sends a signal and waits for the end. @returns the exit code, or the signal's name. */
  end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    this.child.kill(signal);
    return this.ended;
  }

  /** Asks the process to end and waits until it has; kills one that takes too long. */
  async stop(): Promise<void> {
    await endProcess(this.child);
  }

  /** Stops it where it is: its connections stay open and nothing is answered. */
  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }

  /** Its metrics as Prometheus reads them. */
  async scrape(withinMs = END_WITHIN_MS): Promise<string> {
    return (await fetch(this.metrics!, { signal: AbortSignal.timeout(withinMs) })).text();
  }

  #place(line: 'API' | 'metrics'): string | undefined {
    const known =
      this.#places.get(line) ?? new RegExp(`^ *${line} +(http\\S+)\\s`, 'm').exec(this.output())?.[1];
    if (known !== undefined) this.#places.set(line, known);
    return known;
  }
}

function textFrom(path: string, position: number): string {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(fstatSync(file).size - position);
    const length = readSync(file, bytes, 0, bytes.length, position);
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(file);
  }
}

/** Asks a process to end and waits until it has; kills one that takes too long. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const deadline = setTimeout(() => child.kill('SIGKILL'), END_WITHIN_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(deadline);
}
