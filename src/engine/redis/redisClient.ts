/**
 * The connections to Redis. They are created in this file only and used in src/engine/redis only. A
 * connection never queues commands while offline, and never resends a command by itself.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { asClearError, openingFault, redisOptionsOf, tellingFault } from './redisUrl.js';

// ioredis extends String. V8 then keeps String.prototype as a dictionary and no longer inlines charCodeAt,
// which costs 8 % of a spin's CPU. Enumerating a String object makes V8 optimize the prototype again.
for (const _ in new String('a'));

const OPTIONS = {
  lazyConnect: true,
  // RESP2 is used, because replies (streams above all) then have the same structure on every server version.
  protocol: 2 as const,
  // A call fails immediately while the server is unreachable, so that the caller can decide whether to repeat
  // it.
  enableOfflineQueue: false,
  // The client library must not resend a command without a reply, because a batch could then be dealt twice.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 2000,
  // A server that does not respond counts as unreachable. Spins also have their own deadline.
  commandTimeout: 3000,
  // A connection that receives nothing for a time is closed, so that a new one is opened.
  socketTimeout: 4000,
  retryStrategy: (attempt: number) => Math.min(50 * attempt, 500),
  // A server that is loading its append-only file is asked again soon. By default the client would wait for
  // as long as the server estimates, up to 10 s.
  maxLoadingRetryTime: 200,
  keepAlive: 10_000,
  noDelay: true,
  // CLIENT SETINFO is not sent. The server would refuse it to a Redis user with few permissions, and record
  // each refusal in its ACL LOG.
  disableClientInfo: true,
} satisfies RedisOptions;

const optionsFor = (url: string) => ({ ...redisOptionsOf(url), ...OPTIONS });

const IDENTIFY_TIMEOUT_MS = 5000;

/** Name of the property that has a node's connection. Only src/engine/redis may import it. */
export const CLIENT: unique symbol = Symbol('the connection of a node');

/**
 * Reads which server run a connection leads to; undefined if the server must not be used.
 * @throws Error if the server does not identify itself
 */
export type ReadServerId = (client: RedisClient) => Promise<string | undefined>;

/** Reads the id of a server run, whatever the server's role is. */
export const readRunId: ReadServerId = async (client) =>
  /^run_id:(\w+)/m.exec(await client.info('server'))?.[1];

/** The server is a replica. It accepts no writes, and what it has may be old. */
class ReplicaError extends Error {}

/** Reads the id of a single server. An address may lead to a replica after a failover. */
const readPrimaryId: ReadServerId = async (client) => {
  const info = await client.info('server', 'replication');
  if (/^role:(slave|replica)/m.test(info)) throw new ReplicaError(REPLICA);
  client.isPromoted = /^master_replid2:(?!0+\s*$)/m.test(info);
  return /^run_id:(\w+)/m.exec(info)?.[1];
};

const REPLICA = 'it is a replica. The service connects again until the address leads to a primary';

/**
 * Error replies of a server that has become a replica. Nothing was executed. Such a server keeps its
 * connections, so the service must leave it.
 */
const DEMOTED = /^(READONLY|MASTERDOWN|UNBLOCKED)/;

/** Time before the next attempt after an address has led to a replica, in ms. */
const AGAIN_AFTER_REPLICA_MS = 500;

/** A connection that identifies the server run it leads to. It is not connected before {@link open}. */
export class RedisClient extends Redis {
  /**
   * Id of the server run; undefined while it is not known. A restarted server has another id, because its
   * data may be older than before the restart. serverIdentity.ts describes the form of the ids in a cluster.
   */
  serverId: string | undefined;
  /** True if a single server was a replica earlier in this run. */
  isPromoted = false;
  lost = 0;
  readonly url: string;
  readonly #readServerId: ReadServerId;
  #demotion: string | undefined;
  #fault: Error | undefined;

