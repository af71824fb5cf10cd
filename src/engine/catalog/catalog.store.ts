/**
 * SQL of the catalog that each process holds in memory. A process reads the whole catalog when it starts, and
 * later only the changes.
 */
import { createHash } from 'node:crypto';
import type { ApiKey } from '../../domain/game.js';
import { kindOfGame } from '../../domain/games/index.js';
import type { GameStatus, GameType } from '../../domain/games/kindOfGame.js';
import type { PrizeTableUsd } from '../../domain/games/prizeTable.js';
import type { TableTerms } from '../../domain/games/tableTerms.js';
import type { ParSheet } from '../../domain/par.js';
import { NOBODY_CHANGES } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';
import { arrayOf } from '../../postgres/statements.js';
import { type TableColumns, termsOf } from '../blackjack/rounds.store.js';
import { TOKEN } from '../cells/cells.store.js';
import { RUNS_VERSION } from '../requestIds/requestRuns.store.js';
import { API_VERSION_COLUMNS, type ApiVersionRow } from './apiVersions.store.js';
import { dealingAfter } from './dealingSwitches.store.js';
import { type ChangedOperator, operatorsAfter } from './operators.store.js';
import { PARTNER_COLUMNS, type PartnerRow, type PartnerTableRow, partnerFromRow } from './partners.store.js';

export interface CatalogGame {
  gameId: number;
  partnerId: number;
  cell: number;
  parSheetId: number | null;
  /**
   * Mathematics that are stored with the game itself instead of in a PAR sheet: the prize table of a raffle,
   * or the terms of a blackjack table.
   */
  prizeTable: PrizeTableUsd | null;
  table: TableTerms | null;
  /** Time when the raffle's pool was sealed. Null if it is not sealed, or the game is no raffle. */
  sealedAt: Date | null;
  gameType: GameType;
  status: GameStatus;
  blocksRequested: number;
}

export interface DirectoryChanges {
  /** Number of the newest change in this result; the next call passes it as `after`. */
  newest: bigint;
  partners: PartnerRow[];
  keys: (ApiKey & { hash: string })[];
  games: CatalogGame[];
  apiVersions: ApiVersionRow[];
  operators: ChangedOperator[];
  /** State of the dealing switch for all games. Undefined if it has not changed. */
  isDealing: boolean | undefined;
}

export interface CatalogState {
  readonly newest: bigint;
  readonly newestRestriction: bigint;
  /** Hash of the epochs of all cells and of the version of the request-id runs. */
  readonly digest: string;
}

/** Values that every process polls continuously, read in one query. */
export interface Newest {
  /**
   * Number of the newest change of partners, keys, games and operators. The change may not be committed yet.
   */
  readonly change: bigint;
  readonly epochs: ReadonlyMap<number, string>;
  /** Version of the request-id runs (requestRuns.store.ts). */
  readonly runs: string;
  /**
   * Whether every change numbered up to `change` is final, because no transaction that could commit one is in
   * progress.
   */
  readonly isSettled: boolean;
  /** Data format that all processes write (domain/formats.ts). */
  readonly format: number;
}

interface NewestRow {
  readonly change: bigint;
  readonly cell: number | null;
  readonly token: string;
  readonly runs: string;
  readonly settled: boolean;
  readonly format: number;
}

export async function newestOfAll(sql: Sql): Promise<Newest> {
  const rows = await sql.prepared<NewestRow[]>`
    SELECT last_value - (NOT is_called)::int AS change, cell, ${TOKEN} AS token, (${RUNS_VERSION}) AS runs,
      (${NOBODY_CHANGES}) AS settled, (SELECT format FROM installation) AS format
    FROM change_number LEFT JOIN cells ON true`;
  const epochs = new Map(rows.flatMap(({ cell, token }) => (cell === null ? [] : [[cell, token] as const])));
  const [{ change, runs, settled, format }] = rows as [NewestRow];
  return { change, epochs, runs, isSettled: settled, format };
}

export const digestOfNewest = ({ epochs, runs }: Newest): string =>
  createHash('sha256')
    .update([...epochs].sort(([a], [b]) => a - b).join())
    .update(` ${runs}`)
    .digest('base64');

/**
 * Reads all partners, keys, games, versions, operators and the dealing switch that changed after the change
 * `after`. If `after` is 0, reads all of them.
 */
export async function changesAfter(sql: Sql, after: bigint): Promise<DirectoryChanges> {
  return sql.begin(async (tx) => {
    const partners = await tx<(PartnerTableRow & { changed: bigint })[]>`
      SELECT ${PARTNER_COLUMNS}, changed FROM partners WHERE changed > ${after}`;
    const keys = await tx<
      {
        keyId: number;
        partnerId: number;
        keyHash: Buffer;
        expiresAt: Date | null;
        revokedAt: Date | null;
        changed: bigint;
      }[]
    >`SELECT key_id, partner_id, key_hash, expires_at, revoked_at, changed FROM api_keys WHERE changed > ${after}`;
    const games = await tx<
      (Omit<CatalogGame, 'table' | 'status'> &
        TableColumns & { status: string; closedAt: Date | null; voidedAt: Date | null; changed: bigint })[]
    >`SELECT game_id, partner_id, cell, par_sheet_id, prize_table, sealed_at, closed_at, voided_at, game_type, status, blocks_requested,
        wager_micros, rules, round_timeout_s, games.changed
      FROM games JOIN partners USING (partner_id) LEFT JOIN raffles USING (game_id)
        LEFT JOIN blackjack_tables USING (game_id) WHERE games.changed > ${after}`;
    const versions = await tx<(ApiVersionRow & { changed: bigint })[]>`
      SELECT ${API_VERSION_COLUMNS}, changed FROM api_versions WHERE changed > ${after}`;
    const operators = await operatorsAfter(tx, after);
    const dealing = await dealingAfter(tx, after);
    let newest = after;
    for (const row of [...partners, ...keys, ...games, ...versions, ...operators])
      if (row.changed > newest) newest = row.changed;
    if (dealing !== undefined && dealing.changed > newest) newest = dealing.changed;
    return {
      newest,
      isDealing: dealing?.isOn,
      operators,
      apiVersions: versions,
      partners: partners.map(partnerFromRow),
      keys: keys.map((row) => ({
        keyId: row.keyId,
        partnerId: row.partnerId,
        hash: row.keyHash.toString('latin1'),
        expiresAtMs: row.expiresAt === null ? null : row.expiresAt.getTime(),
        isRevoked: row.revokedAt !== null,
      })),
      games: games.map((row) => ({
        gameId: row.gameId,
        partnerId: row.partnerId,
        cell: row.cell,
        parSheetId: row.parSheetId,
        prizeTable: row.prizeTable,
        table: termsOf(row),
        sealedAt: row.sealedAt,
        gameType: row.gameType,
        status: kindOfGame(row.gameType).lifeCycle.statusOf({
          isSuspended: row.status === 'SUSPENDED',
          sealedAt: row.sealedAt,
          closedAt: row.closedAt ?? row.voidedAt,
        }),
        blocksRequested: row.blocksRequested,
      })),
    };
  }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
}

export async function sheetsOf(sql: Sql, ids: readonly number[]): Promise<Map<number, ParSheet>> {
  if (ids.length === 0) return new Map();
  const rows = await sql<{ parSheetId: number; sheet: ParSheet }[]>`
    SELECT par_sheet_id, sheet FROM par_sheets WHERE par_sheet_id = ANY(${arrayOf(ids)}::int[])`;
  return new Map(rows.map((row) => [row.parSheetId, row.sheet]));
}
