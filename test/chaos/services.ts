/** Runs the service processes of a chaos run: two with both roles on one port, and one worker. */
import { join } from 'node:path';
import { freePort } from '../../src/app/embedded/index.js';
import type { Failpoint } from '../../src/platform/failpoints.js';
import { OPERATOR_KEY } from '../support/client.js';
import { askOnce, plainRequest } from '../support/load.js';
import { type Cable, proxy } from '../support/proxy.js';
import { FOLDER_VARIABLE } from '../support/runFolder.js';
import { ServerProcess } from '../support/serverProcess.js';
import type { OwnStores } from '../support/stores.js';
import { until } from '../support/wait.js';

/**
 * State that a spin must have before it is answered: on Redis's disk, also on the disks of its replicas, or
 * committed in the ledger.
 */
export type Acknowledgement = 'redis' | 'replica' | 'ledger';

/**
 * Settings of the processes. One front end waits for its stores for the default time, the other for a short
 * time. In an outage of a second or two, the first therefore answers late and the second reports spins in
 * doubt. Redis holds request ids for only two seconds, so that each round spans many releases.
 */
const SETTINGS = {
  'front-1': { ROLES: 'http,worker', REQUEST_ID_WINDOW_S: '2' },
  'front-2': { ROLES: 'http,worker', REQUEST_ID_WINDOW_S: '2', SPIN_DEADLINE_MS: '700' },
  worker: { ROLES: 'worker', REQUEST_ID_WINDOW_S: '2' },
} as const;
/** Name of the position file in the run's folder, outside both stores. */
export const POSITION_FILE = 'position';
/** Name of the copy of the public log in the run's folder, outside both stores. */
export const LOG_COPY = 'log-copy';
type ServiceName = keyof typeof SETTINGS;
const FRONTS = 2;
const READY_WITHIN_MS = 60_000;
const ANSWER_WITHIN_MS = 3000;
const SCRAPE_WITHIN_MS = 1500;
/** Maximum duration of a start, in ms. A start waits for stores that are down, and may be frozen itself. */
const START_WITHIN_MS = 600_000;
const START_AGAIN_MS = 150;
/**
 * Maximum number of connections that are opened to reach every process behind the shared port. The kernel
 * distributes connections by their source port.
 */
const SWEEP_MAX = 48;

/** One service process and its replacements, with proxied connections of its own to the stores. */
export class Service {
  readonly redis: Cable;
  readonly postgres: Cable;
  #process: ServerProcess | undefined;
  /** True while the process is meant to end. Its end is not reported, and no replacement is started. */
  #isStopping = true;
  /** True after a SIGKILL by the test. The end of the process is expected. */
  #isKilled = false;
  #isFrozen = false;
  /** Failpoint at which the next process kills itself. */
  #failpoint: Failpoint | undefined;
  /** True if the current process has a failpoint, so that its end is expected. */
  #isDoomed = false;
  #hasMet = false;
  #isReady = false;

  constructor(
    readonly name: ServiceName,
    cables: { redis: Cable; postgres: Cable },
    private readonly logFile: string,
    private readonly environment: NodeJS.ProcessEnv,
    private readonly onCrash: (line: string) => void,
  ) {
    this.redis = cables.redis;
    this.postgres = cables.postgres;
  }

  get isFront(): boolean {
    return this.name !== 'worker';
  }

  get isUp(): boolean {
    return this.#isReady && !this.#isFrozen;
  }

  start(acknowledgement: Acknowledgement, more: NodeJS.ProcessEnv = {}): void {
    this.#isStopping = false;
    this.#launch({ ...this.environment, ...more, ACK: acknowledgement });
  }

  async stop(): Promise<void> {
    this.#isStopping = true;
    this.thaw();
    const running = this.#process;
    if (running === undefined) return;
    const wasReady = this.#isReady;
    await running.stop();
    const how = await running.ended;
    if (wasReady && how !== 0) this.onCrash(`${this.name} did not stop in order: ${how}`);
  }

  /** Sends SIGKILL to the process. It is restarted at once. */
  kill(): void {
    this.#isKilled = true;
    this.#isReady = false;
    this.#process?.child.kill('SIGKILL');
  }

  /** Sends SIGKILL to the process. Its replacement kills itself at the given step. */
  killAt(step: Failpoint): void {
    this.#failpoint = step;
    this.#hasMet = false;
    this.kill();
  }

  /** True if a process has killed itself since {@link killAt}. */
  get hasMet(): boolean {
    return this.#hasMet;
  }

  /** Kills the process at once without a replacement. */
  end(): void {
    this.#isStopping = true;
    this.#process?.child.kill('SIGKILL');
  }

  freeze(): void {
    this.#isFrozen = true;
    this.#process?.freeze();
  }

