/** Reads what a recovery from an older state of Postgres would change. */
import type { Sql } from '../../postgres/connection.js';
import { safe } from '../../postgres/statements.js';

/** Maximum number of raffles that are listed by name. */
const LISTED_MAX = 20;

export async function raffleIds(sql: Sql): Promise<ReadonlySet<number>> {
  const rows = await sql<{ gameId: number }[]>`SELECT game_id FROM raffles`;
  return new Set(rows.map(({ gameId }) => gameId));
}

export interface RestorePlan {
  readonly cells: number;
  /** Number of games with sealed outcomes that are not dealt, and the number of these outcomes. */
  readonly games: number;
  readonly outcomes: number;
  readonly blocks: number;
  /** Raffles that would be suspended. The list ends after {@link LISTED_MAX} raffles. */
  readonly raffles: readonly { readonly gameId: number; readonly name: string }[];
  readonly raffleCount: number;
  /** Number of open rounds of blackjack that would be voided. */
  readonly rounds: number;
}

export async function restorePlan(sql: Sql): Promise<RestorePlan> {
  const [row] = await sql<Record<'cells' | 'games' | 'outcomes' | 'blocks' | 'rounds' | 'raffles', bigint>[]>`
    WITH undealt AS (
      SELECT greatest(0, b.to_index - coalesce(p.next_index, 0)) AS outcomes
      FROM games g JOIN (SELECT game_id, max(to_index) AS to_index FROM blocks GROUP BY game_id) b USING (game_id)
        LEFT JOIN game_progress p USING (game_id)
      WHERE g.game_type <> 'raffle')
    SELECT (SELECT count(*) FROM cells) AS cells,
      (SELECT count(*) FROM undealt WHERE outcomes > 0) AS games,
      (SELECT coalesce(sum(outcomes), 0)::bigint FROM undealt) AS outcomes,
      (SELECT count(*) FROM games g JOIN blocks b USING (game_id) LEFT JOIN game_progress p USING (game_id)
        WHERE g.game_type <> 'raffle' AND b.to_index > coalesce(p.next_index, 0)) AS blocks,
      (SELECT count(*) FROM rounds WHERE status = 'OPEN') AS rounds,
      (SELECT count(*) FROM raffles WHERE closed_at IS NULL AND voided_at IS NULL) AS raffles`;
  const raffles = await sql<{ gameId: number; displayName: string }[]>`
    SELECT game_id, display_name FROM games JOIN raffles r USING (game_id)
    WHERE r.closed_at IS NULL AND r.voided_at IS NULL ORDER BY game_id LIMIT ${LISTED_MAX}`;
  return {
    cells: safe(row!.cells),
    games: safe(row!.games),
    outcomes: safe(row!.outcomes),
    blocks: safe(row!.blocks),
    rounds: safe(row!.rounds),
    raffleCount: safe(row!.raffles),
    raffles: raffles.map((raffle) => ({ gameId: raffle.gameId, name: raffle.displayName })),
  };
}
