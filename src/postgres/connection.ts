/** What a statement runs on: a pool of connections, or a transaction. Opened by connect.ts. */
/** Runs one statement and gives its rows. 8-byte integers and whole `numeric`s (sums) are read as BigInt; {@link safe} makes numbers of them. */
export type Run = <Rows extends readonly object[]>(
  text: TemplateStringsArray,
  ...values: unknown[]
) => Promise<Rows>;

export interface Transaction extends Run {
  /** Runs COPY … FROM STDIN with these bytes. */
  copy(statement: string, bytes: Buffer): Promise<void>;
  /** From here on the statements of the transaction may take as long as they take. */
  patiently(): Promise<void>;
  /** Runs COPY … TO STDOUT and gives its bytes piece by piece, as fast as they are taken. It may take no longer than any other statement. */
  read(statement: string): AsyncIterable<Buffer>;
}

export interface Sql extends Run {
  /** The same of a statement that is run often and costs more to plan than to run: each connection parses it once, where that can be. */
  readonly prepared: Run;
  /** Runs the writes in one transaction, on a connection of its own; whatever they throw undoes it. */
  begin<T>(run: (tx: Transaction) => Promise<T>, mode?: string): Promise<T>;
  /** Connections in the pool, and how many of them do nothing. */
  readonly pool: { readonly total: number; readonly idle: number; readonly waiting: number };
  end(): Promise<void>;
}

/** The connections to Postgres: requests that take all of theirs hold up no flush, no lease and no rebuild. */
export interface PostgresPools {
  /** What partners and operators ask. */
  readonly requests: Sql;
  /** Leases, rebuilds, and what this process reads for itself. */
  readonly background: Sql;
  /** Flushes: pipelined. */
  readonly ledger: Sql;
}
