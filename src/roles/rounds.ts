/** Rounds of blackjack: how a front end plays them, and how a worker ends those whose time is over. */
import { CellClient } from '../cells/cellClient.js';
import type { HandedOverIds } from '../cells/handedOver.js';
import { Rounds } from '../cells/rounds.js';
import { RoundTimeouts } from '../cells/roundTimeouts.js';
import { Shoes } from '../cells/shoes.js';
import { expiredRounds } from '../postgres/rounds.js';
import { openStore } from '../postgres/store.js';
import type { RoleParts } from './parts.js';

/** More commands than one turn of the timeouts has. */
const WAITING_MAX = 1000;

/** A front end's: each answer waits for the ledger. */
export function playedRounds(
  { store }: Pick<RoleParts, 'store'>,
  cells: CellClient,
  handedOver: HandedOverIds,
) {
  const shoes = new Shoes(store);
  return {
    rounds: new Rounds({ store, cells, shoes, waitsForLedger: true, handedOver }),
    seedOf: (gameId: number, shoeIndex: number) => shoes.seedOf(gameId, shoeIndex),
  };
}

/** @param owned the cells that this worker writes */
export function openRoundTimeouts(parts: RoleParts, owned: () => readonly number[]): RoundTimeouts {
  const { config, log, sql, nodes, scripts, catalog, metrics, events } = parts;
  const store = openStore(sql);
  const cells = new CellClient({
    call: (operation, call) => scripts.command(operation, call),
    pipelined: (calls) => nodes.pipelined(calls),
    isReady: (cell) => nodes.of(cell).isReady,
    whenReady: (cell, timeoutMs) => nodes.whenReady(cell, timeoutMs),
    // Who owns a cell has found its store durable.
    isDurable: () => true,
    epochOf: (cell) => catalog.epochOf(cell),
    nodeOf: (cell) => nodes.of(cell),
    serverOf: (cell) => nodes.of(cell).serverId,
    // Nobody is told of a timeout: it need not wait for the ledger.
    confirmations: { confirmed: async () => true, isStalled: () => false },
    deadlineMs: config.SPIN_DEADLINE_MS,
    waitingMax: WAITING_MAX,
    onCall: () => {},
    onError: (error, cell) => {
      metrics.storeErrors.inc({ store: 'redis' });
      log.warn({ err: error, cell, size: 1 }, 'a command to a cell failed');
    },
    onEpoch: () => void catalog.refresh().catch(() => {}),
  });
  return new RoundTimeouts({
    rounds: new Rounds({ store, cells, shoes: new Shoes(store), waitsForLedger: false }),
    cells: owned,
    expired: (numbers, limit) => expiredRounds(sql, numbers, limit),
    game: (gameId) => catalog.game(gameId),
    events,
  });
}
