/** How far Postgres is, and which Postgres it is: what the position file (recovery/positionFile.ts) is compared with. */
import { arrayOf, type Sql } from './client.js';

/** What tells one Postgres, or one history of it, from another; null: the role may not ask. */
export interface Identity {
  readonly systemIdentifier: string | null;
  readonly timeline: string | null;
  readonly databaseOid: string;
  readonly database: string;
}

/** The statement's text, or null where the role lacks the right. */
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
    // The control file has the new one only after a checkpoint.
    timeline: await unlessRefused(
      sql<{ value: string }[]>`SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS value`,
    ),
    databaseOid: row!.oid,
    database: row!.datname,
  };
}

/** Up to where the outcomes of games are leased, or given up. A game without any is at 0. */
export async function leasedEnds(sql: Sql, gameIds: readonly number[]): Promise<Map<number, number>> {
  const rows = await sql<{ game_id: number; at: number }[]>`
    SELECT game_id, greatest(
      (SELECT to_index FROM blocks b WHERE b.game_id = g.game_id ORDER BY from_index DESC LIMIT 1),
      (SELECT to_index FROM voids v WHERE v.game_id = g.game_id ORDER BY from_index DESC LIMIT 1), 0)::float8 AS at
    FROM unnest(${arrayOf(gameIds)}::int[]) AS g(game_id)`;
  return new Map(rows.map(({ game_id: gameId, at }) => [gameId, at]));
}

/** Notes that the stores were restored: nothing is dealt until an operator has run `spindle recover --restored`. Repeatable. */
export async function holdForRestore(sql: Sql, positionId: string, reason: string): Promise<void> {
  await sql`
    INSERT INTO restored_positions (position_id, reason) VALUES (${positionId}::uuid, ${reason})
    ON CONFLICT (position_id) DO NOTHING`;
}

/** Why nothing is dealt until `spindle recover --restored` has run; undefined: nothing stands against it. */
export async function restoreHold(sql: Sql): Promise<string | undefined> {
  const [row] = await sql<{ reason: string }[]>`
    SELECT reason FROM restored_positions WHERE accepted_at IS NULL ORDER BY found_at LIMIT 1`;
  return row?.reason;
}

/** The stores were recovered from this position: a worker that has it begins a new one. */
export async function isAccepted(sql: Sql, positionId: string): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM restored_positions WHERE position_id = ${positionId}::uuid AND accepted_at IS NOT NULL`;
  return rows.length > 0;
}

const ACCEPTED_KEPT = 100;

/** The stores were recovered, above what every position says that was found. @param positionId of a file that no worker has found */
export async function acceptPositions(sql: Sql, positionId: string | undefined): Promise<void> {
  await sql.begin(async (tx) => {
    if (positionId !== undefined)
      await tx`
        INSERT INTO restored_positions (position_id, reason) VALUES (${positionId}::uuid, 'recovered by an operator')
        ON CONFLICT (position_id) DO NOTHING`;
    await tx`UPDATE restored_positions SET accepted_at = now() WHERE accepted_at IS NULL`;
    await tx`
      DELETE FROM restored_positions WHERE position_id IN (
        SELECT position_id FROM restored_positions ORDER BY accepted_at DESC OFFSET ${ACCEPTED_KEPT}::int)`;
  });
}
