/**
 * The environment in which the alert test causes its faults: stores, two front ends, two workers, webhook
 * receivers, and players.
 */
import { join } from 'node:path';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { freePort } from '../../src/app/embedded/index.js';
import { Api } from '../support/api.js';
import type { Cleanup } from '../support/cleanup.js';
import { OPERATOR_KEY } from '../support/client.js';
import { startReceiver } from '../support/receiver.js';
import { FOLDER_VARIABLE, openRunFolder } from '../support/runFolder.js';
import { ServerProcess } from '../support/serverProcess.js';
import type { OwnStores } from '../support/stores.js';

/** A service process with a fixed METRICS_PORT, which can be stopped and started again. */
export class Service {
  readonly #environment: NodeJS.ProcessEnv;
  #process: ServerProcess | undefined;

  constructor(
    readonly metricsPort: number,
    environment: NodeJS.ProcessEnv,
    private readonly logFile: string,
  ) {
    this.#environment = { ...environment, METRICS_PORT: String(metricsPort) };
  }

  /** Resolves once the metrics of the process can be scraped. */
  async start(settings: NodeJS.ProcessEnv = {}): Promise<void> {
    const env = { ...this.#environment, ...settings };
    this.#process = ServerProcess.launch({ env, logFile: this.logFile });
    await this.#process.ready();
  }

  scrape(): Promise<string> {
    return this.#process!.scrape();
  }

  async stop(): Promise<void> {
    await this.#process?.stop();
  }

  async kill(): Promise<void> {
    await this.#process!.end('SIGKILL');
  }
}

/** A partner's webhook receiver, whose kind of answer the test sets. */
export interface Receiver {
  readonly url: string;
  mode: 'accept' | 'fail' | 'hang';
}

export interface Arena {
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly stores: OwnStores;
  readonly positionFile: string;
  readonly redis: Redis;
  readonly sql: postgres.Sql;
  readonly port: number;
  readonly fronts: readonly Service[];
  readonly workers: readonly Service[];
  readonly api: Api;
}

export async function openArena(cleanup: Cleanup, settings: NodeJS.ProcessEnv): Promise<Arena> {
  const { folder, stores, cleanup: mine } = await openRunFolder(cleanup, false);
  const redis = new Redis(stores.redis.url, { protocol: 2 });
  redis.on('error', () => {});
  mine.add(() => redis.disconnect());
  const sql = postgres(stores.postgres.url, { max: 4, onnotice: () => {} });
  mine.add(() => sql.end({ timeout: 1 }));
  const port = await freePort();
  const positionFile = join(folder, 'position', 'position.json');
  const environment = {
    NODE_ENV: 'production',
    [FOLDER_VARIABLE]: folder,
    REDIS_URL: stores.redis.url,
    DATABASE_URL: stores.postgres.url,
    OPERATOR_API_KEY: OPERATOR_KEY,
    PORT: String(port),
    LOG_LEVEL: 'warn',
    POSITION_FILE: positionFile,
    ...settings,
  };
  const services: Service[] = [];
  for (const name of ['worker-1', 'worker-2', 'http-1', 'http-2']) {
    const own = { ...environment, ROLES: name.split('-')[0]!, DATA_DIR: join(folder, name) };
    const service = new Service(await freePort(), own, join(folder, `${name}.log`));
    mine.add(() => service.stop());
    services.push(service);
    await service.start();
  }
  return {
    folder,
    environment,
    stores,
    positionFile,
    redis,
    sql,
    port,
    workers: services.slice(0, 2),
    fronts: services.slice(2),
    api: new Api(`http://127.0.0.1:${port}`),
  };
}

export async function openReceiver(cleanup: Cleanup): Promise<Receiver> {
  let mode: Receiver['mode'] = 'accept';
  const { url, close } = await startReceiver((_request, response) => {
    if (mode !== 'hang') response.writeHead(mode === 'fail' ? 500 : 204).end();
  });
  cleanup.add(close);
  return {
    url: url(),
    get mode() {
      return mode;
    },
    set mode(wanted) {
      mode = wanted;
    },
  };
}

/**
 * Calls a function at a fixed rate, whether or not earlier calls are done. The service counts the results.
 */
export function paced(perSecond: number, call: () => Promise<unknown>): () => void {
  const began = performance.now();
  let called = 0;
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - began) / 1000) * perSecond);
    for (; called < due; called++) void call().catch(() => {});
  }, 10);
  return () => clearInterval(timer);
}
