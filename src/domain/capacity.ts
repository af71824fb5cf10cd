/**
 * Estimates the processes, cores, memory and disk space for a load, from measured costs per spin, player and
 * stored row. docs/scaling.md has the source of each figure, and docs/performance.md describes the
 * measurements.
 */

/** CPU time of a spin by process, in microseconds, at 64 connections. Larger batches cost less. */
const CPU_MICROS = { frontEnd: 18.9, worker: 4.0, redis: 11.3, postgres: 3.7 } as const;
/** Size of one stored unit of each kind, in bytes. */
const BYTES = {
  redisPlayer: 105,
  redisRequestId: 116,
  redisOutcome: 2.6,
  filterRequestId: 2,
  ledgerRow: 172.3,
  requestRun: 66,
  wal: 210,
  archivedRow: 34.2,
} as const;
/**
 * Planned utilisation of a core. The rest is for bursts, garbage collection and taking over from a failed
 * neighbour.
 */
const CORE_SHARE = 0.6;
/**
 * Relative increase of a spin's CPU time each time the number of partners grows tenfold, as measured up to
 * 100 partners.
 */
const PARTNERS_FACTOR = 0.21;
const PARTNERS_DECADES_MAX = 2;
/**
 * Factor by which a spin costs more CPU time in Redis if there are several nodes, because their batches are
 * smaller.
 */
const NODES_FACTOR = 1.28;
/** Time for which Redis holds a request id, in seconds: two windows of REQUEST_ID_WINDOW_S. */
const REQUEST_ID_SECONDS = 2 * 1800;
/** Default of IDEMPOTENCY_TTL_S, in seconds. */
const BINDING_SECONDS = 259_200;
/** Reserve of outcomes loaded ahead of the spins, in seconds. */
const AHEAD_SECONDS = 4;
/**
 * Margin for Redis memory: rounding by the allocator, growth of hash tables, and copies during a rewrite of
 * the AOF.
 */
const REDIS_MARGIN = 1.5;
const DAY_SECONDS = 86_400;

export interface Load {
  /** Spins per second, as a mean over the busy hours; at least 1. */
  readonly spins: number;
  readonly partners: number;
  /** Number of players with a balance, of all partners. */
  readonly players: number;
  /** Retention of the ledger in Postgres, in days: LEDGER_KEEP_DAYS. */
  readonly days: number;
}

export interface Capacity {
  readonly frontEnds: number;
  readonly workers: number;
  readonly redisNodes: number;
  /** Number of busy cores at this load, by kind of process. */
  readonly cores: {
    readonly frontEnd: number;
    readonly worker: number;
    readonly redis: number;
    readonly postgres: number;
  };
  readonly bytes: {
    /** Memory of all Redis nodes together, in bytes. */
    readonly redis: number;
    /** Memory of each front end for the request-id filters. */
    readonly filters: number;
    readonly ledgerDay: number;
    readonly walDay: number;
    readonly archiveDay: number;
    /** Disk space, in bytes, of the ledger for `days` days and of the request ids that still bind. */
    readonly postgres: number;
  };
}

export function capacityOf({ spins, partners, players, days }: Load): Capacity {
  const decades = Math.min(Math.log10(Math.max(1, partners)), PARTNERS_DECADES_MAX);
  const factor = 1 + PARTNERS_FACTOR * decades;
  const coresOf = (micros: number): number => (spins * factor * micros) / 1_000_000;
  const one = coresOf(CPU_MICROS.redis);
  const redis = one > CORE_SHARE ? one * NODES_FACTOR : one;
  const cores = {
    frontEnd: coresOf(CPU_MICROS.frontEnd),
    worker: coresOf(CPU_MICROS.worker),
    redis,
    postgres: coresOf(CPU_MICROS.postgres),
  };
  const processes = (busy: number): number => Math.max(1, Math.ceil(busy / CORE_SHARE));
  const inRedis =
    players * BYTES.redisPlayer +
    spins * (REQUEST_ID_SECONDS * BYTES.redisRequestId + AHEAD_SECONDS * BYTES.redisOutcome);
  const ledgerDay = spins * DAY_SECONDS * BYTES.ledgerRow;
  return {
    frontEnds: processes(cores.frontEnd),
    workers: processes(cores.worker),
    redisNodes: processes(cores.redis),
    cores,
    bytes: {
      redis: inRedis * REDIS_MARGIN,
      filters: spins * BINDING_SECONDS * BYTES.filterRequestId,
      ledgerDay,
      walDay: spins * DAY_SECONDS * BYTES.wal,
      archiveDay: spins * DAY_SECONDS * BYTES.archivedRow,
      postgres: ledgerDay * days + spins * BINDING_SECONDS * BYTES.requestRun,
    },
  };
}
