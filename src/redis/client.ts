/**
 * The connections to Redis: made here only, and held in src/redis only. They never queue while offline and never resend
 * by themselves.
 */
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

const IDENTIFY_TIMEOUT_MS = 5000;

/** Under this name src/redis finds the connection of a node; nobody else may import it. */
export const CLIENT: unique symbol = Symbol('the connection of a node');

/** A connection that knows which run of a server it leads to. It is not connected before {@link open}. */
export class RedisClient extends Redis {
  /**
   * `run_id` of the server's process; undefined while that is not known. A server that was started again has another
   * one: what it holds may be older than what it held before, whatever it says of itself.
   */
  serverId: string | undefined;
  /** How often the connection was lost. */
  lost = 0;
  readonly url: string;

  constructor(url: string, onError: (error: Error) => void) {
    super(url, OPTIONS);
    this.url = url;
    // Every cell that waits for the server listens.
    this.setMaxListeners(0);
    this.on('error', onError);
    this.on('ready', () => this.#identify());
    this.on('close', () => {
      this.lost++;
      this.serverId = undefined;
    });
  }

  /** Connects, and waits until the server is known. @throws where it can't be reached. */
  async open(): Promise<void> {
    await this.connect();
    await this.whenReady(IDENTIFY_TIMEOUT_MS);
    if (this.serverId === undefined) throw new Error('Redis does not say who it is (INFO server)');
  }

  /** The server can be reached: the connection is up, not about to close, and it is known where it leads. */
  get isReady(): boolean {
    return this.serverId !== undefined && this.status === 'ready' && this.stream?.writable === true;
  }

  /** Resolves once the server can be reached, or after the milliseconds. */
  whenReady(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        this.off('identified', done);
        resolve();
      };
      const timer = setTimeout(done, timeoutMs);
      this.once('identified', done);
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

/** A connection that only listens; after each 'ready' it must subscribe anew. @throws where the server can't be reached. */
export async function openSubscriber(url: string, onError: (error: Error) => void): Promise<Redis> {
  // By itself the library would subscribe again without listening whether that fails, which ends the process.
  const client = new Redis(url, { ...OPTIONS, autoResubscribe: false });
  client.on('error', onError);
  await client.connect();
  return client;
}
