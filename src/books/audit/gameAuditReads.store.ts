/**
 * Reads raffles (prize tables, refunds of voided raffles) and blackjack rounds (shoes, entries, open rounds)
 * for the audit.
 */

import { auditedCodesSql } from '../../domain/auditedKinds.js';
import type { BlackjackRules } from '../../domain/games/blackjackRules.js';
import { openRounds } from '../../engine/blackjack/rounds.store.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';

/** Prize table of a raffle, with amounts as the decimal text that was certified. */
export interface AuditedRaffle {
  /** Text of the whole prize table as it was sealed. */
  readonly text: string;
  readonly poolSize: number;
  /** Ticket price in USD. */
  readonly ticketPrice: string;
  /** Value of each prize in USD. */
  readonly values: readonly string[];
  /** Number of tickets that win each prize. */
  readonly counts: readonly number[];
  readonly isClosed: boolean;
  /** Refunds of a voided raffle; undefined if the raffle is not voided. */
  readonly refunds: AuditedRefunds | undefined;
}

export interface AuditedRefunds {
  /** True if every committed ticket is recorded as refunded or failed. */
  readonly isDone: boolean;
  /** Watermark of the refunds: every ticket up to this entry is recorded as refunded or failed. */
  readonly refundedTo: bigint;
  /** Ids of the ledger entries of tickets whose refund failed. */
  readonly failures: ReadonlySet<bigint>;
}

const prizes = (member: string): unknown =>
  raw(`ARRAY(SELECT p.value->>'${member}'
             FROM json_array_elements(prize_table->'prizes') WITH ORDINALITY AS p(value, place) ORDER BY place)`);

export async function auditedRaffles(tx: Transaction): Promise<Map<number, AuditedRaffle>> {
  const rows = await tx<
    (Omit<AuditedRaffle, 'counts' | 'refunds'> &
      Omit<AuditedRefunds, 'failures'> & { gameId: number; counts: string[]; isVoided: boolean })[]
  >`
    SELECT game_id, prize_table::text AS text, pool_size, prize_table->>'ticketPriceUsd' AS ticket_price,
      ${prizes('valueUsd')} AS values, ${prizes('count')} AS counts, closed_at IS NOT NULL AS is_closed,
      voided_at IS NOT NULL AS is_voided, refunds_done_at IS NOT NULL AS is_done, refunded_to FROM raffles`;
  const failed = await tx<
    { gameId: number; entryId: bigint }[]
  >`SELECT game_id, entry_id FROM refund_failures`;
  const failures = new Map<number, Set<bigint>>();
  for (const row of failed) {
    const ofGame = failures.get(row.gameId);
    if (ofGame === undefined) failures.set(row.gameId, new Set([row.entryId]));
    else ofGame.add(row.entryId);
  }
  return new Map(
    rows.map((row) => [
      row.gameId,
      {
        ...row,
        counts: row.counts.map(Number),
        refunds: row.isVoided
          ? {
              isDone: row.isDone,
              refundedTo: row.refundedTo,
              failures: failures.get(row.gameId) ?? new Set<bigint>(),
            }
          : undefined,
      },
    ]),
  );
}

export interface AuditedTable {
  readonly rules: BlackjackRules;
  readonly wagerMicros: number;
}

/** Field positions in the rows of {@link roundsSelect}. Lists are comma-separated texts. */
export const ROUNDS = {
  gameId: 0,
  shoeIndex: 1,
  partnerId: 2,
  playerId: 3,
  status: 4,
  moves: 5,
  entryIds: 6,
  payout: 7,
  /**
   * Wagers of the round's ledger entries, in order. The lists of credits, codes and kinds have the same
   * entries in the same order.
   */
  wagers: 8,
  credits: 9,
  codes: 10,
  kinds: 11,
  /** Sealed seeds of the block with the round's shoe. Null if no block has the shoe. */
  seed: 12,
  /**
   * Reference to the key that seals the seeds of the shoe's block, and the offset of the shoe's seed in that
   * column.
   */
  sealed: 13,
  seedFrom: 14,
} as const;

