/** The service processes of a chaos run: two that serve and work on one port, one that works only. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../src/embedded/index.js';
import { askOnce, plainRequest } from '../support/load.js';
import { type Cable, proxy } from '../support/proxy.js';
import { ROOT } from '../support/root.js';
import { endProcess } from '../support/serverProcess.js';
import { pause, until } from '../support/wait.js';
import type { ChaosStores } from './stores.js';

/** In the environment of every service process: the folder of the run that started it. */
export const FOLDER_VARIABLE = 'SPINDLE_CHAOS_FOLDER';
export const OPERATOR_KEY = 'operator-key-of-a-chaos-run';

/** What a spin's answer promises: it is on Redis's disk, or its ledger row is committed. */
export type Acknowledgement = 'redis' | 'ledger';

/**
 * Of the front ends one waits for its stores as long as it does by default, the other not for long: of an outage of a
 * second or two, one makes a delay and the other an answer that says what is not known.
 */
const SETTINGS = {
  'front-1': { ROLES: 'http,worker' },
  'front-2': { ROLES: 'http,worker', SPIN_DEADLINE_MS: '700' },
  worker: { ROLES: 'worker' },
} as const;
type ServiceName = keyof typeof SETTINGS;
const FRONTS = 2;
const READY_WITHIN_MS = 60_000;
const ANSWER_WITHIN_MS = 3000;
const SCRAPE_WITHIN_MS = 1500;
const START_AGAIN_MS = 150;
/** Connections that are tried to meet every process behind the port; the kernel spreads them by their source port. */
const SWEEP_MAX = 48;

/** One service process, whichever runs in its place at the time, with cables of its own to the stores. */
export class Service {
  readonly name: ServiceName;
  readonly redis: Cable;
  readonly postgres: Cable;
  readonly #logFile: string;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #onCrash: (line: string) => void;
  #child: ChildProcess | undefined;
  /** Its end is wanted: it is not an event, and nothing is started in its place. */
  #isStopping = true;
  /** SIGKILL was sent: its end is an event that was made. */
  #isKilled = false;
  #isFrozen = false;
  /** Where its metrics are, once it says that it is ready. */
  #metrics: string | undefined;

  constructor(
    name: ServiceName,
    cables: { redis: Cable; postgres: Cable },
    logFile: string,
    environment: NodeJS.ProcessEnv,
    onCrash: (line: string) => void,
  ) {
    this.name = name;
    this.redis = cables.redis;
    this.postgres = cables.postgres;
    this.#logFile = logFile;
    this.#environment = environment;
    this.#onCrash = onCrash;
  }

  get isFront(): boolean {
    return this.name !== 'worker';
  }

  get isUp(): boolean {
    return this.#metrics !== undefined && !this.#isFrozen;
  }

  start(acknowledgement: Acknowledgement): void {
    this.#isStopping = false;
    this.#spawn({ ...this.#environment, ACK: acknowledgement });
  }

  /** Ends it in an orderly way. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.thaw();
    const child = this.#child;
    if (child === undefined) return;
    const wasUp = this.#metrics !== undefined;
    await endProcess(child);
    if (wasUp && child.exitCode !== 0) {
      this.#onCrash(`${this.name} did not stop in order: ${child.exitCode ?? child.signalCode}`);
    }
  }

  /** SIGKILL; it is started again at once. */
  kill(): void {
    this.#isKilled = true;
    this.#metrics = undefined;
    this.#child?.kill('SIGKILL');
  }

  /** Ends it for good, at once. */
  end(): void {
    this.#isStopping = true;
    this.#child?.kill('SIGKILL');
  }

  freeze(): void {
    this.#isFrozen = true;
    this.#child?.kill('SIGSTOP');
  }