  thaw(): void {
    if (!this.#isFrozen) return;
    this.#isFrozen = false;
    this.#process?.thaw();
  }

  /** Returns the values of the given time series of the metrics. Undefined if the process does not answer. */
  async metrics(...series: string[]): Promise<number[] | undefined> {
    if (!this.#isReady) return undefined;
    try {
      const lines = (await this.#process!.scrape(SCRAPE_WITHIN_MS)).split('\n');
      return series.map((name) => {
        const line = lines.find((candidate) => candidate.startsWith(`${name} `));
        return line === undefined ? 0 : Number(line.slice(name.length + 1));
      });
    } catch {
      return undefined;
    }
  }

  #launch(env: NodeJS.ProcessEnv): void {
    const failpoint = this.#failpoint;
    this.#failpoint = undefined;
    this.#isDoomed = failpoint !== undefined;
    const settings = failpoint === undefined ? env : { ...env, FAILPOINT: failpoint };
    const running = ServerProcess.launch({ env: settings, logFile: this.logFile });
    this.#process = running;
    this.#isKilled = false;
    this.#isFrozen = false;
    running
      .ready(START_WITHIN_MS)
      .then(() => {
        this.#isReady = this.#process === running && !this.#isKilled;
      })
      // A start that fails while a store is down is expected.
      .catch(() => {});
    void running.ended.then((how) => {
      const wasReady = this.#isReady;
      this.#isReady = false;
      this.#process = undefined;
      if (this.#isStopping) return;
      this.#hasMet ||= this.#isDoomed && !this.#isKilled;
      if (!this.#isKilled && !this.#isDoomed && wasReady)
        this.onCrash(`${this.name} ended by itself: ${how}`);
      setTimeout(() => {
        if (!this.#isStopping) this.#launch(env);
      }, START_AGAIN_MS);
    });
  }
}

export class Fleet {
  #acknowledgement: Acknowledgement = 'redis';
  #more: NodeJS.ProcessEnv = {};

  private constructor(
    readonly port: number,
    readonly services: readonly Service[],
    private readonly cables: readonly Cable[],
  ) {}

  /**
   * Makes the processes without starting them.
   * @param onCrash called for a process that ended unexpectedly or did not stop when asked
   * @param more further settings of every process
   */
  static async make(
    stores: OwnStores,
    folder: string,
    onCrash: (line: string) => void,
    more: NodeJS.ProcessEnv = {},
  ): Promise<Fleet> {
    const port = await freePort();
    const cables: Cable[] = [];
    const services: Service[] = [];
    for (const [name, settings] of Object.entries(SETTINGS)) {
      const redis = await proxy(stores.redis.url);
      const postgres = await proxy(stores.postgres.url);
      cables.push(redis, postgres);
      const environment = {
        NODE_ENV: 'production',
        [FOLDER_VARIABLE]: folder,
        DATA_DIR: join(folder, name),
        REDIS_URL: redis.url,
        DATABASE_URL: postgres.url,
        OPERATOR_API_KEY: OPERATOR_KEY,
        POSITION_FILE: join(folder, POSITION_FILE),
        LOG_COPY_DIR: join(folder, LOG_COPY),
        // TEST_CONSTANTS switches off the check of production ranges, because the windows are shorter here.
        TEST_CONSTANTS: '{}',
        ...settings,
        ...more,
        PORT: String(port),
        METRICS_PORT: '0',
        LOG_LEVEL: 'warn',
      };
      services.push(
        new Service(
          name as ServiceName,
          { redis, postgres },
          join(folder, `${name}.log`),
          environment,
          onCrash,
        ),
      );
    }
    return new Fleet(port, services, cables);
  }

  get fronts(): readonly Service[] {
    return this.services.filter((service) => service.isFront);
  }

  /**
   * Starts the processes one after the other, so that three processes do not race for the first start of a
   * database.
   * @param more further settings of every process
   */
  async start(acknowledgement: Acknowledgement, more: NodeJS.ProcessEnv = {}): Promise<void> {
    this.#acknowledgement = acknowledgement;
    this.#more = more;
    for (const service of [...this.services].reverse()) {
      service.start(acknowledgement, more);
      await until(() => service.isUp, `${service.name} is up`, READY_WITHIN_MS);
    }
  }

  get acknowledgement(): Acknowledgement {
    return this.#acknowledgement;
  }

  /** Further settings of every process. */
  get more(): NodeJS.ProcessEnv {
    return this.#more;
  }

  startAgain(): Promise<void> {
    return this.start(this.#acknowledgement, this.#more);
  }

  async stop(): Promise<void> {
    await Promise.all(this.services.map((service) => service.stop()));
  }

  /** Returns whether every process is up and every process behind the port is ready. */
  async isReady(): Promise<boolean> {
    if (!this.services.every((service) => service.isUp)) return false;
    const seen = new Set<string>();
    for (let tries = 0; tries < SWEEP_MAX && seen.size < FRONTS; tries++) {
      const answer = await askOnce(this.port, plainRequest('GET', '/statusz', ''), ANSWER_WITHIN_MS);
      if (answer?.status !== 200) return false;
      // The prefix of the correlation id distinguishes the processes.
      seen.add(answer.headers.get('x-request-id')?.split('-')[0] ?? '');
    }
    return seen.size >= FRONTS;
  }

  /** Returns the process that owns the most cells, or the worker if this can't be determined. */
  async owner(): Promise<Service> {
    const owned = await Promise.all(
      this.services.map(async (service) => (await service.metrics('spindle_cells_owned'))?.[0] ?? -1),
    );
    const most = Math.max(...owned);
    const worker = this.services.find((service) => !service.isFront)!;
    return most <= 0 ? worker : this.services[owned.indexOf(most)]!;
  }

  /** Resolves once two successive checks find no front end with a request in flight. */
  async quiet(timeoutMs: number): Promise<void> {
    let quiet = 0;
    await until(
      async () => {
        const pending = await Promise.all(
          this.fronts.map((front) => front.metrics('spindle_batch_pending', 'spindle_http_open_requests')),
        );
        quiet = pending.every((values) => values?.every((value) => value === 0)) ? quiet + 1 : 0;
        return quiet === 2;
      },
      'every request is answered',
      timeoutMs,
      50,
    );
  }

  async close(): Promise<void> {
    for (const service of this.services) service.end();
    await Promise.all(this.cables.map((cable) => cable.close()));
  }
}
