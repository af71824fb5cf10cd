/** Spins that were acknowledged, and that neither Redis nor the ledger has since a replica took over (cells/answeredSpins.ts finds them). */
import { audit } from './changes.js';
import { arrayOf, type Sql, safe, textArrayOf } from './client.js';

/** A spin as it was answered. */
export interface AnsweredSpin {
  readonly entryId: bigint;
  readonly partnerId: number;
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
  readonly outcomeCode: number;
  readonly balanceMicros: number;
}

/** What a front end has answered under epochs of a cell that are over. */
export interface EndedEpoch {
  readonly cell: number;
  /** The cell's epoch now: nothing of an earlier one is booked any more. */
  readonly epoch: string;
  readonly spins: readonly AnsweredSpin[];
  /** More were answered, and are not known by name any more. */
  readonly notRemembered: number;
}

/** In one statement. */
const SPINS_A_STATEMENT = 5000;

/**
 * Writes down the spins that the ledger lacks; an entry of the same id that is of another player or game, or came to something else, is
 * not the spin. Repeatable. One transaction.
 * @returns how many are lost that were not written down before
 */
export function recordLostSpins(
  sql: Sql,
  { cell, epoch, spins, notRemembered }: EndedEpoch,
): Promise<number> {
  return sql.begin(async (tx) => {
    const lost: bigint[] = [];
    for (let from = 0; from < spins.length; from += SPINS_A_STATEMENT) {
      const some = spins.slice(from, from + SPINS_A_STATEMENT);
      const rows = await tx<{ entry_id: bigint }[]>`
        INSERT INTO lost_spins (entry_id, partner_id, game_id, player_id, request_id, outcome_code, balance_micros, cell, epoch)
        SELECT entry_id, partner_id, game_id, player_id, nullif(request_id, ''), outcome_code, balance_micros, ${cell}::int, ${epoch}
        FROM unnest(${arrayOf(some.map((each) => each.entryId))}::bigint[],
          ${arrayOf(some.map((each) => each.partnerId))}::int[], ${arrayOf(some.map((each) => each.gameId))}::int[],
          ${textArrayOf(some.map((each) => each.playerId))}::text[], ${textArrayOf(some.map((each) => each.requestId ?? ''))}::text[],
          ${arrayOf(some.map((each) => each.outcomeCode))}::int[],
          ${arrayOf(some.map((each) => BigInt(each.balanceMicros)))}::bigint[])
          AS a(entry_id, partner_id, game_id, player_id, request_id, outcome_code, balance_micros)
        WHERE NOT EXISTS (
          SELECT 1 FROM ledger l
          WHERE l.entry_id = a.entry_id AND l.entry_id = ANY(${arrayOf(some.map((each) => each.entryId))}::bigint[])
            AND l.partner_id = a.partner_id AND l.player_id = a.player_id AND l.game_id = a.game_id
            AND l.outcome_code = a.outcome_code)
        ON CONFLICT DO NOTHING
        RETURNING entry_id`;
      for (const row of rows) lost.push(row.entry_id);
    }
    if (lost.length + notRemembered > 0) {
      const ids = lost.sort((a, b) => (a < b ? -1 : 1));
      await audit(tx, {
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

export interface LostSpin extends AnsweredSpin {
  readonly foundAt: Date;
}

/** The lost spins, newest first. */
export async function lostSpins(sql: Sql, limit: number): Promise<LostSpin[]> {
  const rows = await sql<
    {
      entry_id: bigint;
      partner_id: number;
      game_id: number;
      player_id: string;
      request_id: string | null;
      outcome_code: number;
      balance_micros: bigint;
      found_at: Date;
    }[]
  >`
    SELECT entry_id, partner_id, game_id, player_id, request_id, outcome_code, balance_micros, found_at
    FROM lost_spins ORDER BY entry_id DESC LIMIT ${limit}`;
  return rows.map((row) => ({
    entryId: row.entry_id,
    partnerId: row.partner_id,
    gameId: row.game_id,
    playerId: row.player_id,
    requestId: row.request_id ?? undefined,
    outcomeCode: row.outcome_code,
    balanceMicros: safe(row.balance_micros),
    foundAt: row.found_at,
  }));
}
