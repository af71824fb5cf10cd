/**
 * Reads the identity and the watermarks of Postgres, which are compared with the position file
 * (recovery/positionFile.ts). After Postgres was restored to an older state, also voids or suspends the
 * games, raffles and rounds that a rebuild can't continue.
 */

import { SpinIds } from '../../domain/spinId.js';
import { nextChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { arrayOf, rowsOf, safe } from '../../postgres/statements.js';
import { noteGameStatus } from '../catalog/dealingSwitches.store.js';
import { installation } from './installation.store.js';
import { forgetCopy } from './outsideCopies.store.js';
import { settlePositions } from './positionFindings.store.js';

/** Identity of a Postgres server and of its history. A field is null if the role may not read it. */
export interface Identity {
  readonly systemIdentifier: string | null;
  readonly timeline: string | null;
  readonly databaseOid: string;
  readonly database: string;
}

/** Returns the text that a query selects, or null if the role lacks the permission. */
async function unlessRefused(query: Promise<{ value: string }[]>): Promise<string | null> {
  try {
    return (await query)[0]?.value ?? null;
  } catch (error) {
    if ((error as { code?: string }).code === '42501') return null;
    throw error;
  }
}

export async function identityOf(sql: Sql): Promise<Identity> {
  const [row] = await sql<{ oid: string; datname: string }[]>`
    SELECT oid::text, datname::text FROM pg_database WHERE datname = current_database()`;
  return {
    systemIdentifier: await unlessRefused(
      sql<{ value: string }[]>`SELECT system_identifier::text AS value FROM pg_control_system()`,
    ),
    // The timeline is read from the name of the WAL file, because after a promotion the control file shows
    // the new timeline only once a Postgres checkpoint has been made.
    timeline: await unlessRefused(
      sql<{ value: string }[]>`SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS value`,
    ),
    databaseOid: row!.oid,
    database: row!.datname,
  };
}

/** Returns the end of the leased or voided outcomes of each game; 0 for a game without any. */
export async function leasedEnds(sql: Sql, gameIds: readonly number[]): Promise<Map<number, number>> {
  const rows = await sql<{ gameId: number; at: number }[]>`
    SELECT game_id, greatest(
      (SELECT to_index FROM blocks b WHERE b.game_id = g.game_id ORDER BY from_index DESC LIMIT 1),
      (SELECT to_index FROM voids v WHERE v.game_id = g.game_id ORDER BY from_index DESC LIMIT 1), 0)::float8 AS at
    FROM unnest(${arrayOf(gameIds)}::int[]) AS g(game_id)`;
  return new Map(rows.map(({ gameId, at }) => [gameId, at]));
}

/**
 * Records that the stores have been recovered, beyond the watermarks of every position that was found.
 * @param positionId id of a position file that no worker has found
 */
export async function acceptPositions(sql: Sql, positionId: string | undefined): Promise<void> {
  await sql.begin(async (tx) => {
    await settlePositions(tx, positionId);
    // The record of a missing position file is no longer needed, because the cells continue after all
    // outcomes that may have been revealed.
    await forgetCopy(tx, 'POSITION_FILE');
  });
}

/**
 * State of a recovery after Postgres was restored to an older state. More outcomes may have been dealt and
 * revealed than the database has.
 */
export interface RestoredState {
  /**
   * By game: the first index that may be dealt. If it is not known, {@link RESTORED_GAP} indices are skipped.
   */
  readonly floors: ReadonlyMap<number, number>;
  /** By game: the index after the last outcome that was loaded into Redis. */
  readonly loadedTo?: ReadonlyMap<number, number>;
}

/**
 * Number of indices that are skipped if it is unknown how far a game was dealt after the restored state. It
 * is more than a game deals in years. Indices have 48 bits (lua/include/records.lua), so there is room for
 * 65,535 such restores.
 */
const RESTORED_GAP = 2 ** 32;

interface VoidedRange {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly toIndex: number;
  /** Index after the last leased outcome of the voided range. */
  readonly leasedTo: number;
}

/**
 * Voids the leased and uncommitted outcomes of slot games. After a restore of Postgres, also voids those of
 * blackjack tables, and all indices that may have been loaded.
 */
export async function voidLeased(
  tx: Transaction,
  cell: number,
  epoch: bigint,
  reason: string,
  restored: RestoredState | undefined,
): Promise<VoidedRange[]> {
  const isRestored = restored !== undefined;
  const loadedTo = restored?.loadedTo ?? new Map<number, number>();
  const floors = restored?.floors ?? new Map<number, number>();
  const rows = await tx<{ gameId: number; fromIndex: bigint; leasedTo: bigint; toIndex: bigint }[]>`
    WITH leased AS (
      SELECT g.game_id, coalesce(p.next_index, 0) AS from_index, greatest(coalesce(p.next_index, 0), b.to_index, l.loaded_to) AS leased_to
      FROM games g JOIN partners USING (partner_id) LEFT JOIN game_progress p USING (game_id)
        LEFT JOIN (SELECT game_id, max(to_index) AS to_index FROM blocks GROUP BY game_id) b USING (game_id)
        LEFT JOIN unnest(${arrayOf([...loadedTo.keys()])}::int[], ${arrayOf([...loadedTo.values()])}::bigint[])
          AS l(game_id, loaded_to) USING (game_id)
      WHERE partners.cell = ${cell} AND (g.game_type = 'slot' OR ${isRestored}::boolean AND g.game_type <> 'raffle')),
    ends AS (
      SELECT game_id, from_index, leased_to, CASE WHEN ${isRestored}::boolean
        THEN greatest(leased_to, coalesce(floor, leased_to + ${RESTORED_GAP}::bigint)) ELSE leased_to END AS to_index
      FROM leased LEFT JOIN unnest(${arrayOf([...floors.keys()])}::int[], ${arrayOf([...floors.values()])}::bigint[])
        AS f(game_id, floor) USING (game_id)),
    given_up AS (INSERT INTO voids (game_id, from_index, to_index, epoch, reason, sealed_to)
      SELECT game_id, from_index, to_index, ${epoch}, ${reason}, CASE WHEN leased_to < to_index THEN leased_to END FROM ends WHERE to_index > from_index RETURNING game_id),
    resumed AS (INSERT INTO game_progress (game_id, next_index) SELECT game_id, to_index FROM ends JOIN given_up USING (game_id)
      ON CONFLICT (game_id) DO UPDATE SET next_index = excluded.next_index)
    SELECT game_id, from_index, leased_to, to_index FROM ends WHERE to_index > from_index ORDER BY game_id`;
  return rows.map((row) => ({
    gameId: row.gameId,
    fromIndex: safe(row.fromIndex),
    leasedTo: safe(row.leasedTo),
    toIndex: safe(row.toIndex),
  }));
}

/**
 * Records the voids that rotations of games made. Each void has the range in the note that the cell wrote for
 * the rotation.
 */
export async function addVoids(
  tx: Transaction,
  rotations: readonly { entryId: bigint; gameId: number; fromIndex: number; toIndex: number }[],
): Promise<void> {
  await tx`
    INSERT INTO voids (game_id, from_index, to_index, epoch, reason, entry_id)
    SELECT u.game_id, u.from_index, u.to_index, c.epoch, 'rotated', u.entry_id
    FROM ${rowsOf(rotations, { gameId: 'int', fromIndex: 'bigint', toIndex: 'bigint', entryId: 'bigint' }, 'u')}
      JOIN games USING (game_id) JOIN partners USING (partner_id) JOIN cells c USING (cell)`;
}

/**
 * Suspends all open raffles of a cell, because tickets that this database lacks may have been revealed.
 * @returns the ids of the suspended raffles
 */
export async function suspendRaffles(tx: Transaction, cell: number): Promise<number[]> {
  const changed = await nextChange(tx);
  const running = await tx<{ gameId: number }[]>`
    SELECT game_id FROM games g JOIN raffles r USING (game_id) JOIN partners p USING (partner_id)
    WHERE p.cell = ${cell} AND r.closed_at IS NULL AND r.voided_at IS NULL AND g.status = 'ACTIVE' ORDER BY p.partner_id`;
  for (const { gameId } of running) await noteGameStatus(tx, gameId, 'SUSPENDED', 'RESTORED');
  const rows = await tx<{ gameId: number }[]>`
    UPDATE games g SET status = 'SUSPENDED', status_reason = 'RESTORED', changed = ${changed}
    FROM raffles r, partners p
    WHERE r.game_id = g.game_id AND p.partner_id = g.partner_id AND p.cell = ${cell} AND r.closed_at IS NULL AND r.voided_at IS NULL
    RETURNING g.game_id`;
  return rows.map((row) => row.gameId);
}

/**
 * Voids the open rounds of a cell and records this in the audit log, because cards of their shoes may have
 * been revealed in steps that this database lacks.
 *
 * The rounds get the expiry -infinity. Redis accepts no further step of such a round (recovery/fill.ts), and
 * the next owner of the cell ends it immediately as expired.
 */
export async function voidOpenRounds(tx: Transaction, cell: number): Promise<void> {
  const rows = await tx<{ partnerId: number; playerId: string; dealId: bigint }[]>`
    UPDATE rounds r SET expires_at = '-infinity'
    FROM partners p
    WHERE p.partner_id = r.partner_id AND p.cell = ${cell} AND r.status = 'OPEN' AND r.expires_at <> '-infinity'
    RETURNING r.partner_id, r.player_id, r.deal_id`;
  if (rows.length === 0) return;
  const spinIds = new SpinIds((await installation(tx)).spinIdKey);
  for (const { partnerId, playerId, dealId } of rows)
    await writeAuditEntry(tx, {
      actor: 'worker',
      action: 'round.void',
      subject: `round:${spinIds.encodeOne(dealId, partnerId)}`,
      after: { player: `${partnerId}:${playerId}`, reason: 'RESTORED' },
    });
}

/** Returns the slot games and tables of a cell. Their blocks are replenished without an end. */
export async function endlessGames(sql: Sql, cell: number): Promise<number[]> {
  const rows = await sql<{ gameId: number }[]>`
    SELECT game_id FROM games JOIN partners USING (partner_id) WHERE cell = ${cell} AND game_type <> 'raffle' ORDER BY game_id`;
  return rows.map((row) => row.gameId);
}
