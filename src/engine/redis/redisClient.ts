/**
 * The connections to Redis: made here only, and held in src/engine/redis only. They never queue while offline and never resend
 * by themselves.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { asClearError, openingFault, redisOptionsOf, tellingFault } from './redisUrl.js';

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
  // A user with few rights would be refused it, and each refusal stands in the server's ACL LOG.
  disableClientInfo: true,
} satisfies RedisOptions;

const optionsFor = (url: string) => ({ ...redisOptionsOf(url), ...OPTIONS });

const IDENTIFY_TIMEOUT_MS = 5000;

/** Under this name src/engine/redis finds the connection of a node; nobody else may import it. */
export const CLIENT: unique symbol = Symbol('the connection of a node');

/** Says which run of a server a connection leads to; undefined: to none that may be used. @throws where the server does not say. */
export type ReadServerId = (client: Redis) => Promise<string | undefined>;

/** `run_id` of the server's process. */
const readRunId: ReadServerId = async (client) => /^run_id:(\w+)/m.exec(await client.info('server'))?.[1];

/** A connection that knows which run of a server it leads to. It is not connected before {@link open}. */
export class RedisClient extends Redis {
  /**
   * Names the run of the server; undefined while that is not known. A server that was started again has another name: what
   * it holds may be older than what it held before, whatever it says of itself. In a cluster see serverIdentity.ts.
   */
  serverId: string | undefined;
  /** How often the connection was lost. */
  lost = 0;
  readonly url: string;
  readonly #readServerId: ReadServerId;
  /** Why the connection failed last. */
  #fault: Error | undefined;

  /** @throws Error with one line where the address can't be used. */
  constructor(url: string, onError: (error: Error) => void, readServerId: ReadServerId = readRunId) {
    super(optionsFor(url));
    this.url = url;
    this.#readServerId = readServerId;
    // Every cell that waits for the server listens.
    this.setMaxListeners(0);
    this.on('error', (error) => {
      this.#fault = tellingFault(this.#fault, error);
      onError(asClearError(error));
    });
    this.on('ready', () => this.#identify());
    this.on('close', () => {
      this.lost++;
      this.serverId = undefined;
    });
  }

  /** Connects, and waits until the server is known. @throws where it can't be reached. */
  async open(): Promise<void> {
    await this.connect().catch(() => {
      throw openingFault(this.url, this.#fault);
    });
    await this.whenReady(IDENTIFY_TIMEOUT_MS);
    if (this.serverId === undefined) throw new Error('Redis does not say who it is (INFO server)');
  }

  /** Ends the connection; what waits for the server fails at once. */
  close(): void {
    this.disconnect();
    this.emit('closed for good');
  }

  /** The server can be reached: the connection is up, not about to close, and it is known where it leads. */
  get isReady(): boolean {
    return this.serverId !== undefined && this.status === 'ready' && this.stream?.writable === true;
  }

  /** Resolves once the server can be reached, or after the milliseconds, or once the connection is closed for good. */
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

  /** Writes the commands that are called in there at once, in one piece. */
  pipelined(calls: () => void): void {
    const { stream } = this;
    stream?.cork();
    try {
      calls();
    } finally {
      stream?.uncork();
    }
  }

  /** Asks again who answers: a server of a cluster may become another's replica, and be promoted again, within one connection. */
  identifyAgain(): void {
    if (this.status === 'ready') this.#identify();
  }

  #identify(): void {
    const { stream } = this;
    this.#readServerId(this).then(
      (serverId) => {
        if (stream !== this.stream || serverId === this.serverId) return;
        this.serverId = serverId;
        if (serverId !== undefined) this.emit('identified');
      },
      // A connection on which this can't be asked is of no use: a new one is made.
      () => {
        if (stream === this.stream) this.disconnect(true);
      },
    );
  }
}

/** Asks a server one thing over a connection of its own. @throws where it can't be reached, or an error reply. */
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

/** A connection that only listens; it is to be connected, and after each 'ready' it must subscribe anew. */
export function openSubscriber(url: string, onError: (error: Error) => void): Redis {
  // By itself the library would subscribe again without listening whether that fails, which ends the process.
  const client = new Redis({ ...optionsFor(url), autoResubscribe: false });
  client.on('error', (error) => onError(asClearError(error)));
  return client;
}
