/** Opens the pools of connections to Postgres: for partners, operators, background work and flushes. */
import type { Logger } from 'pino';
import { Job } from '../platform/runtime/periodicService.js';
import { closing } from '../platform/runtime/service.js';
import type { ServiceGroup } from '../platform/runtime/serviceGroup.js';
import { addressOf, lineOf } from '../platform/secretsInLogs.js';
import { connectPostgres, POSTGRES_MAJOR_MIN, type PoolOptions, readServer } from '../postgres/connect.js';
import type { PostgresPools, Sql } from '../postgres/connection.js';
import type { PostgresDurability } from '../postgres/postgresDurability.js';
import type { Shortage } from '../postgres/postgresErrors.js';
import type { Config } from './config.js';
import { SetupError } from './embedded/index.js';

/** Checks the durability settings that the first connections found. */
function checkDurability({ volatile }: PostgresDurability, config: Config, log: Logger): void {
  if (volatile.length === 0) return;
  const what = `Postgres may lose committed writes (${volatile.join('; ')})`;
  if (!config.allowVolatilePostgres) {
    throw new SetupError(
      `${what}; set fsync on, full_page_writes on and, behind a pooler, ALTER ROLE … SET synchronous_commit = on`,
    );
  }
  log.error(`${what}; serving anyway because ALLOW_VOLATILE_POSTGRES=1`);
}

/** More than one partner can occupy with its requests (serverRoutes.ts) and its exports at once. */
const REQUEST_CONNECTIONS_MAX = 10;
/** Maximum number of connections for operators' requests, sign-in and the state of the stores. */
const OPERATOR_CONNECTIONS_MAX = 3;
const WORKER_CONNECTIONS_MAX = 10;
/**
 * Maximum number of connections for flushes. Flushes of several nodes, or of separately flushed cells, may
 * run at once. The pool is opened by a worker's first flush.
 */
const LEDGER_CONNECTIONS_MAX = 4;
/**
 * Maximum number of background connections of a front end, which reads the catalog and the cursors of cells.
 */
const FRONT_END_CONNECTIONS_MAX = 2;
/**
 * Interval between two checks of the server's durability settings, in ms. After a restart of the server, the
 * settings are known sooner, because each new connection reads them, too.
 */
const DURABILITY_EVERY_MS = 5000;

/** @throws SetupError if Postgres can't be reached, is too old, or may lose committed data */
export async function openPostgresPools(
  url: string,
  config: Config,
  log: Logger,
  services: ServiceGroup,
  durability: PostgresDurability,
  shortage: Shortage,
): Promise<PostgresPools> {
  // With this setting, DATABASE_URL is the address of a connection pooler.
  const isPooled = config.DATABASE_DIRECT_URL !== undefined;
  const connect = (max: number, more: Partial<PoolOptions> = {}): Sql =>
    connectPostgres(url, {
      ...more,
      max,
      name: 'spindle',
      isPooled,
      durability,
      shortage,
      onError: (error) => log.warn({ err: lineOf(error) }, 'lost a connection to Postgres'),
    });
  let server: Awaited<ReturnType<typeof readServer>>;
  let pools: PostgresPools;
  try {
    pools = {
      requests: connect(REQUEST_CONNECTIONS_MAX, { repeatsConflicts: true }),
      operators: connect(OPERATOR_CONNECTIONS_MAX, { repeatsConflicts: true }),
      background: connect(config.roles.worker ? WORKER_CONNECTIONS_MAX : FRONT_END_CONNECTIONS_MAX),
      ledger: connect(LEDGER_CONNECTIONS_MAX, {
        isPipelined: true,
        isDurable: !config.allowVolatilePostgres,
      }),
    };
    for (const sql of Object.values(pools))
      await services.add(closing('Postgres connections', () => sql.end()));
    server = await readServer(pools.background);
  } catch (error) {
    throw new SetupError(`Cannot connect to Postgres at ${addressOf(url)}: ${lineOf(error)}`);
  }
  if (server.major < POSTGRES_MAJOR_MIN) {
    throw new SetupError(
      `Postgres at ${addressOf(url)} has version ${server.major}, but Spindle needs ${POSTGRES_MAJOR_MIN} or later`,
    );
  }
  checkDurability(durability, config, log);
  const look = (): Promise<void> => durability.look(pools.background);
  await services.add(new Job('durability watch of Postgres', DURABILITY_EVERY_MS, look));
  if (!server.hasTimeouts)
    log.warn(
      'Postgres has no timeout for hanging statements: set statement_timeout and idle_in_transaction_session_timeout on the role',
    );
  return pools;
}
