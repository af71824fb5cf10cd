/** SQL with which a rebuild of Redis restores communal progressives. */
import { type CommunalRules, RECENCY_MAX } from '../../domain/communal.js';
import { entryCellSql } from '../../domain/entryId.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { arrayOf, raw, safe } from '../../postgres/statements.js';
import { inScope, type PartnerScope } from '../cells/cells.store.js';

/** A committed pot with the newest recorded rules. */
export interface RecoveredPot {
  readonly gameId: number;
  readonly partnerId: number;
  readonly version: number;
  readonly rules: CommunalRules;
  readonly remembersPlayers: boolean;
  readonly progress: number;
  readonly budgetMicros: number;
  /**
   * Newest spin of each player in the recency set, as of the player checkpoint ({@link checkpointRecency}).
   */
  readonly recent: readonly { readonly playerId: string; readonly spinId: bigint }[];
  /**
   * Entry id after which the spins count for the recency set: a player with a later spin belongs to the set.
   * Undefined if the game has no recency set.
   */
  readonly recencyFrom: bigint | undefined;
}

/** Returns whether any game has or had a communal progressive. */
export async function hasPots(sql: Sql, scope: PartnerScope): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM communal_pots JOIN games USING (game_id) JOIN partners USING (partner_id) WHERE ${inScope(scope)} LIMIT 1`;
  return rows.length > 0;
}

/**
 * Puts recorded but uncommitted rules into force, or withdraws them. This runs in the transaction that begins
 * a recovery or moves a partner, because after that transaction no call under way can put the rules into
 * force. If a caller was told that rules are in force, they apply in the next epoch, even if Redis has lost
 * them. Rules that were never confirmed are withdrawn, with an entry in the audit log.
 */
export async function adoptRules(tx: Transaction, scope: PartnerScope, cursorId: bigint): Promise<void> {
  await withdrawUnconfirmed(tx, scope);
  const rows = await tx<{ gameId: number; version: number; resets: boolean; isEnabled: boolean }[]>`
    SELECT game_id, max(version) AS version, bool_or(resets_progress) AS resets,
      bool_or((rules->>'enabled')::boolean) AS is_enabled
    FROM communal_rules r JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE ${inScope(scope)} AND in_force_from IS NULL
      AND version > (SELECT coalesce(max(version), 0) FROM communal_pots p WHERE p.game_id = r.game_id)
    GROUP BY game_id`;
  for (const row of rows) {
    await tx`
      UPDATE communal_rules SET in_force_from = ${cursorId} WHERE game_id = ${row.gameId} AND version <= ${row.version} AND in_force_from IS NULL`;
    await tx`
      INSERT INTO communal_pots AS t (game_id, version, progress, budget_micros, recency_from, noted_to)
      VALUES (${row.gameId}, ${row.version}, 0, 0,
        CASE WHEN ${row.isEnabled}::boolean THEN ${cursorId}::bigint END, 0)
      ON CONFLICT (game_id) DO UPDATE SET version = excluded.version,
        progress = CASE WHEN ${row.resets}::boolean THEN 0 ELSE t.progress END,
        recency_from = coalesce(t.recency_from, excluded.recency_from)`;
  }
}

async function withdrawUnconfirmed(tx: Transaction, scope: PartnerScope): Promise<void> {
  const withdrawn = await tx<{ gameId: number; version: number }[]>`
    DELETE FROM communal_rules r USING games JOIN partners USING (partner_id)
    WHERE r.game_id = games.game_id AND ${inScope(scope)} AND in_force_from IS NULL AND confirmed_at IS NULL
      AND version > (SELECT coalesce(max(version), 0) FROM communal_pots p WHERE p.game_id = r.game_id)
    RETURNING r.game_id, version`;
  for (const { gameId, version } of withdrawn)
    await writeAuditEntry(tx, {
      actor: 'worker',
      action: 'communal.set.refused',
      subject: `game:${gameId}`,
      before: { version },
    });
}

export async function potsOf(sql: Sql | Transaction, scope: PartnerScope): Promise<RecoveredPot[]> {
  const pots = await sql<
    (Omit<RecoveredPot, 'remembersPlayers' | 'progress' | 'budgetMicros' | 'recent' | 'recencyFrom'> &
      Record<'progress' | 'budgetMicros', bigint> & { recencyFrom: bigint | null })[]
  >`
    SELECT game_id, partner_id, version, rules, recency_from, progress, budget_micros
    FROM communal_pots JOIN communal_rules USING (game_id, version) JOIN games USING (game_id)
      JOIN partners USING (partner_id)
    WHERE ${inScope(scope)}`;
  const recent = await sql<{ gameId: number; playerId: string; spinId: bigint }[]>`
    SELECT game_id, player_id, spin_id FROM communal_recency JOIN communal_pots USING (game_id) JOIN games USING (game_id)
      JOIN partners USING (partner_id)
    WHERE ${inScope(scope)} AND spin_id > recency_from`;
  return pots.map((row) => ({
    ...row,
    remembersPlayers: row.recencyFrom !== null,
    recencyFrom: row.recencyFrom ?? undefined,
    progress: safe(row.progress),
    budgetMicros: safe(row.budgetMicros),
    recent: recent
      .filter((each) => each.gameId === row.gameId)
      .map((each) => ({ playerId: each.playerId, spinId: each.spinId })),
  }));
}

/**
 * Updates communal_recency from the ledger's entries. This is part of the transaction of a player checkpoint.
 * Only the most recent players of a game are kept, as many as the largest community can have.
 * @param ranges SQL table `c` with a range of entry ids for each cell: `cell`, `from_id` and `to_id`, both
 * inclusive
 */
export async function checkpointRecency(
  tx: Transaction,
  oldest: bigint,
  newest: bigint,
  ranges: unknown,
): Promise<void> {
  const games = await tx<
    { gameId: number }[]
  >`SELECT game_id FROM communal_pots WHERE recency_from IS NOT NULL`;
  if (games.length === 0) return;
  const gameIds = arrayOf(games.map((row) => row.gameId));
  await tx`
    INSERT INTO communal_recency AS t (game_id, player_id, spin_id)
    SELECT game_id, player_id, spin_id FROM (
      SELECT game_id, player_id, max(entry_id) AS spin_id,
        row_number() OVER (PARTITION BY game_id ORDER BY max(entry_id) DESC) AS place
      FROM ledger JOIN ${ranges}
        ON ${raw(entryCellSql('entry_id'))} = c.cell AND entry_id BETWEEN c.from_id AND c.to_id
      WHERE entry_id BETWEEN ${oldest} AND ${newest} AND kind = 1 AND game_id = ANY(${gameIds}::int[])
      GROUP BY game_id, player_id) AS n
    WHERE place <= ${RECENCY_MAX}
    ON CONFLICT (game_id, player_id) DO UPDATE SET spin_id = excluded.spin_id WHERE excluded.spin_id > t.spin_id`;
  await keepNewestPlayers(tx, 'communal_recency');
}

/**
 * Removes players who can no longer be in any community, because enough other players have spun after them.
 */
export async function keepNewestPlayers(
  tx: Transaction,
  table: 'communal_recency' | 'boundary_recency',
): Promise<void> {
  await tx`
    DELETE FROM ${raw(table)} AS t USING (
      SELECT game_id, player_id, row_number() OVER (PARTITION BY game_id ORDER BY spin_id DESC) AS place
      FROM ${raw(table)}) AS ranked
    WHERE ranked.game_id = t.game_id AND ranked.player_id = t.player_id AND place > ${RECENCY_MAX}`;
}

interface WaitingShare {
  partnerId: number;
  playerId: string;
  entryId: bigint;
  eventId: bigint;
  tierLevel: number;
  tierName: string;
  paidMicros: number;
  shareMicros: number;
}

type ShareMicros = 'paidMicros' | 'shareMicros';

/** Reads the shares whose players are not notified yet, oldest first. */
export async function waitingShares(sql: Sql, scope: PartnerScope): Promise<WaitingShare[]> {
  const rows = await sql<(Omit<WaitingShare, ShareMicros> & Record<ShareMicros, bigint>)[]>`
    SELECT partner_id, player_id, entry_id, event_id, tier_level, tier_name, paid_micros, s.amount_micros AS share_micros
    FROM communal_shares s JOIN communal_events USING (event_id) JOIN partners USING (partner_id)
    WHERE ${inScope(scope)} AND told_by IS NULL ORDER BY entry_id`;
  return rows.map((row) => ({
    ...row,
    paidMicros: safe(row.paidMicros),
    shareMicros: safe(row.shareMicros),
  }));
}
