/** Interfaces of connections to Postgres: a pool or a transaction. connect.ts opens them. */
/**
 * Runs a statement and returns its rows. The column `key_id` is the member `keyId`. 8-byte integers and
 * integral `numeric` values (sums) are returned as BigInt; {@link safe} converts them to numbers.
 */
export type Run = <Rows extends readonly object[]>(
  text: TemplateStringsArray,
  ...values: unknown[]
) => Promise<Rows>;

export interface Transaction extends Run {
  copy(statement: string, bytes: Buffer): Promise<void>;
  /** Removes the time limits of the remaining statements of the transaction. */
  patiently(): Promise<void>;
  /**
   * Runs COPY … TO STDOUT and yields its bytes as fast as they are consumed. The time limit of statements
   * applies to it.
   */
  read(statement: string): AsyncIterable<Buffer>;
}

export interface Sql extends Run {
  /**
   * Runs a statement that is frequent and costs more to plan than to execute. If possible, each connection
   * parses the statement only once.
   */
  readonly prepared: Run;
  /** Runs writes in one transaction, on a connection of its own. Any exception rolls the transaction back. */
  begin<T>(run: (tx: Transaction) => Promise<T>, mode?: string): Promise<T>;
  /**
   * Number of connections in the pool, number of idle connections, and number of requests that wait for a
   * connection.
   */
  readonly pool: { readonly total: number; readonly idle: number; readonly waiting: number };
  end(): Promise<void>;
}

/** If requests use all connections of their pool, they still do not delay flushes, leases or rebuilds. */
export interface PostgresPools {
  /** Connections for requests of partners. */
  readonly requests: Sql;
  /** Connections for requests of operators and for health checks, which no partner can occupy. */
  readonly operators: Sql;
  /** Connections for leases, rebuilds, and reads for this process's own purposes. */
  readonly background: Sql;
  /** Pipelined connections for flushes of the ledger. */
  readonly ledger: Sql;
}
