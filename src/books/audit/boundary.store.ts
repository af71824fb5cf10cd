/**
 * State at the boundary, where the oldest kept day of the ledger begins: balances, counters and communal
 * progressives. A drop of a day writes it (ledgerDrop.store.ts), and the audit continues from it. Rules,
 * fundings, events and shares of communal progressives are kept permanently. Counters, budgets and recent
 * players derive from spins that are dropped, so they are stored.
 */
import { AUDITED_KINDS } from '../../domain/auditedKinds.js';
import { RECENCY_MAX } from '../../domain/communal.js';
import { membersReadBy } from '../../domain/ledgerColumns.js';
import type { EntryTotal, Manifest } from '../../domain/ledgerDay.js';
import { entryCodesSql } from '../../domain/ledgerEntry.js';
import { keepNewestPlayers } from '../../engine/communal/communalRecovery.store.js';
import { columnsSql, fieldsOf } from '../../engine/ledger/ledgerRow.store.js';
import type { Transaction } from '../../postgres/connection.js';
import { raw, safe } from '../../postgres/statements.js';
import { idsOfDay } from '../archive/ledgerDays.store.js';
import { daySql } from './ids.js';

export interface BoundaryFacts {
  /** First entry id of the kept ledger; 0 if no day was dropped. */
  readonly fromId: bigint;
  /** Index after the last outcome dealt on dropped days, by game id. */
  readonly games: ReadonlyMap<number, number>;
  /** Newest dropped entry of each cell. */
  readonly cells: ReadonlyMap<number, bigint>;
  readonly pots: readonly BoundaryPot[];
  /** Dropped days with the totals of their manifests, oldest first. */
  readonly days: readonly { readonly day: string; readonly totals: readonly EntryTotal[] }[];
}

/** Field positions in the rows of {@link BOUNDARY_PLAYERS}. */
export const BOUNDARY_PLAYER = {
  partnerId: 0,
  playerId: 1,
  entryId: 2,
  entryNumber: 3,
  outcomeCode: 4,
  balance: 5,
  firstId: 6,
} as const;
export const BOUNDARY_PLAYERS = `
  SELECT partner_id, player_id, entry_id, entry_number, outcome_code, balance_micros, first_id FROM boundary_players`;

/** Field positions in the rows of {@link KEPT_ENTRIES}. */
export const KEPT = fieldsOf(membersReadBy('keptAudit'));
/** Query for tickets and adjustments of dropped days. */
export const KEPT_ENTRIES = `
  SELECT ${columnsSql(membersReadBy('keptAudit'))} FROM kept_entries ORDER BY entry_id`;

export async function boundaryFacts(tx: Transaction): Promise<BoundaryFacts> {
  const days = await tx<{ day: string; manifest: string }[]>`
    SELECT day::text AS day, manifest FROM ledger_days WHERE dropped_at IS NOT NULL ORDER BY day`;
  const games = await tx<
    { gameId: number; nextIndex: bigint }[]
  >`SELECT game_id, next_index FROM boundary_games`;
  const cells = await tx<{ cell: number; entryId: bigint }[]>`SELECT cell, entry_id FROM boundary_cells`;
  const last = days.at(-1);
  const fromId = last === undefined ? 0n : idsOfDay(last.day).to;
  return {
    fromId,
    pots: await boundaryPots(tx, fromId),
    games: new Map(games.map((row) => [row.gameId, safe(row.nextIndex)])),
    cells: new Map(cells.map((row) => [row.cell, row.entryId])),
    days: days.map(({ day, manifest }) => ({ day, totals: (JSON.parse(manifest) as Manifest).totals })),
  };
}

const SPIN = raw(entryCodesSql(({ kind }) => kind === 'spin'));
const SHARE = raw(entryCodesSql(({ kind }) => kind === 'communalShare'));

/**
 * Moves the stored state of every pot to the end of a day, in the transaction that drops the day.
 * @param partition ledger partition with the entries of the day
 * @param fromId first entry id that is kept before the drop; 0 if nothing was dropped before
 * @param toId first entry id that is kept after the drop
 */
