/** Checks invariants of the books through an independent Postgres driver. */
import assert from 'node:assert/strict';
import type postgres from 'postgres';

/**
 * Checks that each index of each game is exactly once in the ledger or in a void, and that each player's
 * entries and balances are consistent.
 *
 * @throws AssertionError with the rows that violate one of these rules
 */
export async function booksHold(sql: postgres.Sql<{ bigint: bigint }>): Promise<void> {
  const broken = await sql`
    SELECT * FROM (
      SELECT game_id, from_index, to_index, lag(to_index, 1, 0::bigint) OVER (PARTITION BY game_id ORDER BY from_index) AS expected
      FROM (SELECT game_id, outcome_index AS from_index, outcome_index + 1 AS to_index FROM ledger WHERE kind IN (1, 6)
            UNION ALL SELECT game_id, from_index, to_index FROM voids) AS used
    ) AS checked WHERE from_index <> expected`;
  assert.deepEqual([...broken], []);
  const chains = await sql`
    SELECT * FROM (
      SELECT entry_id, previous_id, entry_number, balance_micros, credit_micros, wager_micros,
             count(*) FILTER (WHERE kind NOT IN (3, 6, 7, 8)) OVER player AS number, lag(entry_id, 1, 0::bigint) OVER player AS before_id,
             lag(balance_micros, 1, 0::bigint) OVER player AS before_micros
      FROM ledger WINDOW player AS (PARTITION BY partner_id, player_id ORDER BY entry_id)
    ) AS chain
    WHERE entry_number <> number OR previous_id <> before_id
       OR balance_micros <> before_micros - wager_micros + credit_micros`;
  assert.deepEqual([...chains], []);
  const repeated = await sql`
    SELECT partner_id, request_id, kind FROM ledger WHERE request_id IS NOT NULL GROUP BY 1, 2, 3 HAVING count(*) > 1`;
  assert.deepEqual([...repeated], []);
}
