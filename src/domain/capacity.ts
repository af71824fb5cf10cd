/**
 * What a load needs: processes, cores, memory and disk, from what was measured of one unit of each (docs/scaling.md says
 * where each figure comes from, docs/performance.md how it was measured).
 */

/** CPU of a spin by process, microseconds, with batches of 64 connections: larger ones cost less. */
const CPU_MICROS = { frontEnd: 18.9, worker: 4.0, redis: 11.3, postgres: 3.7 } as const;
/** Bytes of one unit of each thing that is stored. */
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
/** Share of a core that is planned to be used: the rest is for bursts, garbage and a neighbour that has failed. */
const CORE_SHARE = 0.6;
/** How much more CPU a spin costs each time that its spins are of ten times as many partners; measured up to 100. */
const PARTNERS_FACTOR = 0.21;
const PARTNERS_DECADES_MAX = 2;
/** How much more Redis costs on several nodes, whose batches are smaller. */
const NODES_FACTOR = 1.28;
/** Windows for which Redis holds a request id (REQUEST_ID_WINDOW_S), seconds. */
const REQUEST_ID_SECONDS = 2 * 1800;
/** IDEMPOTENCY_TTL_S, as it is by default. */
const BINDING_SECONDS = 259_200;
/** Outcomes that are loaded ahead of the spins, seconds. */
const AHEAD_SECONDS = 4;
/** The allocator's rounding, hash tables that grow, and what a rewrite of the log copies. */
const REDIS_MARGIN = 1.5;
const DAY_SECONDS = 86_400;

export interface Load {
  /** Spins a second, as a mean over the hours that matter; 1 or more. */
  readonly spins: number;
  readonly partners: number;
  /** Players with a balance, of all partners. */
  readonly players: number;
  /** Days that the ledger keeps in Postgres. */
  readonly days: number;
}

export interface Capacity {
  readonly frontEnds: number;
  readonly workers: number;
  readonly redisNodes: number;
  /** Cores that are busy at this load, of each kind. */
  readonly cores: {
    readonly frontEnd: number;
    readonly worker: number;
    readonly redis: number;
    readonly postgres: number;
  };
  readonly bytes: {
    /** Of all Redis nodes together. */
    readonly redis: number;
    /** Of each front end: filters of request ids. */
    readonly filters: number;
    readonly ledgerDay: number;
    readonly walDay: number;
    readonly archiveDay: number;
    /** The ledger of `days`, and the request ids that bind. */
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
