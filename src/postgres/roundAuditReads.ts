/** What the audit reads of rounds: all of them with their shoes' seeds and their entries, and what is open now. */
import type { BlackjackRules } from '../domain/games/blackjackRules.js';
import { raw, type Sql, safe, type Transaction } from './client.js';
import { openRounds } from './rounds.js';

/** A table as it was made. */
export interface AuditedTable {
  readonly rules: BlackjackRules;
  readonly wagerMicros: number;
}

/** Fields of the rows of {@link ROUNDS_SELECT}; lists are texts, joined by commas. */
export const ROUNDS = {
  gameId: 0,
  shoeIndex: 1,
  partnerId: 2,
  playerId: 3,
  status: 4,
  moves: 5,
  entryIds: 6,
  payout: 7,
  /** Of the entries in the ledger, in their order. Likewise the next three. */
  wagers: 8,
  credits: 9,
  codes: 10,
  kinds: 11,
  /** Null: no block has the shoe. */
  seed: 12,
} as const;

export const ROUNDS_SELECT = `
  SELECT r.game_id, shoe_index, r.partner_id, player_id, status, array_to_string(moves, ','), array_to_string(entry_ids, ','),
    payout_micros, e.wagers, e.credits, e.codes, e.kinds,
    (SELECT substring(seed FROM (shoe_index - from_index)::int * 32 + 1 FOR 32) FROM blocks b
     WHERE b.game_id = r.game_id AND from_index <= shoe_index AND to_index > shoe_index)
  FROM rounds r CROSS JOIN LATERAL (
    SELECT string_agg(wager_micros::text, ',' ORDER BY entry_id) AS wagers, string_agg(credit_micros::text, ',' ORDER BY entry_id) AS credits,
      string_agg(outcome_code::text, ',' ORDER BY entry_id) AS codes, string_agg(kind::text, ',' ORDER BY entry_id) AS kinds
    FROM ledger l WHERE l.entry_id = ANY(r.entry_ids)) e`;

/** Entries of rounds that no round has, and entries of rounds that the ledger has not so: id, 1 where the ledger has it. */
export const STRAY_ROUND_ENTRIES_SELECT = `
  SELECT coalesce(l.entry_id, r.entry_id), (l.entry_id IS NOT NULL)::int
  FROM (SELECT entry_id, game_id, outcome_index, partner_id, player_id, wager_micros, balance_micros FROM ledger
        WHERE kind IN (6, 7, 8)) AS l
  FULL JOIN (SELECT entry_id, game_id, shoe_index, partner_id, player_id, wager, balance
             FROM rounds, unnest(entry_ids, wagers_micros, balances_micros) AS u(entry_id, wager, balance)) AS r
    ON l.entry_id = r.entry_id AND l.game_id = r.game_id AND l.outcome_index = r.shoe_index AND l.partner_id = r.partner_id
      AND l.player_id = r.player_id AND l.wager_micros = r.wager AND l.balance_micros = r.balance
  WHERE l.entry_id IS NULL OR r.entry_id IS NULL`;

/** By game. */
export async function auditedTables(tx: Transaction): Promise<Map<number, AuditedTable>> {
  const rows = await tx<{ game_id: number; rules: BlackjackRules; wager_micros: bigint }[]>`
    SELECT game_id, rules, wager_micros FROM ${raw('blackjack_tables')}`;
  return new Map(rows.map((row) => [row.game_id, { rules: row.rules, wagerMicros: safe(row.wager_micros) }]));
}

/** What the audit asks of the moment. */
export interface RoundReads {
  openRounds(cell: number): ReturnType<typeof openRounds>;
}

export const openRoundReads = (sql: Sql): RoundReads => ({ openRounds: (cell) => openRounds(sql, cell) });
