/** Registered games. */
import type { GameStatus } from '../domain/game.js';
import { audit, withChange } from './changes.js';
import { isUniqueViolation, type Sql, safe } from './client.js';

/** Requested and not made yet, at the most. */
const BLOCKS_REQUESTED_MAX = 1000;

export interface GameRow {
  gameId: number;
  partnerId: number;
  parSheetId: number | null;
  gameType: 'slot' | 'raffle';
  configName: string;
  displayName: string;
  status: GameStatus;
  createdAt: Date;
}

interface Row {
  game_id: number;
  partner_id: number;
  par_sheet_id: number | null;
  game_type: 'slot' | 'raffle';
  config_name: string;
  display_name: string;
  status: GameStatus;
  created_at: Date;
}

const fromRow = (row: Row): GameRow => ({
  gameId: row.game_id,
  partnerId: row.partner_id,
  parSheetId: row.par_sheet_id,
  gameType: row.game_type,
  configName: row.config_name,
  displayName: row.display_name,
  status: row.status,
  createdAt: row.created_at,
});

export type Registration = GameRow | 'name-taken' | 'sheet-missing' | 'sheet-not-active';

/** Registers a slot game on an active sheet of the same partner. */
export async function registerGame(
  sql: Sql,
  game: { partnerId: number; parSheetId: number; configName: string; displayName: string },
): Promise<Registration> {
  try {
    return await withChange(sql, async (tx, changed) => {
      // Locked, so that a sheet that is being retired gets no game afterwards.
      const [sheet] = await tx<{ status: string }[]>`
        SELECT status FROM par_sheets
        WHERE par_sheet_id = ${game.parSheetId} AND partner_id = ${game.partnerId} FOR SHARE`;
      if (sheet === undefined) return 'sheet-missing';
      if (sheet.status !== 'ACTIVE') return 'sheet-not-active';
      const [row] = await tx<Row[]>`
        INSERT INTO games (partner_id, par_sheet_id, game_type, config_name, display_name, changed)
        VALUES (${game.partnerId}, ${game.parSheetId}, 'slot', ${game.configName}, ${game.displayName}, ${changed})
        RETURNING game_id, partner_id, par_sheet_id, game_type, config_name, display_name, status, created_at`;
      return fromRow(row!);
    });
  } catch (error) {
    if (isUniqueViolation(error)) return 'name-taken';
    throw error;
  }
}

export async function listGames(sql: Sql, partnerId: number): Promise<GameRow[]> {
  const rows = await sql<Row[]>`
    SELECT game_id, partner_id, par_sheet_id, game_type, config_name, display_name, status, created_at
    FROM games WHERE partner_id = ${partnerId} ORDER BY game_id`;
  return rows.map(fromRow);
}

export async function findGame(sql: Sql, gameId: number): Promise<GameRow | undefined> {
  const [row] = await sql<Row[]>`
    SELECT game_id, partner_id, par_sheet_id, game_type, config_name, display_name, status, created_at
    FROM games WHERE game_id = ${gameId}`;
  return row === undefined ? undefined : fromRow(row);
}

/** Sets the status of a game; undefined where there is none. */
export async function setGameStatus(
  sql: Sql,
  actor: string,
  gameId: number,
  status: GameStatus,
): Promise<GameRow | undefined> {
  return withChange(sql, async (tx, changed) => {
    const [before] = await tx<
      { status: GameStatus }[]
    >`SELECT status FROM games WHERE game_id = ${gameId} FOR UPDATE`;
    if (before === undefined) return undefined;
    const [row] = await tx<Row[]>`
      UPDATE games SET status = ${status}, changed = ${changed} WHERE game_id = ${gameId}
      RETURNING game_id, partner_id, par_sheet_id, game_type, config_name, display_name, status, created_at`;
    await audit(tx, { actor, action: 'game.update', subject: `game:${gameId}`, before, after: { status } });
    return fromRow(row!);
  });
}

/** Asks for blocks to be made beyond what demand calls for; false where there is no such game. */
export async function requestBlocks(
  sql: Sql,
  actor: string,
  gameId: number,
  count: number,
): Promise<boolean> {
  return withChange(sql, async (tx, changed) => {
    const [before] = await tx<{ blocks_requested: number }[]>`
      SELECT blocks_requested FROM games WHERE game_id = ${gameId} FOR UPDATE`;
    if (before === undefined) return false;
    const blocksRequested = Math.min(before.blocks_requested + count, BLOCKS_REQUESTED_MAX);
    await tx`
      UPDATE games SET blocks_requested = ${blocksRequested}, changed = ${changed} WHERE game_id = ${gameId}`;
    await audit(tx, {
      actor,
      action: 'game.blocks',
      subject: `game:${gameId}`,
      before: { blocksRequested: before.blocks_requested },
      after: { blocksRequested },
    });
    return true;
  });
}

export interface GameTotals {
  spins: number;
  wageredMicros: number;
  paidMicros: number;
}

/** What the ledger holds of a game. */
export async function gameTotals(sql: Sql, gameId: number): Promise<GameTotals> {
  const [row] = await sql<{ spins: bigint; wagered: bigint; paid: bigint }[]>`
    SELECT coalesce(sum(spins), 0)::bigint AS spins, coalesce(sum(wagered_micros), 0)::bigint AS wagered,
           coalesce(sum(paid_micros), 0)::bigint AS paid
    FROM game_days WHERE game_id = ${gameId}`;
  return { spins: safe(row!.spins), wageredMicros: safe(row!.wagered), paidMicros: safe(row!.paid) };
}