/**
 * @param fromId first entry id of the kept ledger; rounds dealt earlier have dropped entries and are skipped
 */
export const roundsSelect = (fromId: bigint): string => `
  SELECT r.game_id, shoe_index, r.partner_id, player_id, status, array_to_string(moves, ','), array_to_string(entry_ids, ','),
    payout_micros, e.wagers, e.credits, e.codes, e.kinds,
    b.seed, b.sealed, b.seed_from
  FROM rounds r LEFT JOIN LATERAL (
    SELECT substring(seed FROM (shoe_index - from_index)::int * 32 + 1 FOR 32) AS seed, sealed, (shoe_index - from_index)::int * 32 AS seed_from
    FROM blocks b WHERE b.game_id = r.game_id AND from_index <= shoe_index AND to_index > shoe_index) b ON true
  CROSS JOIN LATERAL (
    SELECT string_agg(wager_micros::text, ',' ORDER BY entry_id) AS wagers, string_agg(credit_micros::text, ',' ORDER BY entry_id) AS credits,
      string_agg(outcome_code::text, ',' ORDER BY entry_id) AS codes, string_agg(kind::text, ',' ORDER BY entry_id) AS kinds
    FROM ledger l WHERE l.entry_id = ANY(r.entry_ids)) e WHERE deal_id >= ${fromId}`;

/**
 * Query for two faults: the ledger has an entry of a round that no round lists; or a round lists an entry
 * that the ledger does not have, or has with other values. Columns: entry id, and 1 if the ledger has the
 * entry.
 */
export const strayRoundEntriesSelect = (fromId: bigint): string => `
  SELECT coalesce(l.entry_id, r.entry_id), (l.entry_id IS NOT NULL)::int
  FROM (SELECT entry_id, game_id, outcome_index, partner_id, player_id, wager_micros, balance_micros FROM ledger
        WHERE kind IN ${auditedCodesSql(({ isOfRound }) => isOfRound)}) AS l
  FULL JOIN (SELECT entry_id, game_id, shoe_index, partner_id, player_id, wager, balance
             FROM rounds, unnest(entry_ids, wagers_micros, balances_micros) AS u(entry_id, wager, balance)
             WHERE entry_id >= ${fromId}) AS r
    ON l.entry_id = r.entry_id AND l.game_id = r.game_id AND l.outcome_index = r.shoe_index AND l.partner_id = r.partner_id
      AND l.player_id = r.player_id AND l.wager_micros = r.wager AND l.balance_micros = r.balance
  WHERE l.entry_id IS NULL OR r.entry_id IS NULL`;

export async function auditedTables(tx: Transaction): Promise<Map<number, AuditedTable>> {
  const rows = await tx<{ gameId: number; rules: BlackjackRules; wagerMicros: bigint }[]>`
    SELECT game_id, rules, wager_micros FROM ${raw('blackjack_tables')}`;
  return new Map(rows.map((row) => [row.gameId, { rules: row.rules, wagerMicros: safe(row.wagerMicros) }]));
}

/** Reads of rounds in their current state. The snapshot is not used. */
export interface RoundReads {
  openRounds(cell: number): ReturnType<typeof openRounds>;
}

export const openRoundReads = (sql: Sql): RoundReads => ({ openRounds: (cell) => openRounds(sql, cell) });

export interface AuditedGameDay {
  readonly gameId: number;
  readonly day: string;
  readonly partnerId: number;
  readonly spins: bigint;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
}

const DAY = raw(`to_char(day, 'YYYY-MM-DD')`);

export async function gameDays(
  tx: Transaction,
  table: 'game_days' | 'sandbox_days',
): Promise<AuditedGameDay[]> {
  return tx<
    AuditedGameDay[]
  >`SELECT game_id, ${DAY} AS day, partner_id, spins, wagered_micros, paid_micros FROM ${raw(table)}`;
}
