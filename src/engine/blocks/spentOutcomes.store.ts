/**
 * SQL of the outcomes of exhausted blocks, which are removed after a retention of some days. They can be
 * reproduced from the PAR sheet and the seed (workers/drawBlock.ts).
 */
import type { Sql } from '../../postgres/connection.js';
import type { EventEmitter } from '../processEvents.js';

/** Number of days for which a block's outcomes are kept after the block was found exhausted. */
export const OUTCOMES_KEPT_DAYS = 90;

/**
 * Maximum number of rows that one statement changes, so that statements are short and no worker waits for
 * another.
 */
const MARKED_AT_ONCE = 500;
const REMOVED_AT_ONCE = 16;

/**
 * Records when blocks of slot games were first found exhausted. A block is exhausted if every index is
 * committed or voided. The outcomes of raffle pools and blackjack shoes are never removed: an outcome takes
 * only two bytes, which is little compared with the entries and seeds that are kept anyway.
 * @returns the number of marked blocks; further blocks may remain
 */
export async function markExhausted(sql: Sql): Promise<number> {
  const rows = await sql`
    UPDATE blocks b SET exhausted_at = now()
    FROM (SELECT b.game_id, b.from_index FROM blocks b JOIN games g USING (game_id) JOIN game_progress p USING (game_id)
      WHERE b.exhausted_at IS NULL AND b.to_index <= p.next_index AND g.par_sheet_id IS NOT NULL
      LIMIT ${MARKED_AT_ONCE} FOR UPDATE OF b SKIP LOCKED) spent
    WHERE b.game_id = spent.game_id AND b.from_index = spent.from_index RETURNING 1`;
  return rows.length;
}

/**
 * Removes the outcomes of blocks that were found exhausted at least `days` days ago.
 * @returns the number of changed blocks; further blocks may remain
 */
export async function removeOutcomes(sql: Sql, days: number): Promise<number> {
  const rows = await sql`
    UPDATE blocks b SET outcomes = ''::bytea
    FROM (SELECT game_id, from_index FROM blocks
      WHERE exhausted_at < now() - make_interval(days => ${days}::int) AND octet_length(outcomes) > 0
      ORDER BY exhausted_at LIMIT ${REMOVED_AT_ONCE} FOR UPDATE SKIP LOCKED) spent
    WHERE b.game_id = spent.game_id AND b.from_index = spent.from_index RETURNING 1`;
  return rows.length;
}

/** Removes all outcomes that are no longer kept. Any number of workers may do so at once. */
export async function removeSpentOutcomes(
  sql: Sql,
  events: EventEmitter,
  stopped: AbortSignal,
): Promise<void> {
  while (!stopped.aborted && (await markExhausted(sql)) > 0);
  while (!stopped.aborted) {
    const blocks = await removeOutcomes(sql, OUTCOMES_KEPT_DAYS);
    if (blocks === 0) return;
    events.emit('OutcomesRemoved', { blocks });
  }
}

export async function gamesWithoutOutcomes(sql: Sql): Promise<number[]> {
  const rows = await sql<{ gameId: number }[]>`
    SELECT DISTINCT game_id FROM blocks WHERE octet_length(outcomes) = 0`;
  return rows.map((row) => row.gameId);
}
