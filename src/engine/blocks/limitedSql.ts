/** A share of a pool of connections: work of many parts waits for the share, not for the pool, where a wait ends in an error. */

import { Semaphore } from '../../platform/semaphore.js';
import type { Sql } from '../../postgres/client.js';

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
