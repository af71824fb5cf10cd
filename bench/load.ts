/** The load generator as its parent sees it: a process that puts load on a server by order and reports the results. */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { endProcess } from '../test/support/serverProcess.js';

/** A game, and the key of its partner. */
export interface Target {
  readonly apiKey: string;
  readonly gameId: number;
  readonly wagerUsd: number;
}

export interface LoadOrder {
  readonly base: string;
  readonly path: string;
  /** Each spin is of one of these, drawn at random; one that is named twice is drawn twice as often. */
  readonly targets: readonly Target[];
  readonly connections: number;
  readonly players: number;
  readonly hasRequestId: boolean;
  readonly seconds: number;
  /** Spins a second of an open loop; undefined: closed, each connection has one spin under way, always. */
  readonly rate: number | undefined;
  /** Unlike that of any other run: request ids begin with it. */
  readonly requestIdPrefix: string;
}

export interface LoadResult {
  /** Answers with a 2xx status: spins that were dealt. */
  readonly spins: number;
  readonly non2xx: number;
  /** Connections that failed, and requests that were given up. */
  readonly errors: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** From the first request to the last answer. */
  readonly seconds: number;
  /** Closed loop: from the request's sending. Open loop: from the time at which it should have been sent. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
  /**
   * Open loop: from the time at which a request should have been sent until it was, of those for which a connection was free:
   * the generator's own part of the latency.
   */
  readonly lateP99Ms: number | undefined;
}

export interface Generator {
  readonly pid: number;
  load(order: Omit<LoadOrder, 'path' | 'requestIdPrefix'>): Promise<LoadResult>;
}

const SPIN_PATH = '/api/partner/v1/spin';
/** A request id is as long as a UUID: this, a hyphen and 12 digits. */
const PREFIX_LENGTH = 23;

export function startGenerator(cleanup: Cleanup): Generator {
  const requestIdPrefix = randomBytes(12).toString('hex').slice(0, PREFIX_LENGTH);
  const child = fork(join(ROOT, 'dist', 'bench', 'generator.js'));
  cleanup.add(() => endProcess(child));
  return {
    pid: child.pid!,
    load: async (part) => {
      const answered = new AbortController();
      child.send({ ...part, path: SPIN_PATH, requestIdPrefix });
      try {
        const [result] = await Promise.race([
          once(child, 'message', answered),
          once(child, 'exit', answered).then(() => {
            throw new Error('The load generator has ended');
          }),
        ]);
        return result as LoadResult;
      } finally {
        answered.abort();
      }
    },
  };
}
