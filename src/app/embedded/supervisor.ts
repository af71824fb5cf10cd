/**
 * Keeps a server, or another process of the program, running as a child process.
 *
 *  starting ──answers──▶ up ──dies──▶ waiting ──back-off over──▶ starting …
 *
 * `supervise` resolves when the server is up for the first time. Before that, it fails if the server dies
 * several times in a row or never answers. After that, the server is restarted indefinitely at the same
 * address. `stop` ends the server from every state, cleanly at first.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { reasonOf } from '../../platform/setupError.js';
import { DeathWatch } from './deathWatch.js';

export interface Launch {
  file: string;
  args: readonly string[];
  env: NodeJS.ProcessEnv;
  cwd: string;
  uid?: number | undefined;
  gid?: number | undefined;
  /**
   * Called with the started child if this process exchanges messages with it. Such a child writes to the
   * output of this process.
   */
  onChild?: (child: ChildProcess) => void;
}

export interface SupervisorOptions {
  /** Name of the server in the log, for example `redis`. */
  name: string;
  /** Log file for the output of the server; undefined if the launch has `onChild`. */
  logFile?: string;
  /** Called before every start. Prepares the start of the server and returns its command line. */
  launch: () => Promise<Launch>;
  /** Returns whether the server answers. Must return false instead of failing. */
  isReady: () => Promise<boolean>;
  /** Signals sent in turn, each followed by the deadline, before SIGKILL. */
  stopSignals: readonly NodeJS.Signals[];
  stopDeadlineMs: number;
  /** Deadline of the first start, in ms; default: {@link FIRST_READY_DEADLINE_MS}. */
  firstReadyDeadlineMs?: number;
  /** Number of attempts of the first start; default: {@link FIRST_STARTS_MAX}. */
  firstStartsMax?: number;
  /** Writes a line to the log when the server dies, is running again, or had to be killed. */
  onEvent: (line: string) => void;
}

export interface Supervisor {
  /** Returns the child's process id, or undefined while there is no child. */
  pid(): number | undefined;
  /** Ends the child and returns when it has ended. Repeated calls have no effect. */
  stop(): Promise<void>;
}

const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 5_000;
/** Uptime after which a server restarts with the minimum back-off, in ms. */
const STEADY_MS = 10_000;
const READY_POLL_MS = 20;
/**
 * Deadline of the first start, in ms. Redis loads about 100 MB of append-only file per second, so the
 * deadline is long enough for a very large file.
 */
const FIRST_READY_DEADLINE_MS = 300_000;
const FIRST_STARTS_MAX = 6;
const LOG_BYTES_MAX = 16 << 20;

export async function supervise(options: SupervisorOptions): Promise<Supervisor> {
  const keeper = new Keeper(options);
  await keeper.start();
  return keeper;
}

/** Running child, with a promise of its exit status as text. */
interface Running {
  child: ChildProcess;
  ended: Promise<string>;
}

class Keeper implements Supervisor {
  readonly #halt = new AbortController();
  #running: Running | undefined;
  #loop: Promise<void> = Promise.resolve();
  #stopped: Promise<void> | undefined;
  readonly #deathWatch: DeathWatch;
  /** Makes the server end if this process ends without stop(), for example because of an uncaught error. */
  readonly #onProcessExit = () => this.#running?.child.kill(this.options.stopSignals[0]);

  constructor(private readonly options: SupervisorOptions) {
    this.#deathWatch = new DeathWatch(options);
  }

