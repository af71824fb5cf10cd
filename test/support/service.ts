/** Starts the service under test, on stores of its own, and talks to it as a partner and as the operator would. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { pino } from 'pino';
import postgres from 'postgres';
import { inject } from 'vitest';
import { readConfig } from '../../src/config.js';
import { type Running, start, type World } from '../../src/main.js';
import { nameServers } from '../../src/webhooks/destination.js';

export const ROOT = join(import.meta.dirname, '..', '..');
export const OPERATOR_KEY = 'operator-key-for-tests';
/** `npm run scale`: the tests of great numbers take all of them. */
export const IS_WHOLE = process.env.SCALE === 'whole';

export interface TestStores {
  readonly redisUrl: string;
  readonly databaseUrl: string;
  drop(): Promise<void>;
}

/** An empty Redis database (one of the server's 16, by worker) and an empty Postgres database. */
export async function freshStores(): Promise<TestStores> {
  const redisUrl = new URL(inject('redisUrl'));
  redisUrl.pathname = `/${Number(process.env.VITEST_POOL_ID ?? 1) % 16}`;
  const redis = new Redis(redisUrl.href, { protocol: 2 });
  await redis.flushdb();
  redis.disconnect();
  const server = postgres(inject('databaseUrl'), { max: 1, onnotice: () => {} });
  const name = `test_${randomBytes(6).toString('hex')}`;
  await server.unsafe(`CREATE DATABASE ${name}`);
  await server.end();
  const databaseUrl = new URL(inject('databaseUrl'));
  databaseUrl.pathname = `/${name}`;
  return {
    redisUrl: redisUrl.href,
    databaseUrl: databaseUrl.href,
    async drop() {
      const again = postgres(inject('databaseUrl'), { max: 1, onnotice: () => {} });
      await again.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await again.end();
    },
  };
}

export function environment(
  stores: Pick<TestStores, 'redisUrl' | 'databaseUrl'>,
  more: NodeJS.ProcessEnv = {},
) {
  return {
    REDIS_URL: stores.redisUrl,
    DATABASE_URL: stores.databaseUrl,
    OPERATOR_API_KEY: OPERATOR_KEY,
    PORT: '0',
    METRICS_PORT: '0',
    // Each costs a start something.
    CELLS: '4',
    LOG_LEVEL: 'silent',
    ...more,
  };
}

/** The service in this process. */
export async function startService(
  stores: Pick<TestStores, 'redisUrl' | 'databaseUrl'>,
  more: NodeJS.ProcessEnv = {},
  world: Partial<World> = {},
): Promise<Client & { running: Running; stop(): Promise<void> }> {
  const config = readConfig(environment(stores, more));
  const running = await start(config, pino({ level: config.LOG_LEVEL }), () => {}, {
    resolve: nameServers(),
    now: Date.now,
    ...world,
  });
  return Object.assign(new Client(`http://127.0.0.1:${running.port}`), {
    running,
    stop: () => running.stop(),
  });
}

export interface ServiceProcess {
  readonly client: Client;
  readonly child: ChildProcess;
  readonly output: () => string;
  /** Sends a signal and waits for the end; gives the exit code, or the signal's name. */
  end(signal?: NodeJS.Signals): Promise<number | string>;
}

/**
 * The service as a process of its own, from the build; resolves once it says that it is ready.
 * @param root where the build is
 */
export async function spawnService(
  env: NodeJS.ProcessEnv,
  args: string[] = [],
  root = ROOT,
): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [join(root, 'dist', 'src', 'main.js'), ...args], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => {
    output += chunk;
  });
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const port = await new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk;
      const match = /API\s+http:\/\/[^:]+:(\d+)\//.exec(output);
      if (match !== null) resolve(Number(match[1]));
      else if (output.includes('is ready') && output.includes('metrics')) resolve(0);
    });
    ended.then(([code, signal]) => reject(new Error(`The service ended with ${code ?? signal}: ${output}`)));
  });
  return {
    client: new Client(`http://127.0.0.1:${port}`),
    child,
    output: () => output,
    async end(signal = 'SIGTERM') {
      child.kill(signal);
      const [code, by] = await ended;
      return code ?? by ?? 'unknown';
    },
  };
}

