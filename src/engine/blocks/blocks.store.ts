/**
 * SQL of the sealed outcome blocks. The row of a block is the lease of its indices, and Redis may serve
 * leased indices only.
 */

import { withChange } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { arrayOf, safe } from '../../postgres/statements.js';
import { assertOwner, FencedError } from '../cells/cells.store.js';
import { openNullable, sealBlock } from './blockSeals.store.js';

export interface SealedBlock {
  gameId: number;
  fromIndex: number;
  toIndex: number;
  outcomes: Uint8Array;
  seed: Uint8Array;
  nonce: Uint8Array;
  commitment: Uint8Array;
  /** Nodes of the Merkle tree over the block's leaves that are stored with the block. */
  tree: Uint8Array;
  mathHash: Uint8Array;
}

/**
 * Records a sealed block in Postgres before it is loaded into Redis.
 * @returns false if a rotation of the game is not committed yet; nothing is written in that case
 * @throws FencedError where the cell has another owner, the game has left the cell, or the raffle is voided.
 */
export async function leaseBlock(
  sql: Sql,
  lease: { cell: number; fence: bigint; epoch: bigint },
  block: SealedBlock,
): Promise<boolean> {
  const { sealed, ...secret } = sealBlock(block);
  return sql.begin(async (tx) => {
    await assertOwner(tx, lease);
    // This query runs after the cell's row is locked, because moving a partner locks the same row.
    const [here] = await tx<{ isRotating: boolean }[]>`
      SELECT coalesce(rotating_to > coalesce((SELECT next_index FROM game_progress p WHERE p.game_id = games.game_id), 0), false) AS is_rotating
      FROM games JOIN partners USING (partner_id) WHERE game_id = ${block.gameId} AND cell = ${lease.cell}`;
    if (here === undefined) throw new FencedError(`Game ${block.gameId} is no longer in cell ${lease.cell}`);
    if (here.isRotating) return false;
    const voided = await tx`SELECT 1 FROM raffles WHERE game_id = ${block.gameId} AND voided_at IS NOT NULL`;
    if (voided.length > 0) throw new FencedError(`Raffle ${block.gameId} was voided`);
    await tx`
      INSERT INTO blocks (game_id, from_index, to_index, outcomes, seed, nonce, commitment, epoch, tree, sealed, log_number)
      VALUES (${block.gameId}, ${block.fromIndex}, ${block.toIndex}, ${secret.outcomes as Buffer}, ${secret.seed as Buffer},
              ${secret.nonce as Buffer}, ${block.commitment as Buffer}, ${lease.epoch}, ${block.tree as Buffer}, ${sealed},
              next_log_entry(${block.gameId}, log_kind(${block.gameId}), ${block.fromIndex}, ${block.toIndex}, now(), false, NULL))`;
    await noteMath(tx, block);
    return true;
  });
}

const noteMath = (tx: Transaction, { gameId, mathHash }: Pick<SealedBlock, 'gameId' | 'mathHash'>) => tx`
  UPDATE log_games SET math_hash = ${mathHash as Buffer} WHERE game_id = ${gameId} AND math_hash IS NULL`;

export interface LeasedBlock {
  fromIndex: number;
  toIndex: number;
  /** Null if the caller did not ask for them. */
  outcomes: Buffer | null;
  /**
   * Whether a published checkpoint covers the block's record in the public log, so that the block may be
   * loaded into Redis.
   */
  isPublished: boolean;
}

type Range = 'fromIndex' | 'toIndex';

/**
 * Reads the blocks of a game that are not fully committed, oldest first. Blocks that end after
 * `outcomesAfter` come with their outcomes.
 */
export async function openBlocks(
  sql: Sql | Transaction,
  gameId: number,
  outcomesAfter: number,
): Promise<LeasedBlock[]> {
  const rows = await sql<(Omit<LeasedBlock, Range> & Record<Range, bigint> & { sealed: string | null })[]>`
    SELECT b.from_index, b.to_index, CASE WHEN b.to_index > ${outcomesAfter} THEN b.outcomes END AS outcomes, b.sealed,
      coalesce(e.log_index < (SELECT max(size) FROM log_checkpoints c WHERE c.log_id = e.log_id AND published_at IS NOT NULL), false)
        AS is_published
    FROM blocks b LEFT JOIN log_entries e ON e.game_id = b.game_id AND e.number = b.log_number
    WHERE b.game_id = ${gameId} AND b.to_index > coalesce((SELECT next_index FROM game_progress p WHERE p.game_id = ${gameId}), 0)
    ORDER BY b.from_index`;
  return rows.map(({ sealed, ...row }) => ({
    ...row,
    fromIndex: safe(row.fromIndex),
    toIndex: safe(row.toIndex),
    outcomes: openNullable(sealed, 'outcomes', row.outcomes),
  }));
}

/** Returns the first indices of the newest fully committed blocks of a game, which Redis no longer needs. */
export async function committedBlocks(sql: Sql, gameId: number, count: number): Promise<number[]> {
  const rows = await sql<{ fromIndex: bigint }[]>`
    SELECT from_index FROM blocks
    WHERE game_id = ${gameId} AND to_index <= (SELECT next_index FROM game_progress p WHERE p.game_id = ${gameId})
    ORDER BY from_index DESC LIMIT ${count}`;
  return rows.map((row) => safe(row.fromIndex));
}

/**
 * Returns, by game, the index after the last leased outcome, or the end of a void if that is higher. A game
 * without blocks is missing in the result; callers use 0 for such a game.
 */
export async function leaseEnds(
  sql: Sql | Transaction,
  gameIds: readonly number[],
): Promise<Map<number, number>> {
  const rows = await sql<{ gameId: number; toIndex: bigint }[]>`
    SELECT game_id, max(to_index) AS to_index FROM (
      SELECT game_id, to_index FROM blocks UNION ALL SELECT game_id, next_index FROM game_progress) ends
    WHERE game_id = ANY(${arrayOf(gameIds)}::int[]) GROUP BY game_id`;
  return new Map(rows.map((row) => [row.gameId, safe(row.toIndex)]));
}

/**
 * Subtracts the blocks that were made from the number of blocks that an operator requested. The change is
 * announced to all processes.
 */
export async function blocksMade(sql: Sql, gameId: number, count: number): Promise<void> {
  await withChange(sql, async (tx, changed) => {
    await tx`
      UPDATE games SET blocks_requested = greatest(blocks_requested - ${count}, 0), changed = ${changed}
      WHERE game_id = ${gameId}`;
  });
}
