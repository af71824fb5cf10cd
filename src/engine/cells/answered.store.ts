/**
 * Records what front ends have answered:
 * - the newest answered entry of each cell, which Redis must have (written by cells/answeredWatermarks.ts)
 * - acknowledged spins that both Redis and the ledger lost in a failover (found by cells/answeredSpins.ts)
 */

import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';
import { arrayOf, rowsOf, safe } from '../../postgres/statements.js';
import { findObstacles, type Obstacles } from '../recovery/obstacles.store.js';
import type { CellLease } from './cells.store.js';

export interface AnsweredEntry {
  readonly cell: number;
  /** Number of the cell's epoch under which the answered entry was made. */
  readonly epoch: bigint;
  readonly entryId: bigint;
  /** True if a call from a front end was refused because the cell's Redis lacks the entry. */
  readonly isLacking: boolean;
}

/**
 * Returns the id of the newest answered entry that was made under the given epoch of the cell, or 0 if none
 * is on record.
 */
export async function answeredUnder(sql: Sql, { cell, epoch }: CellLease): Promise<bigint> {
  const [row] = await sql<{ entryId: bigint }[]>`
    SELECT entry_id FROM answered_entries WHERE cell = ${cell} AND epoch = ${epoch}`;
  return row?.entryId ?? 0n;
}

/**
 * Clears the mark that Redis lacks answered entries. The cell's owner calls this function after it has
 * verified that Redis has them.
 */
export async function clearLacking(sql: Sql, { cell, epoch }: CellLease): Promise<void> {
  await sql`
    UPDATE answered_entries SET is_lacking = false WHERE cell = ${cell} AND epoch <= ${epoch} AND is_lacking`;
}

/** A spin, with the result that was sent to the partner. */
export interface AnsweredSpin {
  readonly entryId: bigint;
  readonly partnerId: number;
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  readonly outcomeCode: number;
  readonly balanceMicros: number;
}

/** Spins of one cell that a front end answered under epochs that have ended. */
export interface EndedEpoch {
  readonly cell: number;
  /** The cell's current epoch. Entries of earlier epochs can no longer be committed. */
  readonly epoch: string;
  readonly spins: readonly AnsweredSpin[];
  /** Number of further answered spins. Their details are not known, because they were dropped from memory. */
  readonly notRemembered: number;
}

export class Answered {
  constructor(private readonly sql: Sql) {}

  /** Records the newest answered entries. An entry that is older than the recorded one is ignored. */
  async note(entries: readonly AnsweredEntry[]): Promise<void> {
    await this.sql`
      INSERT INTO answered_entries AS a (cell, epoch, entry_id, is_lacking)
      SELECT * FROM ${rowsOf(entries, { cell: 'int', epoch: 'bigint', entryId: 'bigint', isLacking: 'boolean' })}
      ORDER BY 1
      ON CONFLICT (cell) DO UPDATE SET epoch = excluded.epoch, entry_id = excluded.entry_id,
        is_lacking = excluded.is_lacking OR (a.epoch = excluded.epoch AND a.is_lacking)
      WHERE (excluded.epoch, excluded.entry_id) > (a.epoch, a.entry_id)
        OR (excluded.epoch, excluded.entry_id) = (a.epoch, a.entry_id) AND excluded.is_lacking`;
  }

  obstacles(): Promise<Obstacles> {
    return findObstacles(this.sql);
  }

  /**
   * Records the answered spins that the ledger lacks, in one transaction. Repeating the call is safe. A
   * ledger entry with the same id but another player, game or outcome does not count as the spin.
   * @returns the number of lost spins that were not on record before
   */
  recordLost({ cell, epoch, spins, notRemembered }: EndedEpoch): Promise<number> {
    return this.sql.begin(async (tx) => {
      const lost: bigint[] = [];
      for (let from = 0; from < spins.length; from += SPINS_A_STATEMENT) {
        const some = spins.slice(from, from + SPINS_A_STATEMENT);
        const rows = await tx<{ entryId: bigint }[]>`
          INSERT INTO lost_spins (entry_id, partner_id, game_id, player_id, request_id, outcome_code, balance_micros, cell, epoch)
          SELECT a.*, ${cell}::int, ${epoch}
          FROM ${rowsOf(some, { entryId: 'bigint', partnerId: 'int', gameId: 'int', playerId: 'text', requestId: 'text', outcomeCode: 'int', balanceMicros: 'bigint' }, 'a')}
          WHERE NOT EXISTS (
            SELECT 1 FROM ledger l
            WHERE l.entry_id = a.entry_id AND l.entry_id = ANY(${arrayOf(some.map((each) => each.entryId))}::bigint[])
              AND l.partner_id = a.partner_id AND l.player_id = a.player_id AND l.game_id = a.game_id
              AND l.outcome_code = a.outcome_code)
          ON CONFLICT DO NOTHING
          RETURNING entry_id`;
        for (const row of rows) lost.push(row.entryId);
      }
      if (lost.length + notRemembered > 0) {
        const ids = lost.sort((a, b) => (a < b ? -1 : 1));
        await writeAuditEntry(tx, {
          actor: 'front-end',
          action: 'spins.lost',
          subject: `cell:${cell}`,
          after: {
            epoch,
            spins: ids.length,
            firstEntryId: ids[0]?.toString() ?? null,
            lastEntryId: ids.at(-1)?.toString() ?? null,
            notRemembered,
          },
        });
      }
      return lost.length;
    });
  }
}

/** Maximum number of spins in one INSERT statement. */
const SPINS_A_STATEMENT = 5000;

export interface LostSpin extends AnsweredSpin {
  readonly foundAt: Date;
}

export async function lostSpins(sql: Sql, limit: number): Promise<LostSpin[]> {
  const rows = await sql<
    (Omit<LostSpin, 'requestId' | 'balanceMicros'> & { requestId: string | null; balanceMicros: bigint })[]
  >`
    SELECT entry_id, partner_id, game_id, player_id, request_id, outcome_code, balance_micros, found_at
    FROM lost_spins ORDER BY entry_id DESC LIMIT ${limit}`;
  return rows.map((row) => ({
    ...row,
    requestId: row.requestId ?? undefined,
    balanceMicros: safe(row.balanceMicros),
  }));
}
