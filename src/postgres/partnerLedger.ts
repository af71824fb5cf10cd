/**
 * How far the ledger of a partner is complete. Its entries lie in the cell that it lives in and in those that it has left. A cell is
 * booked in the order of its ids, its cursor in the same transaction; a partner leaves a cell only once all that it has there is
 * booked, and its entries in the next cell have higher ids. So nothing is added any more up to the cursor of its present cell, nor
 * up to the entry with which it left the cell before, whichever is higher.
 */
import { TOKEN } from './cells.js';
import { raw, type Sql } from './client.js';

export interface LedgerReach {
  /** The cell that the partner lives in, as Postgres says: a front end may not know of a move yet. */
  readonly cell: number;
  /** The epoch of that cell. */
  readonly epoch: string;
  /** Every entry of the partner's up to this one is in the ledger. */
  readonly toId: bigint;
}

/** The same as SQL, where `p` is the partner and `c` its present cell. */
export const REACH = raw(`greatest(c.cursor_id, (SELECT max(m.until_id) FROM partner_moves m
  WHERE m.partner_id = p.partner_id AND m.switched_at IS NOT NULL))`);

/** @throws Error where there is no such partner */
export async function ledgerReach(sql: Sql, partnerId: number): Promise<LedgerReach> {
  const [row] = await sql<{ cell: number; token: string; to_id: bigint }[]>`
    SELECT cell, ${TOKEN} AS token, ${REACH} AS to_id FROM partners p JOIN cells c USING (cell)
    WHERE p.partner_id = ${partnerId}`;
  if (row === undefined) throw new Error(`There is no partner ${partnerId}`);
  return { cell: row.cell, epoch: row.token, toId: row.to_id };
}
