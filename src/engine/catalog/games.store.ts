/**
 * SQL of games of all kinds, and of their committed totals, which are exact over all days, restarts and
 * processes.
 */
import { kindOfGame } from '../../domain/games/index.js';
import type { GameStatus, GameType, PoolFacts } from '../../domain/games/kindOfGame.js';
import type { PrizeTableUsd } from '../../domain/games/prizeTable.js';
import { because, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { isUniqueViolation } from '../../postgres/postgresErrors.js';
import { arrayOf, raw, safe } from '../../postgres/statements.js';
import { noteGameStatus } from './dealingSwitches.store.js';

/** Maximum number of requested blocks of a game that are not made yet. */
const BLOCKS_REQUESTED_MAX = 1000;

/** Data of a raffle in addition to the data of every game. */
export interface RaffleRow extends PoolFacts {
  /** Undefined in lists, because tables can have up to a thousand prizes and would slow the list down. */
  table: PrizeTableUsd | undefined;
  sealedAt: Date | null;
  closedAt: Date | null;
}

export interface GameRow {
  gameId: number;
  partnerId: number;
  parSheetId: number | null;
  /** Certified return of the game's PAR sheet. Null if the game has no sheet. */
  certifiedRtp: number | null;
  gameType: GameType;
  configName: string;
  displayName: string;
  status: GameStatus;
  /**
   * Reason why the game is suspended or closed. Null if the operator suspended it, if all its tickets are
   * sold, or if it is neither suspended nor closed.
   */
  statusReason: 'RESTORED' | 'VOIDED' | null;
  createdAt: Date;
  /** Data of a raffle. Undefined for other kinds of games. */
  raffle: RaffleRow | undefined;
}

interface Row extends Omit<GameRow, 'status' | 'statusReason' | 'raffle'> {
  status: string;
  statusReason: 'RESTORED' | null;
  prizeTable?: PrizeTableUsd | null;
  poolSize: number | null;
  commitment: string | null;
  sold: bigint;
  sealedAt: Date | null;
  closedAt: Date | null;
  voidedAt: Date | null;
}

const LISTED = `
  game_id, partner_id, par_sheet_id, game_type, config_name, display_name, status, status_reason, created_at,
    (SELECT certified_rtp FROM par_sheets s WHERE s.par_sheet_id = games.par_sheet_id) AS certified_rtp,
    pool_size, sealed_at, closed_at, voided_at, coalesce(next_index, 0) AS sold,
    (SELECT encode(commitment, 'hex') FROM blocks b
     WHERE pool_size IS NOT NULL AND b.game_id = games.game_id AND from_index = 0) AS commitment`;
const FROM = 'FROM games LEFT JOIN raffles USING (game_id) LEFT JOIN game_progress USING (game_id)';
const SELECT = raw(`SELECT prize_table, ${LISTED} ${FROM}`);
const SELECT_LIST = raw(`SELECT ${LISTED} ${FROM}`);

const fromRow = (row: Row): GameRow => ({
  gameId: row.gameId,
  partnerId: row.partnerId,
  parSheetId: row.parSheetId,
  certifiedRtp: row.certifiedRtp,
  gameType: row.gameType,
  configName: row.configName,
  displayName: row.displayName,
  status: kindOfGame(row.gameType).lifeCycle.statusOf({
    isSuspended: row.status === 'SUSPENDED',
    sealedAt: row.sealedAt,
    closedAt: row.closedAt ?? row.voidedAt,
  }),
  statusReason: row.voidedAt === null ? row.statusReason : 'VOIDED',
  createdAt: row.createdAt,
  raffle:
    row.poolSize === null
      ? undefined
      : {
          table: row.prizeTable ?? undefined,
          poolSize: row.poolSize,
          commitment: row.commitment,
          ticketsRemaining: row.poolSize - safe(row.sold),
          sealedAt: row.sealedAt,
          closedAt: row.closedAt,
        },
});

export type Registration = GameRow | 'name-taken' | 'sheet-missing' | 'sheet-not-active' | 'cap-reached';

export async function findGame(sql: Sql | Transaction, gameId: number): Promise<GameRow | undefined> {
  const [row] = await sql<Row[]>`${SELECT} WHERE game_id = ${gameId}`;
  return row === undefined ? undefined : fromRow(row);
}

/** Committed totals and progress of a game at one moment. */
export interface CommittedGame {
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
  /** Index of the game's next outcome that will be committed. */
  readonly nextIndex: number;
  /** Blocks that are sealed and not fully committed, oldest first. */
  readonly blocks: readonly { readonly fromIndex: number; readonly toIndex: number }[];
}

export class Games {
  constructor(private readonly sql: Sql) {}

  /**
   * Registers a slot game on an active PAR sheet of the same partner, unless the partner has reached its
   * maximum number of games.
   */
  async register(game: {
    partnerId: number;
    parSheetId: number;
    configName: string;
    displayName: string;
  }): Promise<Registration> {
    try {
      return await withChange(this.sql, async (tx, changed) => {
        // Because of the lock, a sheet that is being retired gets no game afterwards.
        const [sheet] = await tx<{ status: string }[]>`
          SELECT status FROM par_sheets
          WHERE par_sheet_id = ${game.parSheetId} AND partner_id = ${game.partnerId} FOR SHARE`;
        if (sheet === undefined) return 'sheet-missing';
        if (sheet.status !== 'ACTIVE') return 'sheet-not-active';
        // The number of the partner's games can't change before the insert, because changes of the catalog
        // are made one after the other. Only slot games are counted, because partners can't register other
        // games.
        const [cap] = await tx<{ isReached: boolean }[]>`
          SELECT (SELECT count(*) FROM games g WHERE g.partner_id = p.partner_id AND game_type = 'slot') >= max_games
            AS is_reached FROM partners p WHERE partner_id = ${game.partnerId}`;
        if (cap!.isReached) return 'cap-reached';
        const [row] = await tx<{ gameId: number }[]>`
          INSERT INTO games (partner_id, par_sheet_id, game_type, config_name, display_name, changed)
          VALUES (${game.partnerId}, ${game.parSheetId}, 'slot', ${game.configName}, ${game.displayName}, ${changed})
          RETURNING game_id`;
        return (await findGame(tx, row!.gameId))!;
      });
    } catch (error) {
      if (isUniqueViolation(error)) return 'name-taken';
      throw error;
    }
  }

  async list(partnerId: number): Promise<GameRow[]> {
    const rows = await this.sql<Row[]>`${SELECT_LIST} WHERE partner_id = ${partnerId} ORDER BY game_id`;
    return rows.map(fromRow);
  }

  /** Returns a page of the games of one partner or of all partners, newest first. */
  async page(
    partnerId: number | undefined,
    page: number,
    limit: number,
  ): Promise<{ games: GameRow[]; total: number }> {
    const of = partnerId ?? null;
    const rows = await this.sql<Row[]>`
      ${SELECT_LIST} WHERE ${of}::int IS NULL OR partner_id = ${of}
      ORDER BY game_id DESC LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM games WHERE ${of}::int IS NULL OR partner_id = ${of}`;
    return { games: rows.map(fromRow), total: safe(count!.total) };
  }

  find(gameId: number): Promise<GameRow | undefined> {
    return findGame(this.sql, gameId);
  }

  /** Suspends or resumes a game. Undefined if there is no such game. */
  async setStatus(
    actor: string,
    gameId: number,
    status: 'ACTIVE' | 'SUSPENDED',
    reason?: string,
  ): Promise<GameRow | 'closed' | undefined> {
    return withChange(this.sql, async (tx, changed) => {
      const before = await findGame(tx, gameId);
      if (before === undefined) return undefined;
      if (before.status === 'CLOSED') return 'closed';
      await tx`UPDATE games SET status = ${status}, status_reason = CASE WHEN ${status} = 'SUSPENDED' THEN status_reason END, changed = ${changed} WHERE game_id = ${gameId}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'game.update',
        subject: `game:${gameId}`,
        before: { status: before.status },
        after: { status, ...because(reason) },
      });
      const isStopped = before.status === 'SUSPENDED';
      if (isStopped !== (status === 'SUSPENDED')) await noteGameStatus(tx, gameId, status, 'OPERATOR');
      return findGame(tx, gameId);
    });
  }

  /**
   * Requests additional blocks of a game, beyond those that the demand requires. Returns false if there is no
   * such game or it is a raffle, whose pool is finite.
   */
  async requestBlocks(actor: string, gameId: number, count: number): Promise<boolean> {
    return withChange(this.sql, async (tx, changed) => {
      const [before] = await tx<{ blocksRequested: number }[]>`
        SELECT blocks_requested FROM games WHERE game_id = ${gameId} AND game_type <> 'raffle' FOR NO KEY UPDATE`;
      if (before === undefined) return false;
      const blocksRequested = Math.min(before.blocksRequested + count, BLOCKS_REQUESTED_MAX);
      await tx`
        UPDATE games SET blocks_requested = ${blocksRequested}, changed = ${changed} WHERE game_id = ${gameId}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'game.blocks',
        subject: `game:${gameId}`,
        before: { blocksRequested: before.blocksRequested },
        after: { blocksRequested },
      });
      return true;
    });
  }

  async booked(gameId: number): Promise<CommittedGame> {
    const [row] = await this.sql<[Omit<CommittedGame, 'nextIndex'> & { nextIndex: bigint }]>`
      WITH progress AS (SELECT coalesce((SELECT next_index FROM game_progress WHERE game_id = ${gameId}), 0) AS next_index)
      SELECT coalesce(sum(spins), 0) AS spins, coalesce(sum(wagered_micros), 0) AS wagered_micros,
             coalesce(sum(paid_micros), 0) AS paid_micros, (SELECT next_index FROM progress) AS next_index,
             (SELECT coalesce(json_agg(json_build_object('fromIndex', from_index, 'toIndex', to_index) ORDER BY from_index), '[]')
              FROM blocks b, progress WHERE b.game_id = ${gameId} AND to_index > next_index) AS blocks
      FROM game_days WHERE game_id = ${gameId}`;
    return { ...row, nextIndex: safe(row.nextIndex) };
  }
}

