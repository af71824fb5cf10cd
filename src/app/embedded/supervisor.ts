/**
 * A server kept alive as a child process.
 *
 *   starting ──answers──▶ up ──dies──▶ waiting ──back-off over──▶ starting …
 *
 * `supervise` resolves at the first *up*. Until then a server that dies a few times in a row, or never answers, is an
 * error; from then on it is started again for as long as it takes, at the address that its users know. `stop` ends it
 * from each of the states, in an orderly way first.
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
}

export interface SupervisorOptions {
  /** As the log names it, e.g. `redis`. */
  name: string;
  /** Takes what the server prints. */
  logFile: string;
  /** Called before every start: makes way for the server and says how to start it. */
  launch: () => Promise<Launch>;
  /** Whether the server answers; false, not an error, while it doesn't. */
  isReady: () => Promise<boolean>;
  /** Sent one after the other, each with the deadline, before SIGKILL. */
  stopSignals: readonly NodeJS.Signals[];
  stopDeadlineMs: number;
  /** A line for the log whenever the server dies, comes back or has to be killed. */
  onEvent: (line: string) => void;
}

export interface Supervisor {
  /** The child's process id; undefined while there is none. */
  pid(): number | undefined;
  /** Ends the child and returns when it is gone. Calling it again changes nothing. */
  stop(): Promise<void>;
}

const BACKOFF_MS_MIN = 100;
const BACKOFF_MS_MAX = 5_000;
/** A server that was up for as long as this starts again with the shortest back-off. */
const STEADY_MS = 10_000;
const READY_POLL_MS = 20;
/** Redis loads some 100 MB of log in a second: this is room for a very big one. */
const FIRST_READY_DEADLINE_MS = 300_000;
const FIRST_STARTS_MAX = 6;
const LOG_BYTES_MAX = 16 << 20;

export async function supervise(options: SupervisorOptions): Promise<Supervisor> {
  const keeper = new Keeper(options);
  await keeper.start();
  return keeper;
}

/** A child and the promise of its end, which says in words how it ended. */
interface Running {
  child: ChildProcess;
  ended: Promise<string>;
}

