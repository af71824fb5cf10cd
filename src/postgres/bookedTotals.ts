/** What the ledger has booked so far, from the totals by day: exact, over all days, all restarts and all processes. */
import { arrayOf, type Sql } from './client.js';

export interface GameTotals {
  gameId: number;
  spins: bigint;
  wageredMicros: bigint;
  paidMicros: bigint;
}

export interface CellTotals {
  cell: number;
  /** They are of the entries up to this one. */
  cursor: bigint;
  games: GameTotals[];
}

/** The totals of every game of these cells, with the cursors at which they are so. */
export async function bookedTotals(sql: Sql, cells: readonly number[]): Promise<CellTotals[]> {
  const wanted = arrayOf(cells);
  return sql.begin(async (tx) => {
    const cursors = await tx<{ cell: number; cursor_id: bigint }[]>`
      SELECT cell, cursor_id FROM cells WHERE cell = ANY(${wanted}::int[])`;
    const games = await tx<{ cell: number; game_id: number; spins: bigint; wagered: bigint; paid: bigint }[]>`
      SELECT cell, game_id, sum(spins) AS spins, sum(wagered_micros) AS wagered,
             sum(paid_micros) AS paid
      FROM game_days JOIN partners USING (partner_id) WHERE cell = ANY(${wanted}::int[]) GROUP BY cell, game_id`;
    const byCell = new Map(
      cursors.map((row): [number, CellTotals] => [
        row.cell,
        { cell: row.cell, cursor: row.cursor_id, games: [] },
      ]),
    );
    for (const { cell, game_id, spins, wagered, paid } of games) {
      byCell.get(cell)?.games.push({ gameId: game_id, spins, wageredMicros: wagered, paidMicros: paid });
    }
    return [...byCell.values()];
  }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
}
