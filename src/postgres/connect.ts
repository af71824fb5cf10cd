/**
 * Opens connections to Postgres. No other file opens connections.
 *
 * Statements are written as tagged templates (`sql\`SELECT … ${value}\``). A value in `${}` becomes a
 * parameter, never SQL text, unless it is made by {@link raw}.
 */
import type { Duplex } from 'node:stream';
import {
  Client,
  type ClientBase,
  type ClientConfig,
  type Connection,
  DatabaseError,
  Pool,
  type PoolClient,
  type QueryConfig,
  types,
} from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { lineOf } from '../platform/secretsInLogs.js';
import type { Run, Sql, Transaction } from './connection.js';
import { CopyIn } from './copy.js';
import { type PostgresDurability, VolatilePostgresError } from './postgresDurability.js';
import {
  isConflict,
  isPostgresAway,
  isStandby,
  NoConnectionError,
  type Shortage,
  StandbyError,
} from './postgresErrors.js';
import { PostgresHosts } from './postgresUrl.js';
import { PreparedQuery } from './preparedQuery.js';
import { type FoundSettings, POOLED_SQL, SESSION_SQL, TRANSACTION_SQL } from './sessionSettings.js';
import { GivenRows, Raw } from './statements.js';

/** Oldest major version of Postgres for which the schema is tested. */
export const POSTGRES_MAJOR_MIN = 15;

const CONNECT_WITHIN_MS = 3000;
/** Timeout of a statement, in ms. After the timeout the statement fails and its connection is closed. */
const ANSWER_WITHIN_MS = 8000;
const IDLE_IN_TRANSACTION_MS = 2500;

/** Maximum number of attempts for a transaction that conflicts with others. */
const CONFLICT_TRIES = 3;
/** Maximum delay that a timer of Node.js can have, in ms. */
const TIMER_MAX_MS = 2 ** 31 - 1;

export interface PoolOptions {
  readonly max: number;
  readonly name: string;
  /** Called when a connection breaks while it is idle. The pool replaces the connection. */
  readonly onError: (error: Error) => void;
  /**
   * Whether each connection sends statements of a transaction that don't wait for each other
   * ({@link together}) in one write, so that they take only one round trip. A connection that does so can't
   * run COPY … TO STDOUT.
   */
  readonly isPipelined?: boolean;
  /**
   * Whether a pooler shares connections between transactions. Each transaction then sets its own settings,
   * and no statement is prepared, because the next transaction may get another connection. Otherwise each
   * connection parses a statement with parameters only once.
   */
  readonly isPooled?: boolean;
  /** Object that gets the durability settings of the server whenever a new connection has read them. */
  readonly durability?: PostgresDurability;
  /** Object that is told when the server lacks resources. */
  readonly shortage?: Shortage;
  /**
   * Whether a transaction is repeated after a deadlock or conflict. Its effects outside the database must
   * then be repeatable.
   */
  readonly repeatsConflicts?: boolean;
  /** Whether transactions are refused while the server may lose committed data. */
  readonly isDurable?: boolean;
}

/** @throws Error with a one-line message if the URL can't be used */
export function connectPostgres(url: string, options: PoolOptions): Sql {
  // Whether a statement behind a pooler must run in a transaction of its own, which sets the required
  // settings.
  let bringsOwnSettings = false;
  const hosts = new PostgresHosts(url);
  const pool = new (poolOf(hosts))({
    ...hosts.options,
    Client: clientOf(hosts),
    max: options.max,
    pipeline: options.isPipelined ?? false,
    application_name: options.name,
    connectionTimeoutMillis: CONNECT_WITHIN_MS,
    query_timeout: ANSWER_WITHIN_MS,
    // The server also enforces the timeout. If a worker stops during a transaction, the transaction's row
    // lock must not outlive the worker's lease.
    statement_timeout: ANSWER_WITHIN_MS,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    idleTimeoutMillis: 0,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    onConnect: async (client: ClientBase) => {
      const { rows } = await client.query(options.isPooled ? POOLED_SQL : SESSION_SQL);
      const found = rows[0] as FoundSettings;
      if (found.isStandby) throw new StandbyError();
      options.durability?.note(found);
      bringsOwnSettings = options.isPooled === true && found.different > 0n;
    },
    types: {
      getTypeParser: ((oid: number, format: never) =>
        oid === types.builtins.INT8 || oid === types.builtins.NUMERIC
          ? BigInt
          : types.getTypeParser(oid, format)) as typeof types.getTypeParser,
    },
  });
  // Without these listeners, an error of a broken connection would end the process.
  pool.on('error', options.onError);
  pool.on('connect', (client) => client.on('error', options.onError));
  const begin = async <T>(run: (tx: Transaction) => Promise<T>, mode = ''): Promise<T> => {
    for (let tries = 1; ; tries++) {
      try {
        const result = await transaction(pool, run, mode, options);
        if (options.isDurable !== undefined) options.shortage?.over();
        return result;
      } catch (error) {
        options.shortage?.failed(error);
        if (!options.repeatsConflicts || tries === CONFLICT_TRIES || !isConflict(error)) throw error;
      }
    }
  };
  const noted =
    (statement: Run): Run =>
    (text, ...values) =>
      statement<never>(text, ...values).catch((error: unknown) => {
        options.shortage?.failed(error);
        throw error;
      });
  const alone = noted(runOn(pool, undefined, (parameters) => !options.isPooled && parameters > 0));
  let firstConnection: Promise<void> | undefined;
  const pooled: Run = async (text, ...values) => {
    // The durability settings are known only after the first connection is open.
    firstConnection ??= pool.connect().then((client) => client.release());
    await firstConnection.catch((error: unknown) => {
      firstConnection = undefined;
      throw error;
    });
    return bringsOwnSettings ? begin((tx) => tx(text, ...values)) : alone(text, ...values);
  };
  const run = options.isPooled ? pooled : alone;
  return Object.assign(run, {
    prepared: options.isPooled ? pooled : noted(runOn(pool, undefined, () => true)),
    begin,
    pool: {
      get total() {
        return pool.totalCount;
      },
      get idle() {
        return pool.idleCount;
      },
      get waiting() {
        return pool.waitingCount;
      },
    },
    end: () => pool.end(),
  });
}

