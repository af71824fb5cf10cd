/** A server that runs as a separate process: the built service, or a baseline for comparison. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { Client } from './client.js';
import { mainOf, ROOT } from './root.js';
import { until } from './wait.js';

const READY_WITHIN_MS = 60_000;
const END_WITHIN_MS = 20_000;
const POLL_MS = 10;
/** Number of characters of the output that are stored if the output does not go to a file. */
const OUTPUT_KEPT = 4_000_000;

export interface Launch {
  readonly env: NodeJS.ProcessEnv;
  /** Options of Node, which come before the program on the command line. */
  readonly nodeOptions?: readonly string[];
  /** The program, by default the service of this project's build. */
  readonly program?: string;
  readonly args?: readonly string[];
  /**
   * The last line that a server prints when it is ready: the address of the metrics for the service, the
   * address of the API for a baseline.
   */
  readonly lastLine?: 'API' | 'metrics';
  /** A file for the output instead of a pipe, so that a paused or killed process loses no line. */
  readonly logFile?: string;
}

export class ServerProcess {
  /** Resolves with the exit code, or with the name of the signal that ended the process. */
  readonly ended: Promise<number | string>;
  /** Addresses that the server has printed. */
  readonly #places = new Map<string, string>();
  #hasEnded = false;

  private constructor(
    readonly child: ChildProcess,
    /** Returns the output so far. */
    readonly output: () => string,
    private readonly lastLine: 'API' | 'metrics',
  ) {
    this.ended = once(child, 'exit').then(([code, signal]) => {
      this.#hasEnded = true;
      return (code ?? signal) as number | string;
    });
  }

  /** Starts the process. {@link ready} resolves once the process answers requests. */
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

  /**
   * The API address as `http://host:port`, or undefined if the server has no API or has not printed the
   * address yet.
   */
  get base(): string | undefined {
    const url = this.#place('API');
    return url && new URL(url).origin;
  }

  /** The URL of the metrics, or undefined if the server has none or has not printed the URL yet. */
  get metrics(): string | undefined {
    return this.#place('metrics');
  }

  /** A client of the server's API. */
  get client(): Client {
    return new Client(this.base ?? 'http://127.0.0.1:0');
  }

  /**
   * Resolves once the server reports that it is ready.
   * @throws Error if the server ends first or takes too long
   */
  async ready(withinMs = READY_WITHIN_MS): Promise<this> {
    const isReady = (): boolean => {
      if (this.#place(this.lastLine) !== undefined) return true;
      if (this.#hasEnded)
        throw new Error(
          `The server ended with ${this.child.exitCode ?? this.child.signalCode}: ${this.output()}`,
        );
      return false;
    };
    await until(isReady, `process ${this.pid} is ready`, withinMs, POLL_MS);
    return this;
  }

  /**
   * Sends a signal and waits for the end of the process.
   * @returns the exit code, or the name of the signal
   */
  end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    this.child.kill(signal);
    return this.ended;
  }

  /** Asks the process to end and waits for its end. A process that takes too long is killed. */
  async stop(): Promise<void> {
    await endProcess(this.child);
  }

  /** Pauses the process. Its connections stay open, but it answers nothing. */
  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }

  /** Returns the metrics in the form that Prometheus reads. */
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

/** Asks a process to end and waits for its end. A process that takes too long is killed. */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  const deadline = setTimeout(() => child.kill('SIGKILL'), END_WITHIN_MS);
  child.kill('SIGTERM');
  await ended;
  clearTimeout(deadline);
}
