/** The interface between a benchmark and the load generator, which is a separate process. */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Cleanup } from '../test/support/cleanup.js';
import { ROOT } from '../test/support/root.js';
import { endProcess } from '../test/support/serverProcess.js';

/** A game with the API key of its partner. */
export interface Target {
  readonly apiKey: string;
  readonly gameId: number;
  readonly wagerUsd: number;
}

export const KINDS = ['spins', 'rounds', 'reads', 'writes'] as const;
export type Kind = (typeof KINDS)[number];

/** Other requests that are sent besides spins. */
export interface Mix {
  readonly partners: readonly {
    readonly apiKey: string;
    readonly tableId: number;
    readonly webhookId: number;
  }[];
  readonly tableWagerUsd: number;
  /** Fraction of each kind of request. A deal of a round is followed by requests that do not count. */
  readonly shares: Readonly<Record<Kind, number>>;
}

/** State of a connection of the load generator. */
export interface Connection {
  /** Kind of the request that is being answered. */
  kind: Kind;
  apiKey?: string;
  /** Next request of the connection, if the last response requires one. */
  followUp?: Buffer | undefined;
}

export interface RequestSource {
  next(connection: Connection): Buffer;
  received?(connection: Connection, status: number, body: string): void;
}

export interface LoadOrder {
  readonly base: string;
  readonly path: string;
  /** Targets of the spins, drawn at random. */
  readonly targets: readonly Target[];
  /** True: the n-th target has a frequency proportional to 1/n (Zipf's law). Default: all the same. */
  readonly isZipf?: boolean;
  readonly mix?: Mix;
  readonly connections: number;
  readonly players: number;
  readonly hasRequestId: boolean;
  readonly seconds: number;
  /** Requests per second of an open loop. Undefined: a closed loop. */
  readonly rate: number | undefined;
  /** Prefix of the request ids of a load. It differs from the prefix of any other load. */
  readonly requestIdPrefix: string;
}

export interface LoadResult {
  /** Number of spins with a 2xx status, which are dealt spins. */
  readonly spins: number;
  readonly non2xx: number;
  /** Number of failed connections and of requests that timed out. */
  readonly errors: number;
  readonly statuses: Readonly<Record<string, number>>;
  /** Seconds from the first request to the last answer. */
  readonly seconds: number;
  /** Latency of the spins in ms, in an open loop from the time at which the request was due. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
  /** In an open loop: delay of requests that were due and had a free connection. */
  readonly lateP99Ms: number | undefined;
  /** Latencies of each kind of request. Without a mix there are only spins. */
  readonly kinds: Readonly<Partial<Record<Kind, Latencies>>>;
}

/** Number of responses, and percentiles of their latency in ms. */
export interface Latencies {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
}

/** Returns the number of responses of all kinds. */
export const requestsOf = ({ kinds }: LoadResult): number =>
  Object.values(kinds).reduce((sum, { count }) => sum + count, 0);

export interface Generator {
  readonly pid: number;
  load(order: Omit<LoadOrder, 'path' | 'requestIdPrefix'>): Promise<LoadResult>;
}

const SPIN_PATH = '/api/partner/v1/spin';
/** Length of a request id's prefix. With a hyphen and 12 digits, a request id is as long as a UUID. */
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
