/** The connections to Redis: made here only. They never queue while offline and never resend by themselves. */
import { Redis, type RedisOptions } from 'ioredis';

const OPTIONS = {
  lazyConnect: true,
  // The replies that the code reads (streams above all) have one shape on every server then.
  protocol: 2 as const,
  // A call fails at once while the server is away; whoever calls decides whether to call again.
  enableOfflineQueue: false,
  // An unanswered command is never sent twice behind the caller's back: a batch would be dealt twice.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 2000,
  // A server that hangs is a server that is away; spins have a deadline of their own besides.
  commandTimeout: 3000,
  // And a connection that brings nothing back is given up, for a new one to be tried.
  socketTimeout: 4000,
  retryStrategy: (attempt: number) => Math.min(50 * attempt, 500),
  // A server that loads its log is asked again soon: by itself the client believes the server's guess, up to 10 s.
  maxLoadingRetryTime: 200,
  keepAlive: 10_000,
  noDelay: true,
} satisfies RedisOptions;

/** A connection that knows which run of a server it leads to. */
export class RedisClient extends Redis {
  /**
   * `run_id` of the server's process; undefined while that is not known. A server that was started again has another
   * one: what it holds may be older than what it held before, whatever it says of itself.
   */
  serverId: string | undefined;

  constructor(url: string) {
    super(url, OPTIONS);
    // Every cell that waits for the server listens.
    this.setMaxListeners(0);
    this.on('ready', () => this.#identify());
    this.on('close', () => {
      this.serverId = undefined;
    });
  }

  /** Writes what is called in there at once, in one piece. */
  together(calls: () => void): void {
    const { stream } = this;
    stream?.cork();
    try {
      calls();
    } finally {
      stream?.uncork();
    }
  }

  #identify(): void {
    const { stream } = this;
    this.info('server').then(
      (info) => {
        if (stream !== this.stream) return;
        this.serverId = /^run_id:(\w+)/m.exec(info)?.[1];
        this.emit('identified');
      },
      // A connection on which this can't be asked is of no use: a new one is made.
      () => {
        if (stream === this.stream) this.disconnect(true);
      },
    );
  }
}

/** The oldest server whose scripts behave as lua/ expects (effects replication only, streams with explicit ids). */
export const REDIS_MAJOR_MIN = 7;

/** @returns a client that is not connected yet: {@link openRedisClient} connects it. */
export function connectRedis(url: string, onError: (error: Error) => void): RedisClient {
  const client = new RedisClient(url);
  client.on('error', onError);
  return client;
}

/** A connection that only listens; after each 'ready' it must subscribe anew. @throws where the server can't be reached. */
export async function openSubscriber(url: string, onError: (error: Error) => void): Promise<Redis> {
  // By itself the library would subscribe again without listening whether that fails, which ends the process.
  const client = new Redis(url, { ...OPTIONS, autoResubscribe: false });
  client.on('error', onError);
  await client.connect();
  return client;
}

/** Connects, and waits until the server is known. @throws where it can't be reached. */
export async function openRedisClient(client: RedisClient): Promise<void> {
  await client.connect();
  await whenReady(client, IDENTIFIED_WITHIN_MS);
  if (client.serverId === undefined) throw new Error('Redis does not say who it is (INFO server)');
}

const IDENTIFIED_WITHIN_MS = 5000;

export interface RedisFacts {
  version: string;
  major: number;
  /** Settings that let it lose or evict what it acknowledged. */
  volatile: string[];
}

/** What the server says of its version and of what it may lose or evict. */
export async function redisFacts(client: RedisClient): Promise<RedisFacts> {
  const info = await client.info('server');
  const version = /^redis_version:(.+)$/m.exec(info)?.[1]?.trim() ?? '0';
  // Valkey reports the Redis version that it is compatible with, too.
  return { version, major: Number.parseInt(version, 10), volatile: await volatility(client) };
}

/** What the server may lose or evict of what it acknowledged: the settings that let it; none where it keeps all. */
export async function volatility(client: RedisClient): Promise<string[]> {
  const wanted = {
    appendonly: 'yes',
    appendfsync: 'always',
    'no-appendfsync-on-rewrite': 'no',
    'maxmemory-policy': 'noeviction',
  };
  const answer = (await client.config('GET', ...Object.keys(wanted))) as string[];
  const settings = new Map<string, string>();
  for (let i = 0; i + 1 < answer.length; i += 2) settings.set(answer[i]!, answer[i + 1]!);
  return Object.entries(wanted).flatMap(([name, value]) =>
    settings.get(name) === value ? [] : [`${name} ${settings.get(name) ?? 'unknown'}`],
  );
}

/** A rewrite of the append-only file is neither under way nor due nor has the last one failed. */
export async function isLogWhole(client: RedisClient): Promise<boolean> {
  const info = await client.info('persistence');
  return ['aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0', 'aof_last_bgrewrite_status:ok'].every(
    (line) => info.includes(line),
  );
}

/** The server can be reached: the connection is up, not about to close, and it is known where it leads. */
export const isReady = (client: RedisClient): boolean =>
  client.serverId !== undefined && client.status === 'ready' && client.stream?.writable === true;

/** Resolves once the server can be reached, or after the milliseconds. */
export function whenReady(client: RedisClient, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      client.off('identified', done);
      resolve();
    };
    const timer = setTimeout(done, timeoutMs);
    client.once('identified', done);
    if (isReady(client)) done();
  });
}
