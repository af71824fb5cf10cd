/** The same connections with a limit: for how long a statement waits for a lock, or how many are used at once. */
import { Semaphore } from '../platform/semaphore.js';
import type { Run, Sql, Transaction } from './connection.js';

/** From here on each statement of the transaction waits no longer for a lock. @throws where no time is left */
export async function boundLocks(tx: Transaction, leftMs: number): Promise<void> {
  // 0 would be no bound.
  if (leftMs < 1) throw new Error('No time is left to wait for locks');
  await tx`SELECT set_config('lock_timeout', ${String(Math.floor(leftMs))}, true)`;
}

/**
 * The same connections for what must not wait behind others: no statement waits for a lock beyond a moment.
 * @param leftMs how long it may, asked where a transaction begins; one that waits for several locks calls {@link boundLocks} again
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

/** @returns the same connections, of which at most so many are used at once. A transaction uses one, and must run no other statement meanwhile */
export function limited(sql: Sql, connections: number): Sql {
  const turns = new Semaphore(connections);
  const share: Omit<Sql, keyof CallableFunction> = {
    prepared: (text, ...values) => turns.run(() => sql.prepared(text, ...values)),
    begin: (run, mode) => turns.run(() => sql.begin(run, mode)),
    get pool() {
      return sql.pool;
    },
    end: () => sql.end(),
  };
  const run: Sql['prepared'] = (text, ...values) => turns.run(() => sql(text, ...values));
  return Object.defineProperties(run, Object.getOwnPropertyDescriptors(share)) as Sql;
}
