/**
 * Starts front ends as child processes and keeps them running (FRONT_ENDS). All of them listen on the same
 * port (SO_REUSEPORT), and the kernel distributes the connections.
 */
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import type { Logger } from 'pino';
import type { Finding, Problems } from '../../engine/problems.js';
import { HEALTHY, type Health, type Service, unhealthy } from '../../platform/runtime/service.js';
import { withTimeout } from '../../platform/runtime/withTimeout.js';
import { lineOf } from '../../platform/secretsInLogs.js';
import type { Config } from '../config.js';
import { SetupError, type Supervisor, supervise } from '../embedded/index.js';
import type { Metrics } from '../metrics/metrics.js';
import type { MetricSamples } from '../metrics/scraped.js';
import type { FrontEndMessage, ParentMessage } from './parentProcess.js';
import { frontEndStopMs } from './runProgram.js';

/**
 * Deadline of the first start of a front end, in ms. Before a front end is ready, it reads the request-id
 * filters, which takes long with a large ledger.
 */
const READY_DEADLINE_MS = 86_400_000;
/** Maximum wait for the metrics of a front end, in ms. It is longer than the wait for a store in a scrape. */
const METRICS_WITHIN_MS = 2000;
const PING_EVERY_MS = 1000;
/**
 * Number of unanswered pings after which a front end counts as hanging, and after which it is replaced. The
 * kernel gives a hanging front end connections that nobody accepts.
 */
const HANGS_AFTER = 3;
const REPLACED_AFTER = 5;
const MAIN = join(import.meta.dirname, '..', '..', 'main.js');

interface Surroundings {
  readonly env: NodeJS.ProcessEnv;
  /** Time after which a stopping front end is killed, in ms. */
  readonly stopDeadlineMs: number;
  /** Writes a line to the log. */
  readonly onEvent: (line: string) => void;
  /** Called when the front end has become ready or has ended. */
  readonly onChanged: () => void;
}

class FrontEndProcess {
  readonly #surroundings: Surroundings;
  #supervisor: Supervisor | undefined;
  #child: ChildProcess | undefined;
  #problem: string | undefined;
  #asked: Promise<readonly MetricSamples[] | undefined> | undefined;
  #answer: (metrics: readonly MetricSamples[] | undefined) => void = () => {};
  #unanswered = 0;
  /** Time from which the front end has not been running or has not answered, in ms since the epoch. */
  #downSinceMs = Date.now();
  isReady = false;
  starts = 0;
  /** Number of scrapes without the metrics of this front end. */
  missedScrapes = 0;

  constructor(
    readonly name: string,
    surroundings: Surroundings,
  ) {
    this.#surroundings = surroundings;
  }

