/**
 * Calls of scripts that also say whether every replica has what they wrote: EVALSHA, and WAIT behind it on the same connection.
 *
 * WAIT holds up its connection, so there are several, and they take turns. What is called in one turn of the event loop shares one
 * WAIT. Replicas that sync each write (`appendfsync always`) acknowledge after their own fsync; where one does not (replicaWatch.ts),
 * nothing is taken for replicated.
 */
import type { RedisClient } from './redisClient.js';
import { NotSentError } from './scriptErrors.js';

export interface ReplicatedReply {
  readonly reply: Buffer;
  /** Every replica that the cluster knows of the server has what the call wrote, and what came before it. */
  readonly isReplicated: boolean;
}

interface Line {
  readonly client: RedisClient;
  /** WAITs that are not answered. */
  waits: number;
  /** That of this turn of the event loop, to be sent at its end. */
  wait: Promise<boolean> | undefined;
}

const LINES = 2;
/** Longest wait for the replicas. Beyond it the ledger is sooner. */
const WAIT_MS = 250;
/** After one that was too long, until one is not. 0 would wait for ever. */
const LATE_WAIT_MS = 1;

/** The replicas of a server. */
export interface Replicas {
  /** How many the cluster knows; with none nothing is replicated. */
  readonly count: number;
  /** Each of them keeps what it acknowledges. */
  readonly areDurable: boolean;
}

export class ReplicatedCalls {
  readonly #lines: readonly Line[];
  readonly #replicas: Replicas;
  #isLate = false;

  /**
   * Connects in the background.
   * @param open makes a connection
   */
  constructor(open: () => RedisClient, replicas: Replicas) {
    this.#replicas = replicas;
    this.#lines = Array.from({ length: LINES }, () => ({ client: open(), waits: 0, wait: undefined }));
    // What fails is reported, and tried again.
    for (const { client } of this.#lines) client.connect().catch(() => {});
  }

  /** The newest WAIT was answered in time, by all replicas, and they keep what they acknowledge. */
  get isCurrent(): boolean {
    return !this.#isLate && this.#replicas.count > 0 && this.#replicas.areDurable;
  }

  close(): void {
    for (const { client } of this.#lines) client.close();
  }

  identifyAgain(): void {
    for (const { client } of this.#lines) client.identifyAgain();
  }

  /** Writes the commands that are called in there at once, in one piece. */
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
   * @param run calls the script over a connection. `again` is to be called where it was not known and is sent once more
   * @throws NotSentError while there is no connection; what `run` throws.
   */
  async call(
    run: (client: RedisClient, serverId: string, again: () => void) => Promise<unknown>,
  ): Promise<ReplicatedReply> {
    const line = this.#pick();
    let wait: Promise<boolean> | undefined;
    // What is sent again comes after the first WAIT.
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
      // Those that are called together go together.
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
        const wanted = this.#replicas.count;
        if (wanted === 0 || !this.#replicas.areDurable) {
          resolve(false);
          return;
        }
        line.waits++;
        line.client
          .call('WAIT', wanted, this.#isLate ? LATE_WAIT_MS : WAIT_MS)
          .then(
            (acknowledged) => Number(acknowledged) >= wanted && this.#replicas.areDurable,
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
