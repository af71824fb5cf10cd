/**
 * Wrappers of connections that limit how long a statement waits for a lock, or how many connections are used
 * at once.
 */
import { FairQueue } from '../platform/runtime/fairQueue.js';
import type { Run, Sql, Transaction } from './connection.js';

/**
 * Limits how long each further statement of the transaction waits for a lock.
 * @throws Error if the time that the caller may wait has run out
 */
export async function boundLocks(tx: Transaction, leftMs: number): Promise<void> {
  // Less than 1 ms would make `lock_timeout` 0, which means no limit.
  if (leftMs < 1) throw new Error('No time is left to wait for locks');
  await tx`SELECT set_config('lock_timeout', ${String(Math.floor(leftMs))}, true)`;
}

/**
 * Returns connections on which no statement waits long for a lock, for callers that must not wait behind
 * other transactions.
 * @param leftMs returns the time left in ms, called when a transaction begins; a transaction that waits for
 * several locks calls {@link boundLocks} again
 */
export function lockingWithin(sql: Sql, leftMs: () => number): Sql {
  const begin: Sql['begin'] = (run, mode) =>
    sql.begin(async (tx) => {
      await boundLocks(tx, leftMs());
      return run(tx);
    }, mode);
  const alone: Run = (text, ...values) => begin((tx) => tx(text, ...values));
  return Object.assign(alone, { prepared: alone, begin, pool: sql.pool, end: () => sql.end() });
}

/**
 * Returns a restricted access to the connections, through which at most `connections` are used at once. A
 * transaction uses one connection, and must not run other statements through this access meanwhile.
 */
export function limited(sql: Sql, connections: number): Sql {
  const turns = new FairQueue({ atOnce: connections });
  const inTurn = <T>(job: () => Promise<T>): Promise<T> => turns.run(0, job);
  const share: Omit<Sql, keyof CallableFunction> = {
    prepared: (text, ...values) => inTurn(() => sql.prepared(text, ...values)),
    begin: (run, mode) => inTurn(() => sql.begin(run, mode)),
    get pool() {
      return sql.pool;
    },
    end: () => sql.end(),
  };
  const run: Sql['prepared'] = (text, ...values) => inTurn(() => sql(text, ...values));
  return Object.defineProperties(run, Object.getOwnPropertyDescriptors(share)) as Sql;
}
