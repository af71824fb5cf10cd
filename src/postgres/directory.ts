/** What the processes hold in memory: read whole at the start, then whatever changed since. */
import type { ApiKey, GameStatus, Partner } from '../domain/game.js';
import type { ParSheet } from '../domain/par.js';
import { arrayOf, type Sql, safe } from './client.js';

export interface DirectoryGame {
  gameId: number;
  partnerId: number;
  cell: number;
  parSheetId: number | null;
  gameType: 'slot' | 'raffle';
  status: GameStatus;
  blocksRequested: number;
}

export interface DirectoryPartner extends Partner {
  readonly minReadyBlocks: number;
}

export interface DirectoryChanges {
  /** Number of the newest change in here; ask with it the next time. */
  newest: bigint;
  partners: DirectoryPartner[];
  keys: (ApiKey & { hash: string })[];
  games: DirectoryGame[];
}

/** Number of the newest change there is. */
export async function newestChange(sql: Sql): Promise<bigint> {
  const [row] = await sql<{ newest: bigint }[]>`SELECT last_value AS newest FROM change_number`;
  return row!.newest;
}

/** All partners, keys and games that changed after a change; after 0, all there are. */
export async function changesAfter(sql: Sql, after: bigint): Promise<DirectoryChanges> {
  return sql.begin(async (tx) => {
    const partners = await tx<
      {
        partner_id: number;
        slug: string;
        name: string;
        environment: 'sandbox' | 'production';
        is_active: boolean;
        cell: number;
        spin_rate_limit: number;
        api_rate_limit: number;
        opening_balance_micros: bigint;
        balance_mode: 'track' | 'enforce';
        funding_micros: bigint | null;
        min_ready_blocks: number;
        changed: bigint;
      }[]
    >`SELECT partner_id, slug, name, environment, is_active, cell, spin_rate_limit, api_rate_limit,
             opening_balance_micros, balance_mode, funding_micros, min_ready_blocks, changed
      FROM partners WHERE changed > ${after}`;
    const keys = await tx<
      {
        key_id: number;
        partner_id: number;
        key_hash: Buffer;
        expires_at: Date | null;
        revoked_at: Date | null;
        changed: bigint;
      }[]
    >`SELECT key_id, partner_id, key_hash, expires_at, revoked_at, changed FROM api_keys WHERE changed > ${after}`;
    const games = await tx<
      {
        game_id: number;
        partner_id: number;
        cell: number;
        par_sheet_id: number | null;
        game_type: 'slot' | 'raffle';
        status: GameStatus;
        blocks_requested: number;
        changed: bigint;
      }[]
    >`SELECT g.game_id, g.partner_id, p.cell, g.par_sheet_id, g.game_type, g.status, g.blocks_requested, g.changed
      FROM games g JOIN partners p USING (partner_id) WHERE g.changed > ${after}`;
    let newest = after;
    for (const row of [...partners, ...keys, ...games]) if (row.changed > newest) newest = row.changed;
    return {
      newest,
      partners: partners.map((row) => ({
        partnerId: row.partner_id,
        slug: row.slug,
        name: row.name,
        environment: row.environment,
        isActive: row.is_active,
        cell: row.cell,
        spinRateLimit: row.spin_rate_limit,
        apiRateLimit: row.api_rate_limit,
        openingBalanceMicros: safe(row.opening_balance_micros),
        balanceMode: row.balance_mode,
        fundingMicros: row.funding_micros === null ? null : safe(row.funding_micros),
        minReadyBlocks: row.min_ready_blocks,
      })),
      keys: keys.map((row) => ({
        keyId: row.key_id,
        partnerId: row.partner_id,
        hash: row.key_hash.toString('latin1'),
        expiresAtMs: row.expires_at === null ? null : row.expires_at.getTime(),
        isRevoked: row.revoked_at !== null,
      })),
      games: games.map((row) => ({
        gameId: row.game_id,
        partnerId: row.partner_id,
        cell: row.cell,
        parSheetId: row.par_sheet_id,
        gameType: row.game_type,
        status: row.status,
        blocksRequested: row.blocks_requested,
      })),
    };
  }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
}

/** The sheets with these numbers. */
export async function sheetsOf(sql: Sql, ids: readonly number[]): Promise<Map<number, ParSheet>> {
  if (ids.length === 0) return new Map();
  const rows = await sql<{ par_sheet_id: number; sheet: ParSheet }[]>`
    SELECT par_sheet_id, sheet FROM par_sheets WHERE par_sheet_id = ANY(${arrayOf(ids)}::int[])`;
  return new Map(rows.map((row) => [row.par_sheet_id, row.sheet]));
}
