/** Opens blackjack rounds: for a front end that plays them, and for a worker that ends expired ones. */

import { RoundPlay } from '../../engine/blackjack/roundPlay.js';
import { expiredRounds } from '../../engine/blackjack/rounds.store.js';
import { Shoes } from '../../engine/blackjack/shoes.js';
import type { CellClient } from '../../engine/cells/cellClient.js';
import { job } from '../../engine/processEvents.js';
import type { RequestIds } from '../../engine/requestIds/requestIds.js';
import { IDLE, type Job, WOKEN_MS } from '../../platform/runtime/periodicService.js';
import type { RoleParts } from './parts.js';
import { workerCells } from './workerCells.js';

const TIMEOUTS_EVERY_MS = 500;
/**
 * Maximum number of expired rounds that are ended at once. These rounds are committed before the open rounds
 * are read again.
 */
const ROUNDS_MAX = 200;

/** Each answer waits for the ledger. */
export function playedRounds({ store }: Pick<RoleParts, 'store'>, cells: CellClient, requestIds: RequestIds) {
  const shoes = new Shoes(store);
  return { rounds: new RoundPlay({ store, cells, shoes, waitsForLedger: true, requestIds }), shoes };
}

/**
 * Opens the job that plays out expired rounds in the cells that this worker owns. If two workers believe that
 * they own a cell, or a player acts at the same moment, no harm is done: a step is made only if it is the
 * round's next step (roundPlay.ts).
 * @param owned returns the cells that this worker owns
 */
export function openRoundTimeouts(parts: RoleParts, owned: () => readonly number[]): Job {
  const { sql, ownStore: store, catalog, events } = parts;
  // Nobody receives the answer to a timeout of a round, so this answer need not wait for the ledger.
  const cells = workerCells(parts, { confirmed: async () => true, isStalled: () => false });
  const rounds = new RoundPlay({ store, cells, shoes: new Shoes(store), waitsForLedger: false });
  const end = async (record: Awaited<ReturnType<typeof expiredRounds>>[number]): Promise<void> => {
    const table = catalog.game(record.gameId)?.table;
    // Another process created the table a moment ago. The catalog will have the table before the next turn of
    // this task.
    if (table === undefined) return;
    const ended = await rounds.end(table, record, record, 'timeout');
    if (ended === 'overflow')
      throw new Error(`The payout of round ${record.entryIds[0]} would exceed the maximum balance`);
  };
  const period = { everyMs: TIMEOUTS_EVERY_MS, idleMs: WOKEN_MS };
  const endExpired = async (): Promise<typeof IDLE | undefined> => {
    const numbers = owned();
    const records = numbers.length === 0 ? [] : await expiredRounds(sql, numbers, ROUNDS_MAX);
    if (records.length === 0) return IDLE;
    await Promise.all(records.map(end));
  };
  return job(events, 'round timeout', period, endExpired, 'round timeouts');
}