export interface Answer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: T;
}

type Json = Record<string, unknown>;

/** What a test partner has. */
export interface TestPartner {
  readonly partnerId: number;
  readonly key: string;
}

export class Client {
  constructor(readonly base: string) {}

  async request<T = Json>(
    method: string,
    path: string,
    options: { key?: string; body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Answer<T>> {
    const { key, body, headers } = options;
    const response = await fetch(this.base + path, {
      method,
      headers: {
        ...(key === undefined ? {} : { 'X-API-Key': key }),
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined
        ? {}
        : {
            body:
              typeof body === 'string' || body instanceof Uint8Array
                ? (body as string)
                : JSON.stringify(body),
          }),
    });
    const text = await response.text();
    let parsed: unknown;
    try {
      parsed = text === '' ? undefined : JSON.parse(text);
    } catch {
      parsed = undefined;
    }
    return { status: response.status, headers: response.headers, text, body: parsed as T };
  }

  partner<T = Json>(method: string, path: string, key: string, body?: unknown): Promise<Answer<T>> {
    return this.request<T>(method, `/api/partner/v1${path}`, { key, body });
  }

  operator<T = Json>(method: string, path: string, body?: unknown): Promise<Answer<T>> {
    return this.request<T>(method, `/api/operator/v1${path}`, { key: OPERATOR_KEY, body });
  }

  spin<T = Json>(key: string, body: unknown): Promise<Answer<T>> {
    return this.partner<T>('POST', '/spin', key, body);
  }

  /** A partner with a key; limits so high that they don't matter, unless settings say otherwise. */
  async newPartner(settings: Json = {}): Promise<TestPartner> {
    const made = await this.operator<{ partnerId: number }>('POST', '/partners', {
      slug: `p-${randomBytes(6).toString('hex')}`,
      name: 'Test partner',
      environment: 'sandbox',
      spinRateLimit: 1_000_000_000,
      apiRateLimit: 1_000_000_000,
      ...settings,
    });
    if (made.status !== 201) throw new Error(`No partner: ${made.text}`);
    const { partnerId } = made.body;
    const key = await this.operator<{ apiKey: string }>('POST', `/partners/${partnerId}/keys`, {});
    return { partnerId, key: key.body.apiKey };
  }

  /** Uploads a sheet and registers a game on it; waits until the game can be spun. */
  async newGame(key: string, sheet: unknown): Promise<number> {
    const upload = await this.partner<{ parSheetId: number }>('POST', '/par-sheets', key, sheet);
    if (upload.status !== 201) throw new Error(`No PAR sheet: ${upload.text}`);
    const game = await this.partner<{ gameConfigId: number }>('POST', '/games', key, {
      parSheetId: upload.body.parSheetId,
      displayName: 'Test game',
      configName: `G_${randomBytes(6).toString('hex').toUpperCase()}`,
    });
    if (game.status !== 201) throw new Error(`No game: ${game.text}`);
    const gameId = game.body.gameConfigId;
    await until(async () => {
      const state = await this.operator<{ queue: { readyBlocks: number } }>('GET', `/games/${gameId}`);
      return state.body.queue.readyBlocks > 0;
    }, 'the game has its first block');
    return gameId;
  }
}

/** A PAR sheet of test/par-sheets by its name. */
export const parSheet = (name: string): Json =>
  JSON.parse(readFileSync(join(ROOT, 'test', 'par-sheets', `${name}.json`), 'utf8')) as Json;

/** five-reel-wild states an RTP that its combinations do not have (0.7775): the service refuses it as it is. */
export const fiveReelWild = (): Json => ({ ...parSheet('five-reel-wild'), certifiedRtp: 0.7775 });

/** Waits for a condition; it is looked at often, and the deadline is only there to fail a test that would hang. */
export async function until(
  condition: () => Promise<boolean> | boolean,
  what: string,
  timeoutMs = 20_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`Waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