  thaw(): void {
    if (!this.#isFrozen) return;
    this.#isFrozen = false;
    this.#child?.kill('SIGCONT');
  }

  /** The values of some series of its metrics; undefined where it does not answer. */
  async metrics(...series: string[]): Promise<number[] | undefined> {
    if (this.#metrics === undefined) return undefined;
    try {
      const answer = await fetch(this.#metrics, { signal: AbortSignal.timeout(SCRAPE_WITHIN_MS) });
      const lines = (await answer.text()).split('\n');
      return series.map((name) => {
        const line = lines.find((candidate) => candidate.startsWith(`${name} `));
        return line === undefined ? 0 : Number(line.slice(name.length + 1));
      });
    } catch {
      return undefined;
    }
  }

  #spawn(environment: NodeJS.ProcessEnv): void {
    // The file itself and not a pipe: a process that is stopped or killed loses no line.
    const log = openSync(this.#logFile, 'a');
    const from = statSync(this.#logFile).size;
    const child = spawn(process.execPath, [join(ROOT, 'dist', 'src', 'main.js')], {
      cwd: ROOT,
      env: environment,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#child = child;
    this.#isKilled = false;
    this.#isFrozen = false;
    child.once('exit', (code, signal) => {
      const wasUp = this.#metrics !== undefined;
      this.#metrics = undefined;
      this.#child = undefined;
      if (this.#isStopping) return;
      // A start that fails while a store is away is an answer, not a defect.
      if (!this.#isKilled && wasUp) this.#onCrash(`${this.name} ended by itself: ${code ?? signal}`);
      setTimeout(() => {
        if (!this.#isStopping) this.#spawn(environment);
      }, START_AGAIN_MS);
    });
    this.#watch(child, from).catch((error: Error) => this.#onCrash(`${this.name}: ${error.message}`));
  }

  /** Reads where its metrics are off what it prints once it is ready. */
  async #watch(child: ChildProcess, from: number): Promise<void> {
    const file = await open(this.#logFile, 'r');
    try {
      while (this.#child === child && this.#metrics === undefined) {
        await pause(20);
        const bytes = Buffer.alloc((await file.stat()).size - from);
        await file.read(bytes, 0, bytes.length, from);
        const found = /^ {2}metrics +(http\S+)$/m.exec(bytes.toString());
        if (found !== null && this.#child === child) this.#metrics = found[1];
      }
    } finally {
      await file.close();
    }
  }
}

export class Fleet {
  readonly port: number;
  readonly services: readonly Service[];
  readonly #cables: readonly Cable[];

  private constructor(port: number, services: readonly Service[], cables: readonly Cable[]) {
    this.port = port;
    this.services = services;
    this.#cables = cables;
  }

  /**
   * @param onCrash told of a process that ended though nobody ended it, or that did not stop when asked.
   * @param more further settings of every process
   */
  static async make(
    stores: ChaosStores,
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
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        NODE_ENV: 'production',
        [FOLDER_VARIABLE]: folder,
        DATA_DIR: join(folder, name),
        REDIS_URL: redis.url,
        DATABASE_URL: postgres.url,
        OPERATOR_API_KEY: OPERATOR_KEY,
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

  /** One after the other, so that the first start of a database is not a race of three. */
  async start(acknowledgement: Acknowledgement): Promise<void> {
    for (const service of [...this.services].reverse()) {
      service.start(acknowledgement);
      await until(() => service.isUp, `${service.name} is up`, READY_WITHIN_MS);
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.services.map((service) => service.stop()));
  }

  /** Every process is up, and every one behind the port says that it can serve. */
  async isReady(): Promise<boolean> {
    if (!this.services.every((service) => service.isUp)) return false;
    const seen = new Set<string>();
    for (let tries = 0; tries < SWEEP_MAX && seen.size < FRONTS; tries++) {
      const answer = await askOnce(this.port, plainRequest('GET', '/readyz', ''), ANSWER_WITHIN_MS);
      if (answer?.status !== 200) return false;
      // The request id begins with what tells one process from another.
      seen.add(answer.headers.get('x-request-id')?.split('-')[0] ?? '');
    }
    return seen.size >= FRONTS;
  }

  /** The process that writes the most cells; the one that does nothing else where none can be told. */
  async owner(): Promise<Service> {
    const owned = await Promise.all(
      this.services.map(async (service) => (await service.metrics('spindle_cells_owned'))?.[0] ?? -1),
    );
    const most = Math.max(...owned);
    const worker = this.services.find((service) => !service.isFront)!;
    return most <= 0 ? worker : this.services[owned.indexOf(most)]!;
  }

  /** Resolves once no front end has a request that is not answered, twice in a row. */
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

  /** Ends what still runs, at once. */
  async close(): Promise<void> {
    for (const service of this.services) service.end();
    await Promise.all(this.#cables.map((cable) => cable.close()));
  }
}
