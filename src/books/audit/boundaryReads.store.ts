/**
 * Reads the state at the boundary for the audit: balances and counters where the oldest kept day of the
 * ledger begins (ledgerDrop.store.ts).
 */
import { membersReadBy } from '../../domain/ledgerColumns.js';
import type { EntryTotal, Manifest } from '../../domain/ledgerDay.js';
import { columnsSql, fieldsOf } from '../../engine/ledger/ledgerRow.store.js';
import type { Transaction } from '../../postgres/connection.js';
import { safe } from '../../postgres/statements.js';
import { idsOfDay } from '../archive/ledgerDays.store.js';
import { type BoundaryPot, boundaryPots } from './communalBoundary.store.js';

export interface BoundaryFacts {
  /** First entry id of the kept ledger; 0 if no day was dropped. */
  readonly fromId: bigint;
  /** Index after the last outcome dealt on dropped days, by game id. */
  readonly games: ReadonlyMap<number, number>;
  /** Newest dropped entry of each cell. */
  readonly cells: ReadonlyMap<number, bigint>;
  readonly pots: readonly BoundaryPot[];
  /** Dropped days with the totals of their manifests, oldest first. */
  readonly days: readonly { readonly day: string; readonly totals: readonly EntryTotal[] }[];
}

/** Field positions in the rows of {@link BOUNDARY_PLAYERS}. */
export const BOUNDARY_PLAYER = {
  partnerId: 0,
  playerId: 1,
  entryId: 2,
  entryNumber: 3,
  outcomeCode: 4,
  balance: 5,
  firstId: 6,
} as const;
export const BOUNDARY_PLAYERS = `
  SELECT partner_id, player_id, entry_id, entry_number, outcome_code, balance_micros, first_id FROM boundary_players`;

/** Field positions in the rows of {@link KEPT_ENTRIES}. */
export const KEPT = fieldsOf(membersReadBy('keptAudit'));
/** Query for tickets and adjustments of dropped days. */
export const KEPT_ENTRIES = `
  SELECT ${columnsSql(membersReadBy('keptAudit'))} FROM kept_entries ORDER BY entry_id`;

export async function boundaryFacts(tx: Transaction): Promise<BoundaryFacts> {
  const days = await tx<{ day: string; manifest: string }[]>`
    SELECT day::text AS day, manifest FROM ledger_days WHERE dropped_at IS NOT NULL ORDER BY day`;
  const games = await tx<
    { gameId: number; nextIndex: bigint }[]
  >`SELECT game_id, next_index FROM boundary_games`;
  const cells = await tx<{ cell: number; entryId: bigint }[]>`SELECT cell, entry_id FROM boundary_cells`;
  const last = days.at(-1);
  const fromId = last === undefined ? 0n : idsOfDay(last.day).to;
  return {
    fromId,
    pots: await boundaryPots(tx, fromId),
    games: new Map(games.map((row) => [row.gameId, safe(row.nextIndex)])),
    cells: new Map(cells.map((row) => [row.cell, row.entryId])),
    days: days.map(({ day, manifest }) => ({ day, totals: (JSON.parse(manifest) as Manifest).totals })),
  };
}
