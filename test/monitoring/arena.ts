/** What a staged run stands on: stores, two processes that serve and two that work, receivers of webhooks, and players. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, readFile, realpath, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import postgres from 'postgres';
import { freePort } from '../../src/embedded/index.js';
import { Api } from '../chaos/api.js';
import { FOLDER_VARIABLE, OPERATOR_KEY } from '../chaos/services.js';
import { type ChaosStores, startStores } from '../chaos/stores.js';
import type { Cleanup } from '../support/cleanup.js';
import { ROOT } from '../support/root.js';
import { endProcess } from '../support/serverProcess.js';
import { until } from '../support/wait.js';

const READY_WITHIN_MS = 60_000;

/** A service process with a fixed METRICS_PORT, which can be ended and started again. */
export class Service {
  readonly metricsPort: number;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #logFile: string;
  #child: ChildProcess | undefined;

  constructor(metricsPort: number, environment: NodeJS.ProcessEnv, logFile: string) {
    this.metricsPort = metricsPort;
    this.#environment = { ...environment, METRICS_PORT: String(metricsPort) };
    this.#logFile = logFile;
  }

  /** Resolves once it can be scraped. */
  async start(settings: NodeJS.ProcessEnv = {}): Promise<void> {
    const log = openSync(this.#logFile, 'a');
    const child = spawn(process.execPath, [join(ROOT, 'dist', 'src', 'main.js')], {
      cwd: ROOT,
      env: { ...this.#environment, ...settings },
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    this.#child = child;
    await until(
      async () => {
        if (child.exitCode !== null) throw new Error(`A service ended: see ${this.#logFile}`);
        return (await this.scrape().catch(() => undefined)) !== undefined;
      },
      'a service can be scraped',
      READY_WITHIN_MS,
      50,
    );
  }

  async scrape(): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.metricsPort}/metrics`)).text();
  }

  async stop(): Promise<void> {
    if (this.#child !== undefined) await endProcess(this.#child);
  }

  async kill(): Promise<void> {
    const child = this.#child!;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }
}

/** A partner's end of its webhooks, that answers as it is told. */
export interface Receiver {
  readonly url: string;
  mode: 'accept' | 'fail' | 'hang';
}

export interface Arena {
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly stores: ChaosStores;
  readonly redis: Redis;
  readonly sql: postgres.Sql;
  readonly port: number;
  readonly fronts: readonly Service[];
  readonly workers: readonly Service[];
  readonly api: Api;
}

export async function openArena(cleanup: Cleanup, settings: NodeJS.ProcessEnv): Promise<Arena> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'spindle-chaos-')));
  cleanup.add(() => rm(folder, { recursive: true, force: true }));
  const guard = spawn(process.execPath, [join(ROOT, 'dist', 'test', 'chaos', 'guard.js'), folder], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
  });
  cleanup.add(async () => {
    const ended = once(guard, 'exit');
    guard.stdin.end();
    await ended;
  });
  const stores = await startStores(folder);
  cleanup.add(() => stores.close(false));
  const redis = new Redis(stores.redis.url, { protocol: 2 });
  redis.on('error', () => {});
  cleanup.add(() => redis.disconnect());
  const sql = postgres(stores.postgres.url, { max: 4, onnotice: () => {} });
  cleanup.add(() => sql.end({ timeout: 1 }));
  const port = await freePort();
  const environment = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    NODE_ENV: 'production',
    [FOLDER_VARIABLE]: folder,
    REDIS_URL: stores.redis.url,
    DATABASE_URL: stores.postgres.url,
    OPERATOR_API_KEY: OPERATOR_KEY,
    PORT: String(port),
    LOG_LEVEL: 'warn',
    ...settings,
  };
  const services: Service[] = [];
  for (const name of ['worker-1', 'worker-2', 'http-1', 'http-2']) {
    const own = { ...environment, ROLES: name.split('-')[0]!, DATA_DIR: join(folder, name) };
    const service = new Service(await freePort(), own, join(folder, `${name}.log`));
    cleanup.add(() => service.stop());
    services.push(service);
    await service.start();
  }
  return {
    folder,
    environment,
    stores,
    redis,
    sql,
    port,
    workers: services.slice(0, 2),
    fronts: services.slice(2),
    api: new Api(port),
  };
}

export async function openReceiver(cleanup: Cleanup): Promise<Receiver> {
  const held = new Set<() => void>();
  const receiver = { url: '', mode: 'accept' as Receiver['mode'] };
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      if (receiver.mode === 'hang') held.add(() => response.writeHead(204).end());
      else response.writeHead(receiver.mode === 'fail' ? 500 : 204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  receiver.url = `http://localhost:${(server.address() as AddressInfo).port}/`;
  cleanup.add(() => server.closeAllConnections());
  cleanup.add(() => server.close());
  return receiver;
}

/** Calls something so many times a second, whether or not earlier calls are done; what they come to is counted by the service. */
export function paced(perSecond: number, call: () => Promise<unknown>): () => void {
  const began = performance.now();
  let called = 0;
  const timer = setInterval(() => {
    const due = Math.floor(((performance.now() - began) / 1000) * perSecond);
    for (; called < due; called++) void call().catch(() => {});
  }, 10);
  return () => clearInterval(timer);
}

export const parSheet = async (name: string): Promise<Record<string, unknown>> =>
  JSON.parse(await readFile(join(ROOT, 'test', 'par-sheets', `${name}.json`), 'utf8'));
