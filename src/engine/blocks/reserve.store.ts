/** Whether a game's reserve of blocks is low, as Postgres notes it. */
import type { Sql } from '../../postgres/connection.js';
import { recordEvents } from '../../postgres/partnerEvents.js';
import { assertOwner, type CellLease } from '../cells/cells.store.js';

/**
 * Takes note that a game's reserve has fallen below the minimum, and records the event, once until it is back. A game
 * that never had its reserve has not fallen; a raffle has none.
 * @returns how many deliveries were recorded. @throws FencedError where the cell has another owner.
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

/** Takes note that a game has its reserve. @throws FencedError where the cell has another owner. */
export async function reserveIsBack(sql: Sql, lease: CellLease, gameId: number): Promise<void> {
  // The rule at a take-over, for every game: the cell's row, which each flush needs, is not locked for it.
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
