/** Reads the sealed blocks from which spins took their outcomes. */
import type { WithDates } from '../../domain/schema.js';
import type { Sql } from '../../postgres/connection.js';
import { safe } from '../../postgres/statements.js';
import type { SpinBlock as SpinBlockSchema } from './contract.js';

export type BlockRow = WithDates<typeof SpinBlockSchema, 'createdAt'>;

type Range = 'fromIndex' | 'toIndex';

export class SpinBlocks {
  constructor(private readonly sql: Sql) {}

  /**
   * Returns the sealed block that contains an outcome of a game. Returns undefined if that block has been
   * deleted.
   */
  async find(gameId: number, outcomeIndex: number): Promise<BlockRow | undefined> {
    const [row] = await this.sql<(Omit<BlockRow, Range> & Record<Range, bigint>)[]>`
      SELECT from_index, to_index, encode(commitment, 'hex') AS commitment, created_at FROM blocks
      WHERE game_id = ${gameId} AND from_index <= ${outcomeIndex} AND to_index > ${outcomeIndex}
      ORDER BY from_index DESC LIMIT 1`;
    return row && { ...row, fromIndex: safe(row.fromIndex), toIndex: safe(row.toIndex) };
  }
}
