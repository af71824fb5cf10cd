/** What a rebuild gives up of what was leased, and what it suspends where Postgres was restored to an older state. */
import { SpinIds } from '../domain/spinId.js';
import { audit, nextChange } from './changes.js';
import { arrayOf, type Sql, safe, type Transaction } from './client.js';
import { installation } from './installation.js';

/** Postgres was restored to an older state: more may have been dealt and shown than it knows. */
export interface RestoredState {
  /** By game, the first index that may be dealt, where it is known. Where it is not, {@link RESTORED_GAP} is left. */
  readonly floors: ReadonlyMap<number, number>;
  /** By game, the index after the last outcome that Redis has loaded. */
  readonly loadedTo?: ReadonlyMap<number, number>;
}

/**
 * So many indices are left out where nothing says how far a game was dealt after the state that was restored: more than a game deals in
 * years. Indices have 48 bits (lua/include/records.lua): there is room for 65,535 such restores.
 */
const RESTORED_GAP = 2 ** 32;

interface GivenUp {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly toIndex: number;
  /** Index after the last outcome of these that was leased. */
  readonly leasedTo: number;
}

/** Voids what is leased and not booked of slot games; after a restore also of tables, and all that may have been loaded besides. */
export async function giveUpLeased(
  tx: Transaction,
  cell: number,
  epoch: bigint,
  reason: string,
  restored: RestoredState | undefined,
): Promise<GivenUp[]> {
  const isRestored = restored !== undefined;
  const loadedTo = restored?.loadedTo ?? new Map<number, number>();
  const floors = restored?.floors ?? new Map<number, number>();
  const rows = await tx<{ game_id: number; from_index: bigint; leased_to: bigint; to_index: bigint }[]>`
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
    given_up AS (INSERT INTO voids (game_id, from_index, to_index, epoch, reason)
      SELECT game_id, from_index, to_index, ${epoch}, ${reason} FROM ends WHERE to_index > from_index RETURNING game_id),
    resumed AS (INSERT INTO game_progress (game_id, next_index) SELECT game_id, to_index FROM ends JOIN given_up USING (game_id)
      ON CONFLICT (game_id) DO UPDATE SET next_index = excluded.next_index)
    SELECT game_id, from_index, leased_to, to_index FROM ends WHERE to_index > from_index ORDER BY game_id`;
  return rows.map((row) => ({
    gameId: row.game_id,
    fromIndex: safe(row.from_index),
    leasedTo: safe(row.leased_to),
    toIndex: safe(row.to_index),
  }));
}

/** Suspends the raffles of a cell that are not closed: tickets that this database does not have may have been shown. @returns which */
export async function suspendRaffles(tx: Transaction, cell: number): Promise<number[]> {
  const changed = await nextChange(tx);
  const rows = await tx<{ game_id: number }[]>`
    UPDATE games g SET status = 'SUSPENDED', status_reason = 'RESTORED', changed = ${changed}
    FROM raffles r, partners p
    WHERE r.game_id = g.game_id AND p.partner_id = g.partner_id AND p.cell = ${cell} AND r.closed_at IS NULL AND r.voided_at IS NULL
    RETURNING g.game_id`;
  return rows.map((row) => row.game_id);
}

/**
 * Has the open rounds of a cell voided, and writes it into the audit log: cards that this database does not have may have been shown of
 * their shoes. Such a round has expired at -infinity: Redis takes no other step of it (recovery/fill.ts), and the worker that comes to
 * own the cell ends it at once, as those whose time is over.
 */
export async function voidOpenRounds(tx: Transaction, cell: number): Promise<void> {
  const rows = await tx<{ partner_id: number; player_id: string; deal_id: bigint }[]>`
    UPDATE rounds r SET expires_at = '-infinity'
    FROM partners p
    WHERE p.partner_id = r.partner_id AND p.cell = ${cell} AND r.status = 'OPEN' AND r.expires_at <> '-infinity'
    RETURNING r.partner_id, r.player_id, r.deal_id`;
  if (rows.length === 0) return;
  const spinIds = new SpinIds((await installation(tx)).spinIdKey);
  for (const { partner_id: partnerId, player_id: playerId, deal_id: dealId } of rows)
    await audit(tx, {
      actor: 'worker',
      action: 'round.void',
      subject: `round:${spinIds.encodeOne(dealId, partnerId)}`,
      after: { player: `${partnerId}:${playerId}`, reason: 'RESTORED' },
    });
}

/** The slot games and tables of a cell: what is dealt from blocks without end. */
export async function endlessGames(sql: Sql, cell: number): Promise<number[]> {
  const rows = await sql<{ game_id: number }[]>`
    SELECT game_id FROM games JOIN partners USING (partner_id) WHERE cell = ${cell} AND game_type <> 'raffle' ORDER BY game_id`;
  return rows.map((row) => row.game_id);
}
