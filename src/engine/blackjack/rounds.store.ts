/**
 * SQL of blackjack: tables, the seeds of their shoes, and rounds. Each flush writes its rounds in the
 * transaction of their ledger entries.
 */
import { idsIn } from '../../domain/entryId.js';
import { type BlackjackRules, rulesText } from '../../domain/games/blackjackRules.js';
import {
  moveCode,
  moveOfCode,
  type RoundRecord,
  type RoundStatus,
  readStep,
} from '../../domain/games/round.js';
import type { TableTerms } from '../../domain/games/tableTerms.js';
import type { RoundEntryKind } from '../../domain/ledgerEntry.js';
import { microsToUsdText } from '../../domain/money.js';
import type { OpenRounds } from '../../domain/settlement.js';
import { withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { isUniqueViolation } from '../../postgres/postgresErrors.js';
import { arrayOf, raw, safe } from '../../postgres/statements.js';
import { openColumn } from '../blocks/blockSeals.store.js';
import { findGame, type GameRow } from '../catalog/games.store.js';
import { inScope, NEWEST_MOVE, type PartnerScope } from '../cells/cells.store.js';
import { type EntryRange, type FeedPage, feedPageOf } from '../ledger/feedPage.store.js';

export interface RoundEntry {
  readonly kind: RoundEntryKind;
  readonly id: bigint;
  readonly gameId: number;
  readonly shoeIndex: number;
  readonly partnerId: number;
  readonly playerId: string;
  readonly requestId: string | null;
  readonly code: number;
  /** Stake in micro-USD; a negative value is a refund of the stake. */
  readonly wagerMicros: number;
  readonly creditMicros: number;
  readonly balanceMicros: number;
}

/** Changes that the entries of a flush make to an existing round. */
interface Addition {
  game: number;
  shoe: number;
  player: string;
  step: number;
  status: RoundStatus;
  payout: number | null;
  moves: number[];
  ids: string[];
  wagers: number[];
  balances: number[];
}

/**
 * Updates the rounds of these entries, in the transaction that commits the entries.
 * @param entries in the order of their ids
 * @returns faults: one for each round whose next entries do not follow its recorded steps. If there are any
 * faults, nothing may be committed.
 */
export async function bookRounds(tx: Transaction, entries: readonly RoundEntry[]): Promise<string[]> {
  const deals = entries.filter(({ kind }) => kind === 'roundDeal');
  const rows = deals.map((deal) => ({
    game: deal.gameId,
    shoe: deal.shoeIndex,
    partner: deal.partnerId,
    player: deal.playerId,
    request: deal.requestId,
    id: String(deal.id),
    ended: deal.code !== 0,
    wager: deal.wagerMicros,
    payout: deal.code === 0 ? null : deal.creditMicros,
    balance: deal.balanceMicros,
  }));
  const made = await tx`
    INSERT INTO rounds (game_id, shoe_index, partner_id, player_id, request_id, deal_id, status, entry_ids, wagers_micros,
                        balances_micros, payout_micros, expires_at)
    SELECT game, shoe, partner, player, request, id, CASE WHEN ended THEN 'SETTLED' ELSE 'OPEN' END, ARRAY[id], ARRAY[wager],
           ARRAY[balance], payout, to_timestamp((id >> 22) / 1000.0) + make_interval(secs => round_timeout_s)
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS t(game int, shoe bigint, partner int, player text, request text,
      id bigint, ended boolean, wager bigint, payout bigint, balance bigint) JOIN blackjack_tables ON game_id = game
    RETURNING 1`;
  const additions = additionsOf(entries);
  const moved = await tx<{ gameId: number; shoeIndex: bigint }[]>`
    UPDATE rounds r SET status = u.status, payout_micros = u.payout, moves = r.moves || u.moves,
      entry_ids = r.entry_ids || u.ids, wagers_micros = r.wagers_micros || u.wagers,
      balances_micros = r.balances_micros || u.balances
    FROM json_to_recordset(${JSON.stringify(additions)}::json) AS u(game int, shoe bigint, player text, step int, status text,
      payout bigint, moves smallint[], ids bigint[], wagers bigint[], balances bigint[])
    WHERE r.game_id = u.game AND r.shoe_index = u.shoe AND r.player_id = u.player AND r.status = 'OPEN'
      AND cardinality(r.entry_ids) = u.step
    RETURNING r.game_id, r.shoe_index`;
  const done = new Set(moved.map((row) => `${row.gameId}/${row.shoeIndex}`));
  const wrong = additions.filter(({ game, shoe }) => !done.has(`${game}/${shoe}`));
  return [
    ...(made.length === deals.length ? [] : ['a round was dealt at a game that is not a blackjack table']),
    ...wrong.map(
      ({ game, shoe, step }) =>
        `game ${game}: step ${step} is not the next step of the round with shoe ${shoe}`,
    ),
  ];
}

function additionsOf(entries: readonly RoundEntry[]): Addition[] {
  const additions = new Map<string, Addition>();
  for (const entry of entries) {
    if (entry.kind === 'roundDeal') continue;
    const { gameId, shoeIndex, playerId } = entry;
    const { step, move, isEnd } = readStep(entry.code);
    const key = `${gameId}/${shoeIndex}`;
    let addition = additions.get(key);
    if (addition === undefined) {
      addition = {
        game: gameId,
        shoe: shoeIndex,
        player: playerId,
        step,
        status: 'OPEN',
        payout: null,
        moves: [],
        ids: [],
        wagers: [],
        balances: [],
      };
      additions.set(key, addition);
    }
    // If step numbers are missing between the round and the entries, the entries must not be added, so the
    // condition matches no row.
    if (step !== addition.step + addition.ids.length) addition.step = -1;
    if (move !== 'void') addition.moves.push(moveCode(move));
    addition.ids.push(String(entry.id));
    addition.wagers.push(entry.wagerMicros);
    addition.balances.push(entry.balanceMicros);
    if (isEnd) {
      addition.status = move === 'void' ? 'VOIDED' : 'SETTLED';
      addition.payout = entry.creditMicros;
    }
  }
  return [...additions.values()];
}

// Reading ---------------------------------------------------------------------------------------------------

interface Row {
  gameId: number;
  shoeIndex: bigint;
  partnerId: number;
  playerId: string;
  requestId: string | null;
  status: RoundStatus;
  moves: number[];
  /** Decimal strings, because the driver does not parse arrays of bigint. */
  entryIds: string[];
  wagersMicros: string[];
  balancesMicros: string[];
  payoutMicros: bigint | null;
  isToVoid: boolean;
}

const COLUMNS =
  raw(`game_id, shoe_index, partner_id, player_id, request_id, status, moves, entry_ids::text[] AS entry_ids,
  wagers_micros::text[] AS wagers_micros, balances_micros::text[] AS balances_micros, payout_micros,
  rounds.status = 'OPEN' AND expires_at = '-infinity' AS is_to_void`);

const fromRow = (row: Row): RoundRecord => ({
  ...row,
  shoeIndex: safe(row.shoeIndex),
  moves: row.moves.map(moveOfCode),
  entryIds: row.entryIds.map(BigInt),
  wagersMicros: row.wagersMicros.map((text) => safe(BigInt(text))),
  balancesMicros: row.balancesMicros.map((text) => safe(BigInt(text))),
  payoutMicros: row.payoutMicros === null ? undefined : safe(row.payoutMicros),
});

export async function findDeal(sql: Sql, gameId: number, shoeIndex: number): Promise<bigint | undefined> {
  const [row] = await sql<{ dealId: bigint }[]>`
    SELECT deal_id FROM rounds WHERE game_id = ${gameId} AND shoe_index = ${shoeIndex}`;
  return row?.dealId;
}

/** Reads expired open rounds of these cells, oldest first. */
export async function expiredRounds(
  sql: Sql,
  cells: readonly number[],
  limit: number,
): Promise<(RoundRecord & { readonly cell: number; readonly newestMove: number })[]> {
  const rows = await sql<(Row & { cell: number; newestMove: number })[]>`
    SELECT ${COLUMNS}, cell, ${NEWEST_MOVE} FROM rounds JOIN partners USING (partner_id)
    WHERE rounds.status = 'OPEN' AND expires_at <= now() AND cell = ANY(${arrayOf(cells)}::int[])
    ORDER BY expires_at LIMIT ${limit}`;
  return rows.map((row) => ({ ...fromRow(row), cell: row.cell, newestMove: row.newestMove }));
}

/** Reads the open rounds of a cell. A rebuild of Redis writes these rounds. */
export async function openRounds(sql: Sql | Transaction, scope: PartnerScope): Promise<RoundRecord[]> {
  const rows = await sql<Row[]>`
    SELECT ${COLUMNS} FROM rounds JOIN partners USING (partner_id) WHERE rounds.status = 'OPEN' AND ${inScope(scope)}`;
  return rows.map(fromRow);
}

/** Maximum duration of a round, expressed as a difference of entry ids. */
const ROUND_LONGEST = idsIn(31 * 86_400_000);

/**
 * Returns how many rounds of a partner were open just before an entry id, and the stakes of these rounds up
 * to that id.
 */
export async function openRoundsAt(
  sql: Sql | Transaction,
  partnerId: number,
  before: bigint,
): Promise<OpenRounds> {
  const [row] = await sql<[OpenRounds]>`
    SELECT count(*) AS rounds, coalesce(sum(
      (SELECT sum(wager) FROM unnest(entry_ids, wagers_micros) AS u(id, wager) WHERE id < ${before})), 0) AS wagered_micros
    FROM rounds WHERE partner_id = ${partnerId} AND deal_id < ${before}
      AND (status = 'OPEN' OR deal_id >= ${before - ROUND_LONGEST} AND entry_ids[cardinality(entry_ids)] >= ${before})`;
  return row;
}

/** Counts open rounds by game, for at most `gamesMax` games with the highest counts. */
export async function openRoundCounts(
  sql: Sql,
  cells: readonly number[],
  gamesMax: number,
): Promise<{ gameId: number; open: number }[]> {
  return sql<{ gameId: number; open: number }[]>`
    SELECT game_id, count(*)::int AS open FROM rounds JOIN partners USING (partner_id)
    WHERE rounds.status = 'OPEN' AND cell = ANY(${arrayOf(cells)}::int[])
    GROUP BY game_id ORDER BY open DESC, game_id LIMIT ${gamesMax}`;
}

/**
 * SQL for the columns of blackjack_tables in a joined row. The columns are null for games that are no table.
 */
export interface TableColumns {
  wagerMicros: bigint | null;
  rules: BlackjackRules | null;
  roundTimeoutS: number | null;
}

export class Rounds {
  constructor(private readonly sql: Sql) {}

  async ofDeals(dealIds: readonly bigint[]): Promise<ReadonlyMap<bigint, RoundRecord>> {
    if (dealIds.length === 0) return new Map();
    const rows = await this.sql<Row[]>`
      SELECT ${COLUMNS} FROM rounds WHERE deal_id = ANY(${arrayOf(dealIds)}::bigint[])`;
    return new Map(rows.map(fromRow).map((round) => [round.entryIds[0]!, round]));
  }

  async find(dealId: bigint): Promise<RoundRecord | undefined> {
    const [row] = await this.sql<Row[]>`SELECT ${COLUMNS} FROM rounds WHERE deal_id = ${dealId}`;
    return row === undefined ? undefined : fromRow(row);
  }

  /**
   * Reads a page of a partner's rounds, newest first, with their total number.
   * @param only filters; a filter that is absent matches all rounds
   */
  async page(
    partnerId: number,
    only: { playerId?: string | undefined; status?: string | undefined },
    page: number,
    limit: number,
  ): Promise<{ rounds: RoundRecord[]; total: number }> {
    const { playerId = null, status = null } = only;
    const rows = await this.sql<Row[]>`
      SELECT ${COLUMNS} FROM rounds
      WHERE partner_id = ${partnerId} AND (${playerId}::text IS NULL OR player_id = ${playerId})
        AND (${status}::text IS NULL OR status = ${status})
      ORDER BY deal_id DESC LIMIT ${limit} OFFSET ${(page - 1) * limit}`;
    const [count] = await this.sql<{ total: bigint }[]>`
      SELECT count(*) AS total FROM rounds
      WHERE partner_id = ${partnerId} AND (${playerId}::text IS NULL OR player_id = ${playerId})
        AND (${status}::text IS NULL OR status = ${status})`;
    return { rounds: rows.map(fromRow), total: safe(count!.total) };
  }

  /**
   * Reads one page of a partner's rounds in the order of their deals, oldest first.
   *
   * @param limit maximum number of rounds, at least 1
   */
  byTime(range: EntryRange, limit: number): Promise<FeedPage<RoundRecord>> {
    const { partnerId } = range;
    const [gameId, playerId] = [range.gameId ?? null, range.playerId ?? null];
    return feedPageOf(this.sql, 'rounds.deal_id', range, limit, {
      rowsOf: async (fromId, toId, count) => {
        const rows = await this.sql<Row[]>`
          SELECT ${COLUMNS} FROM rounds
          WHERE partner_id = ${partnerId} AND deal_id >= ${fromId} AND deal_id < ${toId}
            AND (${gameId}::int IS NULL OR game_id = ${gameId}) AND (${playerId}::text IS NULL OR player_id = ${playerId})
          ORDER BY deal_id LIMIT ${count}`;
        return rows.map(fromRow);
      },
      idOf: ({ entryIds }) => entryIds[0]!,
    });
  }

  /** The worker of its cell makes its first shoes. */
  async createTable(
    actor: string,
    table: { partnerId: number; configName: string; displayName: string; terms: TableTerms },
  ): Promise<GameRow | 'name-taken'> {
    const { partnerId, configName, displayName, terms } = table;
    try {
      return await withChange(this.sql, async (tx, changed) => {
        const [row] = await tx<{ gameId: number }[]>`
          INSERT INTO games (partner_id, game_type, config_name, display_name, changed)
          VALUES (${partnerId}, 'blackjack', ${configName}, ${displayName}, ${changed}) RETURNING game_id`;
        const gameId = row!.gameId;
        const { wagerMicros, rules, roundTimeoutSeconds } = terms;
        await tx`
          INSERT INTO blackjack_tables (game_id, wager_micros, rules, round_timeout_s)
          VALUES (${gameId}, ${wagerMicros}, ${rulesText(rules)}, ${roundTimeoutSeconds})`;
        const wagerUsd = Number(microsToUsdText(wagerMicros));
        const after = {
          partnerId,
          configName,
          displayName,
          wagerUsd,
          rules,
          roundTimeoutS: roundTimeoutSeconds,
        };
        await writeAuditEntry(tx, { actor, action: 'blackjack.create', subject: `game:${gameId}`, after });
        return (await findGame(tx, gameId))!;
      });
    } catch (error) {
      if (isUniqueViolation(error)) return 'name-taken';
      throw error;
    }
  }

  /** Undefined if the game is no blackjack table. */
  async terms(gameId: number): Promise<TableTerms | undefined> {
    const [row] = await this.sql<TableColumns[]>`
      SELECT wager_micros, rules, round_timeout_s FROM blackjack_tables WHERE game_id = ${gameId}`;
    return row && (termsOf(row) ?? undefined);
  }

  /**
   * Reads the block that has a shoe: its range, the seeds of its shoes (32 bytes each) and its commitment.
   * Undefined if no block has the shoe.
   */
  async shoeSeeds(
    gameId: number,
    shoeIndex: number,
  ): Promise<{ fromIndex: number; toIndex: number; seeds: Buffer; commitment: Buffer } | undefined> {
    const [row] = await this.sql<
      { fromIndex: bigint; toIndex: bigint; seed: Buffer; commitment: Buffer; sealed: string | null }[]
    >`
      SELECT from_index, to_index, seed, commitment, sealed FROM blocks WHERE game_id = ${gameId} AND from_index <= ${shoeIndex}
      ORDER BY from_index DESC LIMIT 1`;
    if (row === undefined || row.toIndex <= BigInt(shoeIndex)) return undefined;
    return {
      fromIndex: safe(row.fromIndex),
      toIndex: safe(row.toIndex),
      seeds: openColumn(row.sealed, 'seed', row.seed),
      commitment: row.commitment,
    };
  }
}

export const termsOf = (row: TableColumns): TableTerms | null =>
  row.wagerMicros === null || row.rules === null || row.roundTimeoutS === null
    ? null
    : {
        wagerMicros: safe(row.wagerMicros),
        rules: row.rules,
        roundTimeoutSeconds: row.roundTimeoutS,
      };
