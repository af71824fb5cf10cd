/**
 * SQL of the rotations of slot games, which void all outcomes that are sealed and not dealt
 * (cells/rotate.ts).
 *
 *   recorded (no block is leased any more) ──> voided in Redis
 *     ──> committed (the void has its entry of the public log) ──> leasing resumes
 *
 * A rotation is pending until the ledger reaches the end of its range, by the void of the rotation or by the
 * void of a rebuild.
 */
import { LOG_ENTRY_KINDS } from '../../domain/publicLog/openings.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';
import { NEWEST_MOVE } from '../cells/cells.store.js';
import { leaseEnds } from './blocks.store.js';

/**
 * A recorded rotation, with the cell, epoch and newest move under which it must be carried out. The game's
 * sealed range ends before `sealedTo`.
 */
export interface RotationOnRecord {
  readonly partnerId: number;
  readonly gameId: number;
  readonly sealedTo: number;
  /** Index up to which the game was committed when the rotation was recorded, exclusive. */
  readonly bookedTo: number;
  readonly cell: number;
  /** Number of the partner's newest move when the rotation was recorded. */
  readonly newestMove: number;
  /** The cell's epoch when the rotation was recorded. */
  readonly epoch: string;
}

/**
 * Result of a rotation: the range of voided indices (`toIndex` is exclusive), and the number of the void's
 * record in the public log.
 */
export interface CommittedRotation {
  readonly fromIndex: number;
  readonly toIndex: number;
  /** Number of the void's record in the public log. Null if no outcome was left to void. */
  readonly number: number | null;
}

interface PlaceRow {
  readonly partnerId: number;
  readonly cell: number;
  readonly newestMove: number;
  readonly token: string;
  readonly rotatingTo: bigint | null;
  readonly bookedTo: bigint;
}

/** @param lock SQL that locks the cell's row, so that no block is sealed before the rotation is recorded */
async function placeOf(
  sql: Sql | Transaction,
  gameId: number,
  lock: '' | 'FOR SHARE OF cells',
): Promise<PlaceRow> {
  const [row] = await sql<PlaceRow[]>`
    SELECT partner_id, cell, ${NEWEST_MOVE}, (SELECT dataset_id FROM installation) || ':' || epoch AS token, rotating_to,
      coalesce((SELECT next_index FROM game_progress p WHERE p.game_id = games.game_id), 0) AS booked_to
    FROM games JOIN partners USING (partner_id) JOIN cells USING (cell) WHERE game_id = ${gameId} ${raw(lock)}`;
  if (row === undefined) throw new Error(`There is no game ${gameId}`);
  return row;
}

const onRecord = (gameId: number, sealedTo: number, row: PlaceRow): RotationOnRecord => ({
  partnerId: row.partnerId,
  gameId,
  sealedTo,
  bookedTo: safe(row.bookedTo),
  cell: row.cell,
  newestMove: row.newestMove,
  epoch: row.token,
});

export class Rotations {
  constructor(private readonly sql: Sql) {}

  /**
   * Records that the sealed, undealt outcomes of a slot game are to be voided.
   * @throws Error if there is no such game
   */
  record(actor: string, gameId: number, reason: string): Promise<RotationOnRecord> {
    return this.sql.begin(async (tx) => {
      const row = await placeOf(tx, gameId, 'FOR SHARE OF cells');
      const sealedTo = (await leaseEnds(tx, [gameId])).get(gameId) ?? 0;
      await tx`UPDATE games SET rotating_to = ${sealedTo} WHERE game_id = ${gameId}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'game.rotate',
        subject: `game:${gameId}`,
        after: { reason, sealedTo },
      });
      return onRecord(gameId, sealedTo, row);
    });
  }

  /** Returns the recorded rotation of a game that is not committed yet, or undefined if there is none. */
  async pending(gameId: number): Promise<RotationOnRecord | undefined> {
    const row = await placeOf(this.sql, gameId, '');
    const isPending = row.rotatingTo !== null && row.rotatingTo > row.bookedTo;
    return isPending ? onRecord(gameId, safe(row.rotatingTo!), row) : undefined;
  }

  /**
   * Returns the result of a rotation. Undefined if the ledger has not yet reached the end of the rotation's
   * range.
   */
  async booked({ gameId, sealedTo, bookedTo }: RotationOnRecord): Promise<CommittedRotation | undefined> {
    const [row] = await this.sql<{ fromIndex: bigint | null; number: bigint | null }[]>`
      SELECT v.from_index, e.number
      FROM (SELECT coalesce((SELECT next_index FROM game_progress WHERE game_id = ${gameId}), 0) AS next_index) p
        LEFT JOIN voids v ON v.game_id = ${gameId} AND v.from_index >= ${bookedTo} AND v.to_index = ${sealedTo}
        LEFT JOIN LATERAL (SELECT number FROM log_entries l
          WHERE l.game_id = v.game_id AND kind = ${LOG_ENTRY_KINDS.void} AND l.from_index = v.from_index AND l.to_index = v.to_index
          ORDER BY number DESC LIMIT 1) e ON true
      WHERE next_index >= ${sealedTo}`;
    if (row === undefined) return undefined;
    const { fromIndex: from, number } = row;
    return {
      fromIndex: from === null ? sealedTo : safe(from),
      toIndex: sealedTo,
      number: number === null ? null : safe(number),
    };
  }
}