export async function movePots(
  tx: Transaction,
  partition: unknown,
  { fromId, toId }: { readonly fromId: bigint; readonly toId: bigint },
): Promise<void> {
  await tx`
    INSERT INTO boundary_pots AS t (game_id, version, progress, budget_micros, recency_from)
    WITH r AS MATERIALIZED (
      SELECT game_id, version, in_force_from, resets_progress, (rules->>'enabled')::boolean AS is_enabled,
        lead(in_force_from) OVER (PARTITION BY game_id ORDER BY in_force_from, version) AS until_id
      FROM communal_rules WHERE in_force_from < ${toId}
    ), resets AS MATERIALIZED (
      SELECT r.game_id, max(r.in_force_from) AS reset_id FROM r LEFT JOIN boundary_pots b USING (game_id)
      WHERE r.resets_progress AND r.version > coalesce(b.version, 0) GROUP BY r.game_id
    ), counted AS (
      SELECT l.game_id, count(*) AS spins
      FROM ${partition} l JOIN r ON r.game_id = l.game_id AND r.is_enabled AND coalesce(r.until_id, ${toId}) >= ${fromId}
          AND l.entry_id > r.in_force_from AND l.entry_id <= coalesce(r.until_id, ${toId})
        LEFT JOIN resets ON resets.game_id = l.game_id
      WHERE l.kind IN ${SPIN} AND l.entry_id > coalesce(reset_id, 0)
      GROUP BY l.game_id
    ), paid AS (
      SELECT game_id, sum(credit_micros) AS micros FROM ${partition} WHERE kind IN ${SHARE} GROUP BY game_id
    ), funded AS (
      SELECT game_id, sum(amount_micros) AS micros FROM communal_fundings
      WHERE note_id >= ${fromId} AND note_id < ${toId} GROUP BY game_id
    )
    SELECT game_id, coalesce((SELECT version FROM r WHERE r.game_id = g.game_id AND until_id IS NULL), 0),
      CASE WHEN reset_id IS NULL THEN coalesce(b.progress, 0) ELSE 0 END + coalesce(spins, 0),
      coalesce(b.budget_micros, 0) + coalesce(funded.micros, 0) - coalesce(paid.micros, 0),
      (SELECT min(in_force_from) FROM r WHERE r.game_id = g.game_id AND is_enabled)
    FROM (SELECT game_id FROM r UNION SELECT game_id FROM funded UNION SELECT game_id FROM boundary_pots) g
      LEFT JOIN boundary_pots b USING (game_id) LEFT JOIN resets USING (game_id) LEFT JOIN counted USING (game_id)
      LEFT JOIN paid USING (game_id) LEFT JOIN funded USING (game_id)
    ON CONFLICT (game_id) DO UPDATE SET version = excluded.version, progress = excluded.progress,
      budget_micros = excluded.budget_micros, recency_from = excluded.recency_from`;
  await tx`
    INSERT INTO boundary_recency AS t (game_id, player_id, spin_id)
    SELECT game_id, player_id, spin_id FROM (
      SELECT game_id, player_id, max(entry_id) AS spin_id,
        row_number() OVER (PARTITION BY game_id ORDER BY max(entry_id) DESC) AS place
      FROM ${partition} JOIN boundary_pots USING (game_id)
      WHERE kind IN ${SPIN} AND entry_id > recency_from GROUP BY game_id, player_id) AS n
    WHERE place <= ${RECENCY_MAX}
    ON CONFLICT (game_id, player_id) DO UPDATE SET spin_id = excluded.spin_id`;
  await keepNewestPlayers(tx, 'boundary_recency');
}

export interface BoundaryPot {
  readonly gameId: number;
  /** Version of the rules in force; 0 if none. */
  readonly version: number;
  readonly progress: bigint;
  readonly budgetMicros: bigint;
  readonly remembersPlayers: boolean;
  /** Newest spin of each recent player, oldest spin first. */
  readonly recent: readonly { readonly playerId: string; readonly spinId: bigint }[];
  /**
   * Shares that the ledger still has, although the entry of their event is in a dropped day. They are in the
   * order of the ledger.
   */
  readonly due: readonly {
    readonly eventId: bigint;
    readonly playerId: string;
    readonly micros: bigint;
    readonly isTrigger: boolean;
  }[];
}

/**
 * Reads the pots at the boundary of dropped days.
 * @param fromId first entry id of the kept ledger
 */
