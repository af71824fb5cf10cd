/** The connections to Redis: made here only. They never queue while offline and never resend by themselves. */
import { Redis } from 'ioredis';

export type RedisClient = Redis;

/** The oldest server whose scripts behave as lua/ expects (effects replication only, streams with explicit ids). */
export const REDIS_MAJOR_MIN = 7;

export function connectRedis(url: string, onError: (error: Error) => void): RedisClient {
  const client = new Redis(url, {
    lazyConnect: true,
    // The replies that the code reads (streams above all) have one shape on every server then.
    protocol: 2,
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
    retryStrategy: (attempt) => Math.min(50 * attempt, 500),
    keepAlive: 10_000,
    noDelay: true,
  });
  client.on('error', onError);
  return client;
}

export interface RedisFacts {
  version: string;
  major: number;
  appendOnly: boolean;
  appendFsync: string;
  /** What is acknowledged while the append-only file is rewritten is on disk, too. */
  syncsDuringRewrite: boolean;
  evictionPolicy: string;
}

/** What the server says of its version and of what it may lose or evict. */
export async function redisFacts(client: RedisClient): Promise<RedisFacts> {
  const info = await client.info('server');
  const version = /^redis_version:(.+)$/m.exec(info)?.[1]?.trim() ?? '0';
  // Valkey reports the Redis version that it is compatible with, too.
  const settings = new Map<string, string>();
  for (const name of ['appendonly', 'appendfsync', 'no-appendfsync-on-rewrite', 'maxmemory-policy']) {
    const answer = (await client.config('GET', name)) as string[];
    settings.set(name, answer[1] ?? 'unknown');
  }
  return {
    version,
    major: Number.parseInt(version, 10),
    appendOnly: settings.get('appendonly') === 'yes',
    appendFsync: settings.get('appendfsync') ?? 'unknown',
    syncsDuringRewrite: settings.get('no-appendfsync-on-rewrite') === 'no',
    evictionPolicy: settings.get('maxmemory-policy') ?? 'unknown',
  };
}

/** The server can be reached: the connection is up, and not about to close. */
export const isReady = (client: RedisClient): boolean =>
  client.status === 'ready' && client.stream?.writable === true;

/** Resolves once the server can be reached, or after the milliseconds. */
export function whenReady(client: RedisClient, timeoutMs: number): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      client.off('ready', done);
      resolve();
    };
    const timer = setTimeout(done, timeoutMs);
    client.once('ready', done);
    if (client.status === 'ready') done();
  });
}
