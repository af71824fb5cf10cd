/** SQL that records in Postgres whether a game's reserve of blocks is low. */
import type { Sql } from '../../postgres/connection.js';
import { recordEvents } from '../../postgres/partnerEvents.js';
import { assertOwner, type CellLease } from '../cells/cells.store.js';

/**
 * Records that a game's reserve has fallen below the minimum, with an event for the partner. No further fall
 * is recorded until the reserve is complete again. For a game that never had a complete reserve, no fall is
 * recorded. Raffles have no reserve.
 * @returns the number of webhook deliveries recorded
 */
export async function reserveFell(
  sql: Sql,
  lease: CellLease,
  game: { gameId: number; partnerId: number; readyBlocks: number; minReadyBlocks: number },
): Promise<number> {
  const { gameId, partnerId, readyBlocks, minReadyBlocks } = game;
  return sql.begin(async (tx) => {
    await assertOwner(tx, lease);
    const turned = await tx`
      UPDATE block_reserves SET is_low = true, since = now() WHERE game_id = ${gameId} AND NOT is_low RETURNING game_id`;
    if (turned.length === 0) return 0;
    const data = { gameId, readyBlocks, minReadyBlocks };
    return recordEvents(tx, [{ event: 'block.low_reserve', partnerId, createdAt: new Date(), data }]);
  });
}

/** Records that a game's reserve is complete. */
export async function reserveIsBack(sql: Sql, lease: CellLease, gameId: number): Promise<void> {
  // When a worker takes over a cell, nearly every game is already recorded as complete. This check avoids the
  // lock of the cell's row, which each flush needs.
  const noted = await sql`SELECT 1 FROM block_reserves WHERE game_id = ${gameId} AND NOT is_low`;
  if (noted.length > 0) return;
  await sql.begin(async (tx) => {
    await assertOwner(tx, lease);
    await tx`
      INSERT INTO block_reserves AS r (game_id, is_low) SELECT game_id, false FROM games
      WHERE game_id = ${gameId} AND game_type <> 'raffle'
      ON CONFLICT (game_id) DO UPDATE SET is_low = false, since = now() WHERE r.is_low`;
  });
}