async function boundaryPots(tx: Transaction, fromId: bigint): Promise<BoundaryPot[]> {
  const pots = await tx<Omit<BoundaryPot, 'recent' | 'due'>[]>`
    SELECT game_id, version, progress, budget_micros, recency_from IS NOT NULL AS remembers_players FROM boundary_pots`;
  const recent = await tx<{ gameId: number; playerId: string; spinId: bigint }[]>`
    SELECT game_id, player_id, spin_id FROM boundary_recency ORDER BY spin_id`;
  const due = await tx<(BoundaryPot['due'][number] & { gameId: number })[]>`
    SELECT game_id, event_id, player_id, amount_micros AS micros, is_trigger FROM communal_shares
    WHERE entry_id >= ${fromId} AND event_id < ${fromId} ORDER BY entry_id`;
  return pots.map((pot) => ({
    ...pot,
    recent: recent.filter((each) => each.gameId === pot.gameId),
    due: due.filter((each) => each.gameId === pot.gameId),
  }));
}

/** Reads of the records of communal progressives before the boundary of dropped days. */
export interface DroppedPotReads<Read> {
  /** Players who got shares of events that other players fired; fields as in {@link DROPPED_SHARES}. */
  readonly shares: Read;
  /** Events before the boundary of dropped days; fields as in {@link DROPPED_EVENTS}. */
  readonly events: Read;
  /** Shares by game and day; fields as in {@link DROPPED_DAYS}. */
  readonly days: Read;
}

/** @param fromId first entry id of the kept ledger */
export const droppedPotReads = <Read>(
  fromId: bigint,
  read: (select: string) => Read,
): DroppedPotReads<Read> => ({
  shares: read(sharesSelect(fromId)),
  events: read(eventsSelect(fromId)),
  days: read(daysSelect(fromId)),
});

/**
 * Field positions of a player's row: the number of shares whose notice was pending at the boundary of dropped
 * days, and the newest share already notified.
 */
export const DROPPED_SHARES = { partnerId: 0, playerId: 1, waiting: 2, notifiedTo: 3 } as const;
const sharesSelect = (fromId: bigint): string => `
  SELECT partner_id, player_id, count(*) FILTER (WHERE told_by IS NULL OR told_by >= ${fromId}),
    coalesce(max(entry_id) FILTER (WHERE told_by < ${fromId}), 0)
  FROM communal_shares WHERE entry_id < ${fromId} AND NOT is_trigger GROUP BY partner_id, player_id`;

/** Field positions of the row of an event and the sum of its shares. */
export const DROPPED_EVENTS = {
  eventId: 0,
  gameId: 1,
  version: 2,
  progress: 3,
  tier: 4,
  paid: 5,
  winners: 6,
  status: 7,
  shares: 8,
  shared: 9,
} as const;
const eventsSelect = (fromId: bigint): string => `
  SELECT event_id, game_id, version, progress, tier_level, paid_micros, winners, status, coalesce(shares, 0), coalesce(shared, 0)
  FROM communal_events LEFT JOIN (
    SELECT event_id, count(*) AS shares, sum(amount_micros)::bigint AS shared FROM communal_shares
    WHERE event_id < ${fromId} GROUP BY event_id) AS s USING (event_id)
  WHERE event_id < ${fromId}`;

/**
 * Field positions of the row of a game's pot on a dropped day: its shares by the archive and by their
 * records, null where there are none.
 */
export const DROPPED_DAYS = {
  gameId: 0,
  day: 1,
  archived: 2,
  archivedMicros: 3,
  booked: 4,
  bookedMicros: 5,
} as const;
const daysSelect = (fromId: bigint): string => `
  SELECT game_id, day, archived, archived_micros, booked, booked_micros
  FROM (SELECT day::text AS day, place, (total->>'gameId')::int AS game_id, (total->>'entries')::bigint AS archived,
          (total->>'creditedMicros')::bigint AS archived_micros
        FROM ledger_days CROSS JOIN json_array_elements(manifest::json->'totals') WITH ORDINALITY AS t (total, place)
        WHERE dropped_at IS NOT NULL AND (total->>'kind')::int = ${AUDITED_KINDS.communalShare.code}) AS archives
  FULL JOIN (SELECT game_id, ${daySql('entry_id')} AS day, count(*) AS booked, sum(amount_micros)::bigint AS booked_micros
        FROM communal_shares WHERE entry_id < ${fromId} GROUP BY 1, 2) AS shares USING (game_id, day)
  ORDER BY archived IS NULL, CASE WHEN archived IS NULL THEN '' ELSE day END, place, game_id, day`;
