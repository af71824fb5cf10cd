/** Opens blackjack rounds: for a front end that plays them, and for a worker that ends expired ones. */

import { RoundPlay } from '../../engine/blackjack/roundPlay.js';
import { expiredRounds } from '../../engine/blackjack/rounds.store.js';
import { RoundTimeouts } from '../../engine/blackjack/roundTimeouts.js';
import { Shoes } from '../../engine/blackjack/shoes.js';
import type { CellClient } from '../../engine/cells/cellClient.js';
import type { RequestIds } from '../../engine/requestIds/requestIds.js';
import type { RoleParts } from './parts.js';
import { workerCells } from './workerCells.js';

/** Each answer waits for the ledger. */
export function playedRounds({ store }: Pick<RoleParts, 'store'>, cells: CellClient, requestIds: RequestIds) {
  const shoes = new Shoes(store);
  return { rounds: new RoundPlay({ store, cells, shoes, waitsForLedger: true, requestIds }), shoes };
}

/** @param owned returns the cells that this worker owns */
export function openRoundTimeouts(parts: RoleParts, owned: () => readonly number[]): RoundTimeouts {
  const { sql, ownStore: store, catalog, events } = parts;
  // Nobody receives the answer to a timeout of a round, so this answer need not wait for the ledger.
  const cells = workerCells(parts, { confirmed: async () => true, isStalled: () => false });
  return new RoundTimeouts({
    rounds: new RoundPlay({ store, cells, shoes: new Shoes(store), waitsForLedger: false }),
    cells: owned,
    expired: (numbers, limit) => expiredRounds(sql, numbers, limit),
    game: (gameId) => catalog.game(gameId),
    events,
  });
}