  constructor(url: string, onError: (error: Error) => void, readServerId: ReadServerId = readPrimaryId) {
    super(optionsFor(url));
    this.url = url;
    this.#readServerId = readServerId;
    // There is no limit on listeners, because every cell that waits for the server adds one.
    this.setMaxListeners(0);
    this.on('error', (error) => {
      this.#fault = tellingFault(this.#fault, error);
      onError(asClearError(error));
    });
    this.options.reconnectOnError = (error) => {
      if (DEMOTED.test(error.message)) this.#leave(REPLICA);
      return false;
    };
    this.options.retryStrategy = (attempt) =>
      this.#demotion === undefined ? OPTIONS.retryStrategy(attempt) : AGAIN_AFTER_REPLICA_MS;
    renewCertificates(this, url);
    this.on('ready', () => this.#identify());
    this.on('close', () => {
      this.lost++;
      this.serverId = undefined;
    });
  }

  /**
   * Connects, and waits until the server has been identified.
   * @throws Error if the server is unreachable
   */
  async open(): Promise<void> {
    await this.connect().catch(() => {
      throw openingFault(this.url, this.#fault);
    });
    await this.whenReady(IDENTIFY_TIMEOUT_MS);
    if (this.#demotion !== undefined) throw new Error(this.#demotion);
    if (this.serverId === undefined) throw new Error('INFO server of Redis has no run_id');
  }

  /** Why the service has left the server; undefined if the address has led to a primary since. */
  get demotion(): string | undefined {
    return this.#demotion;
  }

  /** Closes the connection. All callers that wait for the server fail immediately. */
  close(): void {
    this.disconnect();
    this.emit('closed for good');
  }

  /**
   * True if the server is reachable: the connection is up and not closing, and the server has been
   * identified.
   */
  get isReady(): boolean {
    return this.serverId !== undefined && this.status === 'ready' && this.stream?.writable === true;
  }

  /**
   * Resolves when the server becomes reachable, after the timeout in ms, or when the connection is closed
   * permanently.
   */
  whenReady(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.off('identified', done);
        this.off('closed for good', done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      this.once('identified', done);
      this.once('closed for good', done);
      if (this.isReady) done();
    });
  }

  pipelined(calls: () => void): void {
    const { stream } = this;
    stream?.cork();
    try {
      calls();
    } finally {
      stream?.uncork();
    }
  }

  /**
   * Identifies the server again. Within one connection, a server of a cluster may become a replica of another
   * server and be promoted again.
   */
  identifyAgain(): void {
    if (this.status === 'ready') this.#identify();
  }

  #identify(): void {
    const { stream } = this;
    this.#readServerId(this).then(
      (serverId) => {
        if (stream !== this.stream) return;
        if (serverId !== undefined) this.#demotion = undefined;
        if (serverId === this.serverId) return;
        this.serverId = serverId;
        if (serverId !== undefined) this.emit('identified');
      },
      // A connection on which the server can't be identified is useless, so it is replaced.
      (error: Error) => {
        if (stream !== this.stream) return;
        if (error instanceof ReplicaError) this.#leave(error.message);
        else this.disconnect(true);
      },
    );
  }

  /**
   * Leaves a server that has become a replica, and connects again: the address may lead to another server.
   */
  #leave(reason: string): void {
    const { stream } = this;
    this.#demotion = reason;
    this.serverId = undefined;
    // The other replies of the same chunk still reach their callers, who then know that nothing was executed.
    setImmediate(() => {
      if (stream !== this.stream || this.status !== 'ready') return;
      this.emit('left');
      this.disconnect(true);
    });
  }
}

/**
 * Sends one command over a separate connection.
 * @throws Error if the server is unreachable or replies with an error
 */
export async function askOnce(url: string, command: string, ...words: string[]): Promise<string> {
  const client = new Redis({ ...optionsFor(url), retryStrategy: () => null });
  let fault: Error | undefined;
  client.on('error', (error) => {
    fault = tellingFault(fault, error);
  });
  try {
    await client.connect().catch(() => {
      throw openingFault(url, fault);
    });
    return (await client.call(command, ...words)) as string;
  } finally {
    client.disconnect();
  }
}

/**
 * Creates a connection for subscriptions only. The caller must connect it, and must subscribe again after
 * each 'ready' event.
 */
export function openSubscriber(url: string, onError: (error: Error) => void): Redis {
  // The library would resubscribe by itself. If that failed, the library would not handle the rejection, and
  // the process would end.
  const client = new Redis({ ...optionsFor(url), autoResubscribe: false });
  client.on('error', (error) => onError(asClearError(error)));
  renewCertificates(client, url);
  return client;
}

/** Reads the files of certificates again before each new connection, because they may have been renewed. */
function renewCertificates(client: Redis, url: string): void {
  client.on('reconnecting', () => {
    try {
      const { tls } = redisOptionsOf(url);
      if (tls !== undefined) client.options.tls = tls;
    } catch {
      // A file that can't be read may be about to be replaced. The last content stays in use.
    }
  });
}