/**
 * Returns a class of connections to the host whose turn it is. Rows have members in camelCase: the column
 * `key_id` is the member `keyId`.
 */
const clientOf = (hosts: PostgresHosts) =>
  class extends Client {
    constructor(config?: ClientConfig) {
      // The password among the pool's options is not enumerable, so the options are not copied.
      super(Object.assign(config ?? {}, hosts.place));
      // This listener precedes that of the driver, which reads the names once for all rows of a result.
      const { connection } = this as unknown as { connection: Connection };
      connection.on('rowDescription', ({ fields }: { fields: { name: string }[] }) => {
        for (const field of fields) field.name = memberOf(field.name);
      });
    }
  };

/** Names of members by column. The service's statements have a fixed number of columns. */
const MEMBERS = new Map<string, string>();

function memberOf(column: string): string {
  const known = MEMBERS.get(column);
  if (known !== undefined) return known;
  const member = column.replace(/(?<=[a-z0-9])_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  MEMBERS.set(column, member);
  return member;
}

/** Error of a pool whose connections are all in use. */
const FULL = /^timeout exceeded when trying to connect/;

type Connected = (error: Error | undefined, client: PoolClient | undefined, release: () => void) => void;

/** Returns a class of pools that try all hosts before they report that none can be used. */
const poolOf = (hosts: PostgresHosts): typeof Pool =>
  class extends Pool {
    override connect(): Promise<PoolClient>;
    override connect(callback: Connected): void;
    override connect(callback?: Connected): Promise<PoolClient> | undefined {
      const connecting = this.#connect();
      if (callback === undefined) return connecting;
      connecting.then(
        (client) => callback(undefined, client, () => client.release()),
        (error: Error) => callback(error, undefined, () => {}),
      );
      return undefined;
    }

    /** @throws NoConnectionError */
    async #connect(): Promise<PoolClient> {
      for (let left = hosts.count; ; left--) {
        const { turn } = hosts;
        try {
          return await super.connect();
        } catch (error) {
          // A full pool says nothing about its host.
          const isLast = left === 1 || FULL.test((error as Error).message);
          if (isLast) throw asNoConnection(error);
          hosts.failed(turn);
        }
      }
    }
  };

const asNoConnection = (error: unknown): NoConnectionError =>
  error instanceof NoConnectionError ? error : new NoConnectionError(lineOf(error), { cause: error });

/** Names of prepared statements by text. */
const STATEMENT_NAMES = new Map<string, string>();
/** A connection keeps the plans of its statements, so statements beyond this number are not prepared. */
const PREPARED_MAX = 1000;

function statementName(text: string): string | undefined {
  const known = STATEMENT_NAMES.get(text);
  if (known !== undefined) return known;
  if (STATEMENT_NAMES.size === PREPARED_MAX) return undefined;
  const name = `spindle_${STATEMENT_NAMES.size}`;
  STATEMENT_NAMES.set(text, name);
  return name;
}

/**
 * Runs a query for which the driver returns no promise. Like the driver, shows the caller in the stack of an
 * error.
 */