export async function gamesOfPartner(sql: Sql | Transaction, partnerId: number): Promise<number[]> {
  const rows = await sql<{ gameId: number }[]>`SELECT game_id FROM games WHERE partner_id = ${partnerId}`;
  return rows.map((row) => row.gameId);
}

export interface GameTotals {
  gameId: number;
  spins: bigint;
  wageredMicros: bigint;
  paidMicros: bigint;
}

export interface CellTotals {
  cell: number;
  /** Id of the newest ledger entry in the totals. */
  cursor: bigint;
  games: GameTotals[];
}

/**
 * Reads the totals of every game of these cells, with the cursor of each cell at which the totals were taken.
 */
export async function committedTotals(sql: Sql, cells: readonly number[]): Promise<CellTotals[]> {
  const wanted = arrayOf(cells);
  return sql.begin(async (tx) => {
    const cursors = await tx<Omit<CellTotals, 'games'>[]>`
      SELECT cell, cursor_id AS cursor FROM cells WHERE cell = ANY(${wanted}::int[])`;
    const games = await tx<(GameTotals & { cell: number })[]>`
      SELECT cell, game_id, sum(spins) AS spins, sum(wagered_micros) AS wagered_micros, sum(paid_micros) AS paid_micros
      FROM game_days JOIN partners USING (partner_id) WHERE cell = ANY(${wanted}::int[]) GROUP BY cell, game_id`;
    const byCell = new Map(cursors.map((row): [number, CellTotals] => [row.cell, { ...row, games: [] }]));
    for (const { cell, ...game } of games) byCell.get(cell)?.games.push(game);
    return [...byCell.values()];
  }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
}