  pid(): number | undefined {
    return this.#running?.child.pid;
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  /** Resolves when the server answers for the first time. The restart loop continues until stop(). */
  async start(): Promise<void> {
    process.once('exit', this.#onProcessExit);
    const { name, logFile, firstReadyDeadlineMs = FIRST_READY_DEADLINE_MS } = this.options;
    let onUp = () => {};
    const up = new Promise<'up'>((resolve) => {
      onUp = () => resolve('up');
    });
    this.#loop = this.#keepAlive(onUp);
    const late = delay(firstReadyDeadlineMs, 'late' as const, { signal: this.#halt.signal, ref: false });
    late.catch(() => {});
    try {
      const outcome = await Promise.race([up, this.#loop, late]);
      if (outcome === 'up') return;
    } catch (error) {
      await this.stop().catch(() => {});
      throw error;
    }
    await this.stop();
    throw new Error(`${name} did not respond within ${firstReadyDeadlineMs / 1000} s${lastLines(logFile)}`);
  }

  async #keepAlive(onUp: () => void): Promise<void> {
    const { name, onEvent, logFile, firstStartsMax = FIRST_STARTS_MAX } = this.options;
    let backoffMs = BACKOFF_MS_MIN;
    let everUp = false;
    let diedAtMs = 0;
    for (let starts = 1; !this.#halt.signal.aborted; starts++) {
      let upAtMs: number | undefined;
      const how = await this.#runOnce(everUp, () => {
        upAtMs = performance.now();
        if (everUp) onEvent(`${name} is running again after ${Math.round(upAtMs - diedAtMs)} ms`);
        everUp = true;
        onUp();
      });
      if (this.#halt.signal.aborted) return;
      diedAtMs = upAtMs === undefined && diedAtMs > 0 ? diedAtMs : performance.now();
      if (!everUp && starts >= firstStartsMax) {
        throw new Error(`${name} did not start: ${how}${lastLines(logFile)}`);
      }
      if (upAtMs !== undefined && performance.now() - upAtMs >= STEADY_MS) backoffMs = BACKOFF_MS_MIN;
      onEvent(`${name} ended unexpectedly (${how}); restarting it in ${backoffMs} ms`);
      await delay(backoffMs, undefined, { signal: this.#halt.signal }).catch(() => {});
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MS_MAX);
    }
  }

  /** Runs the server once, from launch to exit. Returns how it ended. */
  async #runOnce(everUp: boolean, onUp: () => void): Promise<string> {
    let launch: Launch;
    try {
      launch = await this.options.launch();
    } catch (error) {
      // An error before the first answer fails the start. Later errors may be temporary, for example a full
      // disk, so the start is retried.
      if (!everUp) throw error;
      return reasonOf(error);
    }
    if (this.#halt.signal.aborted) return 'stopped';
    const running = startChild(launch, this.options.logFile);
    this.#running = running;
    this.#deathWatch.watch(running.child.pid);
    let alive = true;
    running.ended.then(() => {
      alive = false;
      this.#deathWatch.watch(undefined);
    });
    while (alive && !this.#halt.signal.aborted) {
      if (await this.options.isReady()) {
        if (alive && !this.#halt.signal.aborted) onUp();
        break;
      }
      await Promise.race([running.ended, delay(READY_POLL_MS)]);
    }
    const how = await running.ended;
    this.#running = undefined;
    return how;
  }

  async #end(): Promise<void> {
    this.#halt.abort();
    const { name, stopSignals, stopDeadlineMs, onEvent } = this.options;
    const running = this.#running;
    if (running) {
      for (const signal of stopSignals) {
        running.child.kill(signal);
        if (await endsWithin(running.ended, stopDeadlineMs)) break;
        onEvent(`${name} did not end within ${stopDeadlineMs} ms after ${signal}`);
      }
      // SIGKILL has no effect on a child that has already ended.
      running.child.kill('SIGKILL');
    }
    await this.#loop.catch(() => {});
    this.#deathWatch.close();
    process.off('exit', this.#onProcessExit);
  }
}

function startChild(launch: Launch, logFile: string | undefined): Running {
  // The child writes to the log file directly. With a pipe, it would die of a broken pipe when this process
  // ends.
  const log = logFile === undefined ? undefined : openLog(logFile);
  // The child inherits this umask, so that no other user can read the files it creates.
  const before = process.umask(0o077);
  try {
    const child = spawn(launch.file, launch.args, {
      cwd: launch.cwd,
      env: launch.env,
      stdio: log === undefined ? ['ignore', 'inherit', 'inherit', 'ipc'] : ['ignore', log, log],
      // Structured clones keep values such as NaN, which JSON lacks.
      serialization: 'advanced',
      // The child gets its own process group, so that Ctrl-C in a terminal reaches only Spindle, which ends
      // its stores last.
      detached: true,
      ...(launch.uid === undefined ? {} : { uid: launch.uid }),
      ...(launch.gid === undefined ? {} : { gid: launch.gid }),
    });
    const ended = new Promise<string>((resolve) => {
      // Unlike `exit`, `close` follows the last message of the child.
      child.once('close', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
      child.on('error', (error) => {
        if (child.pid === undefined) resolve(reasonOf(error));
      });
    });
    launch.onChild?.(child);
    return { child, ended };
  } finally {
    process.umask(before);
    if (log !== undefined) closeSync(log);
  }
}

function openLog(path: string): number {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

/** Returns the last lines of a log file in parentheses, after a space. */
function lastLines(path: string | undefined): string {
  if (path === undefined) return '';
  try {
    const lines = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '');
    return ` (${path}: ${lines.slice(-2).join(' | ')})`;
  } catch {
    return ` (see ${path})`;
  }
}

async function endsWithin(ended: Promise<string>, deadlineMs: number): Promise<boolean> {
  const timer = new AbortController();
  const late = delay(deadlineMs, false, { signal: timer.signal }).catch(() => false);
  const inTime = await Promise.race([ended.then(() => true), late]);
  timer.abort();
  return inTime;
}
