/** What is measured: of a period of load, of a turn (one start of one server), of a run. */
import type { Machine } from './machine.js';
import type { Second, SlowSecond } from './slowSeconds.js';

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
  readonly lateP99Ms?: number;
  /** Open loop: latency by the second in which the answers came. */
  readonly bySecond?: readonly Second[];
}

/** Shares of the machine's CPU time. Where the last two are not small, the numbers are of a disturbed machine. */
export interface Shares {
  readonly idle: number;
  /** Used by what is no part of the bench. */
  readonly others: number;
  /** Stolen by other machines of the host. */
  readonly stolen: number;
}

/** From the making of the oldest entry of a flush until its commit was announced, over the flushes of a period. */
export interface FlushLag {
  readonly flushes: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}

/** What was put into the service before a period, and what its Redis took for each. */
export interface Grown {
  readonly what: string;
  readonly count: number;
  readonly bytesEach: number;
  readonly seconds: number;
}

export interface Measurement {
  readonly scenario: string;
  readonly period: string;
  readonly server: string;
  readonly round: number;
  readonly connections: number;
  /** Requests a second of an open loop; undefined: closed. */
  readonly rate: number | undefined;
  readonly spinsPerSecond: number;
  readonly load: LoadResult;
  /** Microseconds; `total` is that of the server and its stores, without the load generator. */
  readonly cpuPerSpin: Readonly<Record<string, number>>;
  readonly shares: Shares;
  /** Of an open loop on the service. */
  readonly slowSeconds: readonly SlowSecond[] | undefined;
  /** From the last answer until the outbox was empty. */
  readonly drainSeconds: number;
  readonly flushLag: FlushLag | undefined;
  readonly grown: Grown | undefined;
}

export interface Versions {
  readonly redis: string;
  readonly postgres: string;
}

/** One start of one server. */
export interface Turn {
  readonly scenario: string;
  readonly round: number;
  readonly measurements: readonly Measurement[];
  /** All spins that were answered, warm-ups among them, and what the ledger has of them. */
  readonly books:
    | { readonly spins: number; readonly ledgerRows: number; readonly outboxEntries: number }
    | undefined;
  readonly versions: Versions | undefined;
  /** Which made the load; absent in what was measured before there were several. */
  readonly generator?: NonNullable<Run['settings']['generator']>;
  /** What makes the numbers void; empty where nothing does. */
  readonly faults: readonly string[];
}

/** A target, and what was measured, round by round. */
export interface Verdict {
  readonly what: string;
  readonly bound: { readonly atMost: number } | { readonly atLeast: number };
  readonly rounds: readonly number[];
  readonly median: number;
  readonly isMet: boolean;
}

/** Medians over the rounds of a period. */
export interface Summary
  extends Pick<
    Measurement,
    'scenario' | 'period' | 'server' | 'connections' | 'spinsPerSecond' | 'cpuPerSpin'
  > {
  readonly rate: number | undefined;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly idle: number;
  readonly lateP99Ms: number | undefined;
  readonly flushLagP99Ms: number | undefined;
  readonly grown: Grown | undefined;
}

/** A line of bench/results/runs.jsonl. */
export interface Run {
  readonly at: string;
  readonly suite: string;
  /** Every scenario of the suite, for as long and as often as is usual. */
  readonly isWhole: boolean;
  readonly machine: Machine;
  readonly versions: Versions | undefined;
  readonly settings: {
    readonly seconds: number;
    readonly warmUpSeconds: number;
    readonly rounds: number;
    readonly parSheet: string;
    /** Absent in what was measured before there were two: autocannon. */
    readonly generator?: 'ring' | 'autocannon';
  };
  readonly tookSeconds: number;
  readonly summaries: readonly Summary[];
  readonly verdicts: readonly Verdict[];
  readonly blockMaking: Readonly<Record<string, number>> | undefined;
  readonly faults: readonly string[];
  readonly turns: readonly Turn[];
  /** Turns that were repeated because the machine was busy with other work. Their faults still count. */
  readonly discarded: readonly Turn[];
}

/** Share of the machine that may go to others before a period is called disturbed. */
const DISTURBED_FROM = 0.1;

export const lostOf = ({ shares }: Pick<Measurement, 'shares'>): number => shares.others + shares.stolen;
/** Whether so much of the machine went to others that the numbers say little. */
export const isDisturbed = (measurement: Pick<Measurement, 'shares'>): boolean =>
  lostOf(measurement) >= DISTURBED_FROM;

export const periodOf = ({ scenario, period }: { scenario: string; period: string }): string =>
  `${scenario}/${period}`;