const ended = (client: Pick<Pool, 'query'>, query: PreparedQuery): Promise<{ rows: object[] }> =>
  new Promise<{ rows: object[] }>((resolve, reject) => {
    client.query(query as unknown as string, [], (error: Error | null | undefined, result) => {
      if (error) reject(error);
      else resolve(result);
    });
  }).catch((error: Error) => {
    Error.captureStackTrace(error);
    throw error;
  });

function runOn(
  client: Pick<PoolClient, 'query'> | Pool,
  limits = { queryMs: ANSWER_WITHIN_MS },
  isNamed: (parameters: number) => boolean = () => false,
): Run {
  return async (strings, ...values) => {
    let text = strings[0]!;
    const parameters: unknown[] = [];
    values.forEach((value, i) => {
      if (value instanceof Raw) text += value.text;
      else if (value instanceof GivenRows) {
        const lists = value.lists.map((list, at) => `$${parameters.push(list)}::${value.types[at]}[]`);
        text += `unnest(${lists.join(', ')}) AS ${value.names}`;
      } else text += `$${parameters.push(value)}`;
      text += strings[i + 1];
    });
    const name = isNamed(parameters.length) ? statementName(text) : undefined;
    const result =
      name === undefined
        ? await client.query({ text, values: parameters, query_timeout: limits.queryMs } as QueryConfig)
        : await ended(client, new PreparedQuery(name, text, parameters, limits.queryMs));
    return result.rows as never;
  };
}

async function transaction<T>(
  pool: Pool,
  run: (tx: Transaction) => Promise<T>,
  mode: string,
  { isPooled, isDurable, durability }: PoolOptions,
): Promise<T> {
  const client = await pool.connect();
  if (isDurable && durability !== undefined && durability.volatile.length > 0) {
    client.release();
    throw new VolatilePostgresError(durability.volatile);
  }
  let broken: Error | undefined;
  try {
    const begin = `BEGIN ${mode === '' ? 'ISOLATION LEVEL READ COMMITTED, READ WRITE' : mode}`;
    await client.query(isPooled ? `${begin}; ${TRANSACTION_SQL}` : begin);
    const copy = (statement: string, bytes: Buffer): Promise<void> =>
      new Promise((resolve, reject) => {
        client.query(
          new CopyIn(statement, bytes, (error) => {
            if (error === null) resolve();
            else reject(error);
          }),
        );
      });
    const limits = { queryMs: ANSWER_WITHIN_MS };
    const patiently = async (): Promise<void> => {
      limits.queryMs = TIMER_MAX_MS;
      await client.query(
        'SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0',
      );
    };
    async function* read(statement: string): AsyncIterable<Buffer> {
      // A connection is unusable until the reply to its COPY has been read completely.
      broken = new Error('A COPY was not read to its end');
      yield* readCopy(client, statement, limits.queryMs);
      broken = undefined;
    }
    const { stream } = (client as unknown as { connection: { stream: Duplex } }).connection;
    stream.cork();
    // The cork holds back all statements that the callback sends before it first waits, so that all of them
    // leave in one write.
    const running = run(
      Object.assign(
        runOn(client, limits, (parameters) => isPooled !== true && parameters > 0),
        { copy, patiently, read },
      ),
    );
    stream.uncork();
    const result = await running;
    await client.query('COMMIT');
    return result;
  } catch (error) {
    // No rollback is sent to a server that does not respond: it would not answer the rollback either, and the
    // caller would wait for it.
    const isAway = error instanceof DatabaseError ? isStandby(error) : isPostgresAway(error);
    if (isAway) broken ??= error as Error;
    if (broken === undefined) {
      await client.query('ROLLBACK').catch((again: Error) => {
        broken = again;
      });
    }
    throw error;
  } finally {
    client.release(broken);
  }
}

async function* readCopy(client: PoolClient, statement: string, withinMs: number): AsyncIterable<Buffer> {
  const query = client.query(Object.assign(copyTo(statement), { query_timeout: withinMs }));
  try {
    yield* query as AsyncIterable<Buffer>;
  } finally {
    // The driver stops its timer in this callback. For this kind of query the driver does not call the
    // callback, so it is called here.
    (query as { callback?: () => void }).callback?.();
  }
}

/**
 * Reads the major version of the server, such as 15, and whether the server ends hanging statements and
 * transactions.
 */
export async function readServer(sql: Sql): Promise<{ major: number; hasTimeouts: boolean }> {
  const [row] = await sql<{ version: string; statement: string; idle: string }[]>`
    SELECT current_setting('server_version_num') AS version, current_setting('statement_timeout') AS statement,
           current_setting('idle_in_transaction_session_timeout') AS idle`;
  return {
    major: Math.floor(Number(row!.version) / 10_000),
    hasTimeouts: row!.statement !== '0' && row!.idle !== '0',
  };
}
