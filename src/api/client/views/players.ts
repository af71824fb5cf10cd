/** Views of players: the entries of a statement. */
import type { Column, Schemas } from './view.js';

export const ENTRIES: readonly Column<Schemas['StatementEntry']>[] = [
  { heading: 'Time', value: (row) => row.createdAt, kind: 'time' },
  { heading: 'Kind', value: (row) => row.kind },
  { heading: 'Game', value: (row) => row.gameId, kind: 'number' },
  { heading: 'Wager', value: (row) => row.wagerUsd, kind: 'usd' },
  { heading: 'Credit', value: (row) => row.creditUsd, kind: 'usd' },
  { heading: 'Balance', value: (row) => row.balanceUsd, kind: 'usd' },
  { heading: 'Request', value: (row) => row.requestId },
  { heading: 'Spin', value: (row) => row.spinId },
];
