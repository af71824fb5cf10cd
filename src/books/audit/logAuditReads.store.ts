/** Reads the public log for the audit, within the snapshot. */

import type { Sql } from '../../postgres/connection.js';
import { rowsOf } from '../../postgres/statements.js';

/** Field positions in the rows of `logs`. The last row is the current log. */
export const LOGS = { logId: 0, origin: 1, vkeys: 2, size: 3, root: 4 } as const;
const LOGS_SELECT =
  "SELECT log_id, origin, array_to_string(vkeys, ' '), size, root FROM logs ORDER BY log_id";

/** Field positions in the rows of `tiles`. Bundles of records (level -1) come before the hash tiles. */
export const TILES = { logId: 0, level: 1, index: 2, bytes: 3 } as const;
const TILES_SELECT = 'SELECT log_id, level, index, bytes FROM log_tiles ORDER BY log_id, level, index';

/** Field positions in the rows of `imports`: ranges of records imported from a copy of the log. */
export const IMPORTS = { logId: 0, fromIndex: 1, toIndex: 2, strangers: 3 } as const;
const IMPORTS_SELECT = 'SELECT log_id, from_index, to_index, strangers FROM log_imports';

/** Field positions in the rows of `checkpoints`. */
export const CHECKPOINTS = { logId: 0, size: 1, note: 2 } as const;
const CHECKPOINTS_SELECT = 'SELECT log_id, size, note FROM log_checkpoints ORDER BY log_id, size';

/** Field positions in the rows of `named`: checkpoints that settlement reports refer to. */
export const NAMED = { partnerId: 0, day: 1, note: 2 } as const;
const NAMED_SELECT = `SELECT partner_id, report_date::text, report->>'logCheckpoint' FROM settlement_reports
  WHERE report->>'logCheckpoint' IS NOT NULL`;

/** Field positions in the rows of `entries`, which are ordered by game and entry number. */
export const ENTRIES = {
  gameId: 0,
  number: 1,
  kind: 2,
  fromIndex: 3,
  toIndex: 4,
  atMicros: 5,
  isLate: 6,
  reason: 7,
  logId: 8,
  logIndex: 9,
  salt: 10,
  labelKey: 11,
  mathHash: 12,
  seed: 13,
  nonce: 14,
  root: 15,
  commitment: 16,
  blockTo: 17,
  nextNumber: 18,
  sealed: 19,
} as const;
const ENTRIES_SELECT = `
  SELECT e.game_id, e.number, e.kind, e.from_index, e.to_index, (extract(epoch FROM e.at) * 1000000)::bigint, e.is_late, e.reason,
    e.log_id, e.log_index, e.salt, g.label_key, g.math_hash, CASE WHEN e.kind < 3 THEN b.seed END, b.nonce,
    substring(b.tree FROM 1 FOR 32), b.commitment, b.to_index, g.next_number, b.sealed
  FROM log_entries e JOIN log_games g USING (game_id)
    LEFT JOIN blocks b ON e.kind <= 3 AND b.game_id = e.game_id AND b.log_number >= e.number AND b.from_index = e.from_index
  ORDER BY e.game_id, e.number`;

/** @param all returns a function that reads all rows of a statement */
export const logReads = <Read>(all: (select: string) => Read) => ({
  logs: all(LOGS_SELECT),
  imports: all(IMPORTS_SELECT),
  tiles: all(TILES_SELECT),
  checkpoints: all(CHECKPOINTS_SELECT),
  named: all(NAMED_SELECT),
  entries: all(ENTRIES_SELECT),
});

export type LogReads<Read> = ReturnType<typeof logReads<Read>>;

/**
 * Returns the positions in the given list of blocks whose log entries no published checkpoint covers. Blocks
 * sealed by versions without a public log are skipped.
 */
export async function unpublishedOf(
  sql: Sql,
  blocks: readonly { readonly gameId: number; readonly fromIndex: number }[],
): Promise<number[]> {
  const placed = blocks.map(({ gameId, fromIndex }, place) => ({ gameId, fromIndex, place }));
  const rows = await sql<{ place: number }[]>`
    SELECT place FROM ${rowsOf(placed, { gameId: 'int', fromIndex: 'bigint', place: 'int' })}
      JOIN blocks b USING (game_id, from_index)
      LEFT JOIN log_entries e ON e.game_id = b.game_id AND e.number = b.log_number
    WHERE b.tree IS NOT NULL AND NOT coalesce(e.log_index < (
      SELECT max(size) FROM log_checkpoints c WHERE c.log_id = e.log_id AND published_at IS NOT NULL), false)
    ORDER BY place`;
  return rows.map(({ place }) => place);
}
