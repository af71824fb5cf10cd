/** Raffles: their prize tables, and what becomes of their pools. The pool itself is a row of `blocks`. */
import { type PrizeTableUsd, prizeTableText } from '../domain/games/prizeTable.js';
import { audit, withChange } from './changes.js';
import { arrayOf, isUniqueViolation, type Sql, type Transaction } from './client.js';
import { findGame, type GameRow } from './games.js';

/** Makes a raffle, to be sealed by the worker of its cell. */
export async function createRaffle(
  sql: Sql,
  actor: string,
  raffle: { partnerId: number; configName: string; displayName: string; table: PrizeTableUsd },
): Promise<GameRow | 'name-taken'> {
  const { partnerId, configName, displayName, table } = raffle;
  try {
    return await withChange(sql, async (tx, changed) => {
      const [row] = await tx<{ game_id: number }[]>`
        INSERT INTO games (partner_id, game_type, config_name, display_name, changed)
        VALUES (${partnerId}, 'raffle', ${configName}, ${displayName}, ${changed}) RETURNING game_id`;
      const gameId = row!.game_id;
      await tx`
        INSERT INTO raffles (game_id, pool_size, prize_table)
        VALUES (${gameId}, ${table.poolSize}, ${prizeTableText(table)})`;
      await audit(tx, { actor, action: 'raffle.create', subject: `game:${gameId}`, after: raffle });
      return (await findGame(tx, gameId))!;
    });
  } catch (error) {
    if (isUniqueViolation(error)) return 'name-taken';
    throw error;
  }
}

/** The pool of a raffle is sealed, stored and loaded: it is open from now on. A second time changes nothing. */
export async function openRaffle(sql: Sql, gameId: number): Promise<void> {
  await withChange(sql, async (tx, changed) => {
    const opened = await tx`
      UPDATE raffles SET sealed_at = now() WHERE game_id = ${gameId} AND sealed_at IS NULL AND voided_at IS NULL RETURNING 1`;
    if (opened.length === 0) return;
    await tx`UPDATE games SET changed = ${changed} WHERE game_id = ${gameId}`;
    const [block] = await tx<{ commitment: Buffer }[]>`
      SELECT commitment FROM blocks WHERE game_id = ${gameId} AND from_index = 0`;
    const after = { poolCommitment: block!.commitment.toString('hex') };
    await audit(tx, { actor: 'worker', action: 'raffle.seal', subject: `game:${gameId}`, after });
  });
}

/** The last tickets of these raffles are booked in this transaction: they are closed for ever. */
export async function closeRaffles(
  tx: Transaction,
  changed: bigint,
  gameIds: readonly number[],
): Promise<void> {
  const ids = arrayOf(gameIds);
  await tx`
    UPDATE raffles SET closed_at = now(), sealed_at = coalesce(sealed_at, now())
    WHERE game_id = ANY(${ids}::int[]) AND closed_at IS NULL`;
  await tx`UPDATE games SET changed = ${changed} WHERE game_id = ANY(${ids}::int[])`;
  for (const gameId of gameIds) {
    await audit(tx, { actor: 'worker', action: 'raffle.close', subject: `game:${gameId}` });
  }
}

/** A ticket that was sold under a requestId. */
export interface Ticket {
  readonly gameId: number;
  readonly requestId: string;
  readonly entryId: bigint;
}

/**
 * Notes the requestIds of the tickets that this transaction books. One that was sold before under the same requestId, which
 * Redis had let go, stays what it was.
 */
export async function noteTickets(tx: Transaction, tickets: readonly Ticket[]): Promise<void> {
  if (tickets.length === 0) return;
  const rows = tickets.map(({ gameId, requestId, entryId }) => ({
    game: gameId,
    request: requestId,
    entry: String(entryId),
  }));
  await tx`
    INSERT INTO ticket_requests (game_id, request_id, entry_id)
    SELECT game, request, entry FROM json_to_recordset(${JSON.stringify(rows)}::json) AS t(game int, request text, entry bigint)
    ON CONFLICT DO NOTHING`;
}

export interface PoolRow {
  seed: Buffer;
  nonce: Buffer;
  /** Packed, 2 bytes a ticket. */
  order: Buffer;
}

/** The sealed pool of a raffle that is closed; undefined: it is not closed, or no raffle. */
export async function closedPool(sql: Sql, gameId: number): Promise<PoolRow | undefined> {
  const [row] = await sql<{ seed: Buffer; nonce: Buffer; outcomes: Buffer }[]>`
    SELECT seed, nonce, outcomes FROM blocks JOIN raffles USING (game_id)
    WHERE game_id = ${gameId} AND from_index = 0 AND closed_at IS NOT NULL`;
  return row === undefined ? undefined : { seed: row.seed, nonce: row.nonce, order: row.outcomes };
}
