/**
 * Calls scripts and reports whether every replica has their writes: EVALSHA, followed by WAIT on the same
 * connection.
 *
 * WAIT blocks its connection, so several connections take turns. All calls of one turn of the event loop
 * share one WAIT. Replicas that sync each write (`appendfsync always`) acknowledge it after their own fsync.
 * If any replica does not sync each write (replicaWatch.ts), no call counts as replicated.
 */
import type { RedisClient } from './redisClient.js';
import { NotSentError } from './scriptErrors.js';

export interface ReplicatedReply {
  readonly reply: Buffer;
  /** True if every replica that the cluster knows of has the call's writes, and all writes before them. */
  readonly isReplicated: boolean;
}

interface Line {
  readonly client: RedisClient;
  /** Number of WAIT commands on this connection that have no reply yet. */
  waits: number;
  /** The WAIT of the current turn of the event loop, which is sent at the end of the turn. */
  wait: Promise<boolean> | undefined;
}

const LINES = 2;
/**
 * Maximum wait for the replicas, in ms. If they take longer, waiting for the commit to the ledger is faster.
 */
const WAIT_MS = 250;
/**
 * Maximum wait for the replicas, in ms, between a WAIT that timed out and the next WAIT that succeeds. It
 * must not be 0, because WAIT would then wait without a limit.
 */
const LATE_WAIT_MS = 1;

export interface Replicas {
  /** Number of replicas that the cluster knows of. With 0, no call counts as replicated. */
  readonly count: number;
  /** True if each replica keeps the writes that it acknowledges. */
  readonly areDurable: boolean;
}

export class ReplicatedCalls {
  readonly #lines: readonly Line[];
  #isLate = false;

  /** Connects in the background. */
  constructor(
    open: () => RedisClient,
    private readonly replicas: Replicas,
  ) {
    this.#lines = Array.from({ length: LINES }, () => ({ client: open(), waits: 0, wait: undefined }));
    // Connection errors are reported, and the connection is retried.
    for (const { client } of this.#lines) client.connect().catch(() => {});
  }

  /**
   * True if all replicas answered the newest WAIT in time, and all of them keep the writes that they
   * acknowledge.
   */
  get isCurrent(): boolean {
    return !this.#isLate && this.replicas.count > 0 && this.replicas.areDurable;
  }

  close(): void {
    for (const { client } of this.#lines) client.close();
  }

  identifyAgain(): void {
    for (const { client } of this.#lines) client.identifyAgain();
  }

  /** Sends all commands that the callback issues in one write per connection. */
  pipelined(calls: () => void): void {
    const [first, ...others] = this.#lines;
    let all = calls;
    for (const { client } of others) {
      const inner = all;
      all = () => client.pipelined(inner);
    }
    first!.client.pipelined(all);
  }

  /**
   * Calls a script and waits for the replicas.
   * @param run calls the script over a connection; if it sends the script again because the server does not
   * know it, `run` must call `again`
   * @throws NotSentError if there is no connection; the error of `run`
   */
  async call(
    run: (client: RedisClient, serverId: string, again: () => void) => Promise<unknown>,
  ): Promise<ReplicatedReply> {
    const line = this.#pick();
    let wait: Promise<boolean> | undefined;
    // A script that was sent again follows the first WAIT, so it needs another WAIT.
    const again = (): void => {
      wait = this.#wait(line);
    };
    const running = run(line.client, line.client.serverId!, again);
    again();
    const reply = (await running) as Buffer;
    return { reply, isReplicated: await wait! };
  }

  #pick(): Line {
    let best: Line | undefined;
    for (const line of this.#lines) {
      if (!line.client.isReady) continue;
      // Calls of the same turn use the same connection, so that they share one WAIT.
      if (line.wait !== undefined) return line;
      if (best === undefined || line.waits < best.waits) best = line;
    }
    if (best === undefined) throw new NotSentError('Redis is not connected');
    return best;
  }

  #wait(line: Line): Promise<boolean> {
    line.wait ??= new Promise((resolve) => {
      queueMicrotask(() => {
        line.wait = undefined;
        const wanted = this.replicas.count;
        if (wanted === 0 || !this.replicas.areDurable) {
          resolve(false);
          return;
        }
        line.waits++;
        line.client
          .call('WAIT', wanted, this.#isLate ? LATE_WAIT_MS : WAIT_MS)
          .then(
            (acknowledged) => Number(acknowledged) >= wanted && this.replicas.areDurable,
            () => false,
          )
          .then((isReplicated) => {
            line.waits--;
            this.#isLate = !isReplicated;
            resolve(isReplicated);
          });
      });
    });
    return line.wait;
  }
}
