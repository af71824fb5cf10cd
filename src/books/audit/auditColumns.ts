/** Columns that the audit reads from Postgres, and the position of each field in a row. */
import { AUDITED_KINDS, auditedCodesSql } from '../../domain/auditedKinds.js';
import { allColumnsSql, fieldsOf, LEDGER_FIELDS } from '../../engine/ledger/ledgerRow.store.js';
import type { BoundIds } from '../../engine/requestIds/requestRunReads.store.js';
import { cellSql } from './ids.js';

/**
 * Columns of communal progressives: the event that an entry fired, the share that the entry is, and the share
 * that the entry notified its player of.
 */
const COMMUNAL_COLUMNS = {
  /** Null if the entry fired no event. */
  eventGame: 'e.game_id',
  eventVersion: 'e.version',
  eventProgress: 'e.progress',
  eventTier: 'e.tier_level',
  eventPaid: 'e.paid_micros',
  eventWinners: 'e.winners',
  eventStatus: 'e.status',
  /** Null if the entry is not recorded as a share. */
  shareEvent: 's.event_id',
  shareAmount: 's.amount_micros',
  shareGame: 's.game_id',
  sharePlayer: 's.player_id',
  /** Null if the entry notified its player of no share. */
  toldShare: 't.entry_id',
  toldEvent: 't.event_id',
  toldTrigger: 't.is_trigger::int',
  toldPartner: 't.partner_id',
  toldPlayer: 't.player_id',
} as const;

/** Field positions in the rows of `Snapshot.ledger`. */
export const LEDGER = {
  ...LEDGER_FIELDS,
  /** The communal fields are present only if at least one game has a communal progressive. */
  ...fieldsOf(
    Object.keys(COMMUNAL_COLUMNS) as (keyof typeof COMMUNAL_COLUMNS)[],
    Object.keys(LEDGER_FIELDS).length,
  ),
};

const COMMUNAL_JOINS = `LEFT JOIN communal_events e ON e.event_id = l.entry_id
  LEFT JOIN communal_shares s ON s.entry_id = l.entry_id LEFT JOIN communal_shares t ON t.told_by = l.entry_id`;

/**
 * Query for all rows of the ledger by entry id.
 * @param hasPots whether any game has a communal progressive
 */
export const ledgerSql = (hasPots: boolean): string =>
  hasPots
    ? `SELECT ${allColumnsSql('l')}, ${Object.values(COMMUNAL_COLUMNS).join(', ')}
       FROM ledger l ${COMMUNAL_JOINS} ORDER BY l.entry_id`
    : `SELECT ${allColumnsSql('l')} FROM ledger l ORDER BY l.entry_id`;

/** Field positions in the rows of `Snapshot.blocks`. */
export const BLOCKS = {
  gameId: 0,
  fromIndex: 1,
  toIndex: 2,
  nonce: 3,
  seed: 4,
  commitment: 5,
  outcomes: 6,
  tree: 7,
  exhaustedAt: 8,
  /**
   * Reference to the key that seals the columns nonce, seed and outcomes. `openFields` of blockSeals.store.ts
   * decrypts them.
   */
  sealed: 9,
} as const;

export const BLOCK_COLUMNS =
  'game_id, from_index, to_index, nonce, seed, commitment, outcomes, tree, exhausted_at, sealed';

/**
 * Field positions in the rows of `Snapshot.strayTickets` and `Snapshot.strayRequests`. `ofLedger` is 1 if the
 * ledger has the entry, and 0 if only the requestId is recorded.
 */
export const STRAY = { entryId: 0, gameId: 1, requestId: 2, ofLedger: 3 } as const;

/**
 * Query for faulty request ids in the runs of released ids: ids that still bind and are missing from the
 * runs, ids that the ledger lacks, duplicates, and ids that a look-up can't find. Expired ids of a run are
 * dropped together with the run. The query computes the hash independently, and reads entry ids as
 * src/domain/requestRun.ts writes them.
 */
export const strayRequests = ({ ranges, oldestId, keptFromId }: BoundIds): string => `
  SELECT entry_id, coalesce(game_id, 0), coalesce(request_id, ''), (booked.entry_id IS NOT NULL)::int
  FROM (SELECT entry_id, game_id, request_id, substr(sha256(convert_to(partner_id || ':' || request_id, 'UTF8')), 1, 8) AS hash,
          EXISTS (SELECT 1 FROM (VALUES ${ranges.map(({ cell, fromId, beforeId }) => `(${cell}, ${fromId}, ${beforeId})`).join()}) AS bound (cell, from_id, before_id)
                  WHERE bound.cell = cells.cell AND entry_id >= from_id AND entry_id < before_id) AS binds
        FROM ledger JOIN cells ON cell = ${cellSql('entry_id')}
        WHERE kind IN ${auditedCodesSql(({ binds }) => binds === 'spins')} AND request_id IS NOT NULL AND entry_id BETWEEN ${oldestId} AND handed_over_id) AS booked
  FULL JOIN (SELECT hash, entry_id, count(*) AS times, bool_and(is_found) AS is_found
        FROM (SELECT substr(pairs, i * 16 + 1, 8) AS hash, substr(pairs, i * 16 + 1, 8) >= first_hash AS is_found,
                ('x' || encode(substr(pairs, i * 16 + 9, 8), 'hex'))::bit(64)::bigint AS entry_id
              FROM request_blocks CROSS JOIN generate_series(0, octet_length(pairs) / 16 - 1) AS i) AS pair
        GROUP BY hash, entry_id) AS held USING (hash, entry_id)
  WHERE (booked.entry_id IS NULL AND held.entry_id >= ${keptFromId}) OR (held.entry_id IS NULL AND binds) OR times > 1 OR NOT is_found`;

/**
 * Query for raffle tickets that are not recorded under their requestId, and for recorded requestIds without a
 * ticket.
 */
export const STRAY_TICKETS = `
  SELECT entry_id, game_id, request_id, (sold.entry_id IS NOT NULL)::int
  FROM (SELECT entry_id, game_id, request_id
        FROM (SELECT entry_id, game_id, request_id, kind FROM ledger
              UNION ALL SELECT entry_id, game_id, request_id, kind FROM kept_entries) AS entries JOIN raffles USING (game_id)
        WHERE kind = ${AUDITED_KINDS.spin.code} AND request_id IS NOT NULL) AS sold
  FULL JOIN ticket_requests AS told USING (entry_id, game_id, request_id)
  WHERE sold.entry_id IS NULL OR told.entry_id IS NULL`;