class Keeper implements Supervisor {
  readonly #options: SupervisorOptions;
  readonly #halt = new AbortController();
  #running: Running | undefined;
  #loop: Promise<void> = Promise.resolve();
  #stopped: Promise<void> | undefined;
  readonly #deathWatch: DeathWatch;
  /** This process ends without stop(), e.g. by an uncaught error: the server is at least told to end. */
  readonly #onProcessExit = () => this.#running?.child.kill(this.#options.stopSignals[0]);

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#deathWatch = new DeathWatch(options);
  }

  pid(): number | undefined {
    return this.#running?.child.pid;
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  /** Resolves when the server answers for the first time; the loop goes on until stop(). */
  async start(): Promise<void> {
    process.once('exit', this.#onProcessExit);
    const { name, logFile } = this.#options;
    let onUp = () => {};
    const up = new Promise<'up'>((resolve) => {
      onUp = () => resolve('up');
    });
    this.#loop = this.#keepAlive(onUp);
    const late = delay(FIRST_READY_DEADLINE_MS, 'late' as const, { signal: this.#halt.signal, ref: false });
    late.catch(() => {});
    try {
      const outcome = await Promise.race([up, this.#loop, late]);
      if (outcome === 'up') return;
    } catch (error) {
      await this.stop().catch(() => {});
      throw error;
    }
    await this.stop();
    throw new Error(
      `${name} did not answer within ${FIRST_READY_DEADLINE_MS / 1000} s (${lastLines(logFile)})`,
    );
  }

  async #keepAlive(onUp: () => void): Promise<void> {
    const { name, onEvent, logFile } = this.#options;
    let backoffMs = BACKOFF_MS_MIN;
    let everUp = false;
    let diedAtMs = 0;
    for (let starts = 1; !this.#halt.signal.aborted; starts++) {
      let upAtMs: number | undefined;
      const how = await this.#runOnce(everUp, () => {
        upAtMs = performance.now();
        if (everUp) onEvent(`${name} is back after ${Math.round(upAtMs - diedAtMs)} ms`);
        everUp = true;
        onUp();
      });
      if (this.#halt.signal.aborted) return;
      diedAtMs = upAtMs === undefined && diedAtMs > 0 ? diedAtMs : performance.now();
      if (!everUp && starts >= FIRST_STARTS_MAX) {
        throw new Error(`${name} does not start: ${how} (${lastLines(logFile)})`);
      }
      if (upAtMs !== undefined && performance.now() - upAtMs >= STEADY_MS) backoffMs = BACKOFF_MS_MIN;
      onEvent(`${name} ended unasked (${how}): starting it again in ${backoffMs} ms`);
      await delay(backoffMs, undefined, { signal: this.#halt.signal }).catch(() => {});
      backoffMs = Math.min(backoffMs * 2, BACKOFF_MS_MAX);
    }
  }

  /** One life of the server, from launch to its end. Says how it ended. */
  async #runOnce(everUp: boolean, onUp: () => void): Promise<string> {
    let launch: Launch;
    try {
      launch = await this.#options.launch();
    } catch (error) {
      // Before the first answer this is for whoever starts us; later a folder that is full now may be free soon.
      if (!everUp) throw error;
      return reasonOf(error);
    }
    if (this.#halt.signal.aborted) return 'stopped';
    const running = startChild(launch, this.#options.logFile);
    this.#running = running;
    this.#deathWatch.watch(running.child.pid);
    let alive = true;
    running.ended.then(() => {
      alive = false;
      this.#deathWatch.watch(undefined);
    });
    while (alive && !this.#halt.signal.aborted) {
      if (await this.#options.isReady()) {
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
    const { name, stopSignals, stopDeadlineMs, onEvent } = this.#options;
    const running = this.#running;
    if (running) {
      for (const signal of stopSignals) {
        running.child.kill(signal);
        if (await endsWithin(running.ended, stopDeadlineMs)) break;
        onEvent(`${name} did not end within ${stopDeadlineMs} ms of ${signal}`);
      }
      // Has no effect on a child that has ended.
      running.child.kill('SIGKILL');
    }
    await this.#loop.catch(() => {});
    this.#deathWatch.close();
    process.off('exit', this.#onProcessExit);
  }
}

function startChild(launch: Launch, logFile: string): Running {
  // The file itself and not a pipe: the server must not die of a broken pipe when this process does.
  const log = openLog(logFile);
  // The server inherits it: whatever files it makes, no other user reads them.
  const before = process.umask(0o077);
  try {
    const child = spawn(launch.file, launch.args, {
      cwd: launch.cwd,
      env: launch.env,
      stdio: ['ignore', log, log],
      // A process group of its own: Ctrl-C in the terminal is for Spindle, which ends its stores last.
      detached: true,
      ...(launch.uid === undefined ? {} : { uid: launch.uid }),
      ...(launch.gid === undefined ? {} : { gid: launch.gid }),
    });
    const ended = new Promise<string>((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ? `signal ${signal}` : `exit code ${code}`));
      child.on('error', (error) => {
        if (child.pid === undefined) resolve(reasonOf(error));
      });
    });
    return { child, ended };
  } finally {
    process.umask(before);
    closeSync(log);
  }
}

function openLog(path: string): number {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size > LOG_BYTES_MAX) renameSync(path, `${path}.1`);
  return openSync(path, 'a', 0o600);
}

function lastLines(path: string): string {
  try {
    const lines = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '');
    return `${path}: ${lines.slice(-2).join(' | ')}`;
  } catch {
    return `see ${path}`;
  }
}

async function endsWithin(ended: Promise<string>, deadlineMs: number): Promise<boolean> {
  const timer = new AbortController();
  const late = delay(deadlineMs, false, { signal: timer.signal }).catch(() => false);
  const inTime = await Promise.race([ended.then(() => true), late]);
  timer.abort();
  return inTime;
}