  /** Starts the front end and resolves once it is ready. */
  async start(): Promise<void> {
    const { env, stopDeadlineMs, onEvent } = this.#surroundings;
    try {
      this.#supervisor = await supervise({
        name: this.name,
        launch: async () => ({
          file: process.execPath,
          args: [...process.execArgv, MAIN],
          env: { ...env, FRONT_END_NAME: this.name },
          cwd: process.cwd(),
          onChild: (child) => this.#watch(child),
        }),
        isReady: async () => this.isReady,
        stopSignals: ['SIGTERM'],
        stopDeadlineMs,
        firstReadyDeadlineMs: READY_DEADLINE_MS,
        firstStartsMax: 1,
        onEvent,
      });
    } catch (error) {
      throw new SetupError(this.#problem ?? lineOf(error));
    }
  }

  async stop(): Promise<void> {
    await this.#supervisor?.stop();
  }

  /** Returns no metrics if the front end is not ready, can't read them, or does not answer in time. */
  async metrics(): Promise<readonly MetricSamples[]> {
    if (this.isReady) {
      // Only one question waits for an answer at a time, however long a paused front end takes.
      this.#asked ??= this.#ask();
      const metrics = await withTimeout(this.#asked, METRICS_WITHIN_MS).catch(() => undefined);
      if (metrics !== undefined) return metrics;
    }
    // During the first start, nobody expects metrics of the front end yet.
    if (this.#supervisor !== undefined) this.missedScrapes++;
    return [];
  }

  #ask(): Promise<readonly MetricSamples[] | undefined> {
    return new Promise((resolve) => {
      this.#answer = resolve;
      // A failed send means that the front end is ending. The scrape then misses it.
      this.#send({ kind: 'metrics' });
    });
  }

  /** Undefined if the front end serves. */
  get problem(): { readonly message: string; readonly since: Date } | undefined {
    const since = new Date(this.#downSinceMs);
    const isHanging = this.isReady && this.#unanswered >= HANGS_AFTER;
    if (this.isReady && !isHanging) return undefined;
    const reason = this.#problem === undefined ? '' : `: ${this.#problem}`;
    const state = isHanging
      ? 'does not respond and is being replaced'
      : this.#supervisor === undefined
        ? 'is starting'
        : `is not running${reason}. It was started ${this.starts} times`;
    return { message: `${this.name} ${state}`, since };
  }

  /**
   * Asks whether the front end lives, with the problems of this process. A front end that has left
   * several questions unanswered is killed, and its supervisor starts it again.
   * @param isLate true if this process was paused itself, so that an answer may still be unread
   */
  ping(problems: readonly Finding[], isLate: boolean): void {
    if (!this.isReady) return;
    if (isLate) this.#unanswered = 0;
    if (this.#unanswered === REPLACED_AFTER) {
      this.#surroundings.onEvent(`${this.name} does not respond; replacing it`);
      this.#child?.kill('SIGKILL');
    }
    if (this.#unanswered === 0) this.#downSinceMs = Date.now();
    if (this.#unanswered++ < REPLACED_AFTER) this.tell(problems);
  }

  tell(problems: readonly Finding[]): void {
    if (this.isReady) this.#send({ kind: 'ping', problems });
  }

  #send(message: ParentMessage): void {
    this.#child?.send(message, () => {});
  }

  #watch(child: ChildProcess): void {
    this.starts++;
    this.#child = child;
    child.on('message', (message: FrontEndMessage) => {
      this.#unanswered = 0;
      if (message.kind === 'lives') return;
      if (message.kind === 'ready') {
        this.isReady = true;
        this.#problem = undefined;
        this.#surroundings.onChanged();
      } else if (message.kind === 'failed') this.#failed(message.problem);
      else {
        this.#asked = undefined;
        this.#answer(message.metrics);
      }
    });
    child.once('close', () => {
      if (this.isReady && this.#unanswered < HANGS_AFTER) this.#downSinceMs = Date.now();
      this.isReady = false;
      this.#unanswered = 0;
      this.#asked = undefined;
      this.#surroundings.onChanged();
    });
  }

  /** The first start reports its problem itself. A later one continues with the next attempt. */
  #failed(problem: string): void {
    this.#problem = problem;
    if (this.#supervisor !== undefined) this.#surroundings.onEvent(`${this.name} did not start: ${problem}`);
  }
}

export class FrontEndProcesses implements Service {
  readonly name = 'front ends';
  readonly stopTimeoutMs: number;
  readonly #processes: readonly FrontEndProcess[];
  /** True if this process is a front end, too. */
  readonly #isServedHere: boolean;
  #pings: NodeJS.Timeout | undefined;
  #pingedAtMs = 0;

  constructor(
    config: Config,
    log: Logger,
    metrics: Metrics,
    private readonly problems: Problems,
  ) {
    const { children, frontEnds } = config.processes;
    const env = { ...process.env, FRONT_ENDS: String(frontEnds), PORT: String(config.PORT) };
    const stopDeadlineMs = frontEndStopMs(config);
    const onEvent = (line: string): void => log.warn(line);
    const onChanged = (): void => this.#tell();
    this.#processes = children.map(
      (name) => new FrontEndProcess(name, { env, stopDeadlineMs, onEvent, onChanged }),
    );
    this.stopTimeoutMs = stopDeadlineMs + 1000;
    this.#isServedHere = config.roles.http;
    problems.add(() => this.#findings());
    this.#register(metrics);
  }

  /**
   * Starts all front ends and resolves once all are ready.
   * @throws SetupError if a front end does not start
   */
  async start(): Promise<void> {
    // Each supervisor listens for the exit of this process.
    process.setMaxListeners(process.getMaxListeners() + this.#processes.length);
    // All starts end before an error is thrown, so that the stop of this service reaches all front ends.
    this.#pingedAtMs = performance.now();
    this.#pings = setInterval(() => this.#ping(), PING_EVERY_MS);
    const starts = await Promise.allSettled(this.#processes.map((each) => each.start()));
    const failed = starts.find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  async stop(): Promise<void> {
    clearInterval(this.#pings);
    await Promise.all(this.#processes.map((each) => each.stop()));
  }

  health(): Health {
    const down = this.#findings().map(({ message }) => message);
    return down.length === 0 ? HEALTHY : unhealthy(down.join('; '));
  }

  /** If no front end serves, this process is not ready either, because nobody can spin. */
  #findings(): Finding[] {
    const down = this.#processes.flatMap(({ name, problem }) =>
      problem === undefined ? [] : [{ name: 'front-end-down' as const, subject: name, ...problem }],
    );
    const isNone = down.length === this.#processes.length && !this.#isServedHere;
    return isNone ? down.map((each) => ({ ...each, effect: 'SPINS_REFUSED' })) : down;
  }

  #ping(): void {
    const nowMs = performance.now();
    const isLate = nowMs - this.#pingedAtMs > 2 * PING_EVERY_MS;
    this.#pingedAtMs = nowMs;
    for (const each of this.#processes) each.ping(this.problems.own, isLate);
  }

  #tell(): void {
    for (const each of this.#processes) each.tell(this.problems.own);
  }

  #register(metrics: Metrics): void {
    metrics.others = () => Promise.all(this.#processes.map((each) => each.metrics()));
    metrics.counters(
      'spindle_front_end_restarts_total',
      'Restarts of a front end that ended unexpectedly (FRONT_ENDS), by process',
      () => this.#samples(({ starts }) => Math.max(0, starts - 1)),
    );
    metrics.counters(
      'spindle_front_end_missed_scrapes_total',
      'Scrapes without the metrics of a front end that did not answer in time (FRONT_ENDS), by process',
      () => this.#samples(({ missedScrapes }) => missedScrapes),
    );
  }

  #samples(read: (process: FrontEndProcess) => number) {
    return this.#processes.map((each) => ({ labels: { process: each.name }, value: read(each) }));
  }
}
