/**
 * Reads for the audit from Postgres. Most reads use one snapshot, so that rows, totals and cursors are
 * consistent during concurrent commits. Other reads return the current state. No read writes or locks rows.
 */
import { AUDITED_KINDS } from '../../domain/auditedKinds.js';
import type { BindingTimes } from '../../domain/bindingTimes.js';
import type { EntryRow, LedgerRow } from '../../domain/ledgerColumns.js';
import { openColumn, openNullable } from '../../engine/blocks/blockSeals.store.js';
import { allColumnsSql, ledgerRowOf } from '../../engine/ledger/ledgerRow.store.js';
import { type FormerCells, formerCells } from '../../engine/recovery/partnerMoves.store.js';
import { bindingTimes, boundIds } from '../../engine/requestIds/requestRunReads.store.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { type CopyRow, orGone, readRows } from '../../postgres/copy.js';
import { arrayOf, raw, rowsOf, safe } from '../../postgres/statements.js';
import { BLOCK_COLUMNS, ledgerSql, STRAY_TICKETS, strayRequests } from './auditColumns.js';
import {
  BOUNDARY_PLAYERS,
  type BoundaryFacts,
  boundaryFacts,
  type DroppedPotReads,
  droppedPotReads,
  KEPT_ENTRIES,
} from './boundary.store.js';
import { type CommunalFacts, communalFacts, strayCommunal } from './communalAuditReads.store.js';
import {
  type AuditedGameDay,
  type AuditedRaffle,
  type AuditedTable,
  auditedRaffles,
  auditedTables,
  gameDays,
  roundsSelect,
  strayRoundEntriesSelect,
} from './gameAuditReads.store.js';
import { type LogReads, logReads, unpublishedOf } from './logAuditReads.store.js';

/** Interval, in ms, at which the audit checks that the server of a long statement still responds. */
const LOOK_MS = 5000;

export interface AuditedGame {
  readonly gameId: number;
  readonly partnerId: number;
  readonly cell: number;
  readonly parSheetId: number | null;
}

/** Amounts of a PAR sheet, as the decimal text that was certified. */
export interface SheetTexts {
  /** Denomination in USD. */
  readonly denomination: string;
  /** Pay multipliers, one per combination of the PAR sheet. */
  readonly multipliers: readonly string[];
}

export interface AuditedCell {
  readonly cell: number;
  /** Prefix of the epoch of this cell in Redis: identity of the dataset and epoch number. */
  readonly token: string;
  readonly cursorId: bigint;
  readonly halted: string | null;
  /** Start of a recovery that has not finished; null if no recovery is running. */
  readonly recoveringSince: Date | null;
}

export interface Facts {
  readonly spinIdKey: Buffer;
  readonly cells: number;
  readonly binding: BindingTimes;
  readonly partnerCells: ReadonlyMap<number, number>;
  readonly formerCells: FormerCells;
  readonly sandboxPartners: ReadonlySet<number>;
  readonly games: readonly AuditedGame[];
  readonly sheets: ReadonlyMap<number, SheetTexts>;
  readonly raffles: ReadonlyMap<number, AuditedRaffle>;
  readonly tables: ReadonlyMap<number, AuditedTable>;
  /** Id of the newest committed entry, by cell. */
  readonly cursors: ReadonlyMap<number, bigint>;
  /** Next outcome index that the ledger expects, by game id. */
  readonly progress: ReadonlyMap<number, number>;
  /**
   * Voided ranges, ordered by game and index. `sealedTo` is the index after the last sealed outcome of the
   * range. After a restore, the indices from `sealedTo` to the end of the range were never sealed.
   */
  readonly voids: readonly { gameId: number; fromIndex: number; toIndex: number; sealedTo: number }[];
  /** Ids of rotation notes. A rotation note takes an entry id of its cell but is not a row of the ledger. */
  readonly rotations: readonly bigint[];
  readonly gameDays: readonly AuditedGameDay[];
  /** Daily totals of forced spins. */
  readonly sandboxDays: readonly AuditedGameDay[];
  readonly openingDays: readonly {
    partnerId: number;
    day: string;
    players: bigint;
    openedMicros: bigint;
  }[];
  readonly adjustmentDays: readonly {
    partnerId: number;
    day: string;
    adjustments: bigint;
    amountMicros: bigint;
  }[];
  /** Adjustment intents of operators, by {@link intentKey}. */
  readonly intents: ReadonlyMap<string, { playerId: string; amountMicros: number }>;
  readonly communal: CommunalFacts;
  /** State at the boundary of dropped days, where the kept ledger begins. */
  readonly boundary: BoundaryFacts;
}

export const intentKey = (partnerId: number, requestId: string): string => `${partnerId}:${requestId}`;
/** @param onPause awaited after each network chunk */
type ReadAll = (onRow: (row: CopyRow) => void, onPause?: () => Promise<void>) => Promise<void>;

export interface Snapshot {
  readonly facts: Facts;
  /** All ledger rows by entry id, with the fields of `LEDGER`. */
  readonly ledger: ReadAll;
  /** Players at the boundary of dropped days, with the fields of `BOUNDARY_PLAYER`. */
  readonly boundaryPlayers: ReadAll;
  /** Entries of dropped days that are kept permanently, with the fields of `KEPT`. */
  readonly keptEntries: ReadAll;
  /** Records of communal progressives before the boundary of dropped days. */
  readonly droppedPots: DroppedPotReads<ReadAll>;
  /** All blocks by game and index, with the fields of `BLOCKS`. */
  readonly blocks: ReadAll;
  readonly log: LogReads<ReadAll>;
  /**
   * Entries that do not have exactly two postings with sum zero: id, sum in micro-USD as text, number of
   * postings.
   */
  readonly unbalancedPostings: ReadAll;
  /**
   * Raffle tickets that are not recorded under their requestId, and recorded requestIds without a ticket.
   * Fields as in `STRAY`.
   */
  readonly strayTickets: ReadAll;
  readonly strayRequests: ReadAll;
  /** All rounds, with the fields of ROUNDS in gameAuditReads.store.ts. */
  readonly rounds: ReadAll;
  readonly strayRoundEntries: ReadAll;
  /** Communal records that refer to an entry that the ledger lacks (communalAuditReads.store.ts). */
  readonly strayCommunal: ReadAll;
}

/** Range of a game's sealed outcomes, packed. */
export interface Sealed {
  readonly fromIndex: number;
  readonly outcomes: Buffer;
  /**
   * Present if the outcomes of the block were removed. The property describes the whole block, so that the
   * block can be drawn again from its seed.
   */
  readonly removed?: { readonly fromIndex: number; readonly count: number; readonly seed: Buffer };
}

/** Ledger entry whose kind is decided by rules of the audit, independently of the engine. */
export interface AuditedEntry extends Omit<LedgerRow, 'kind'> {
  readonly isAdjustment: boolean;
  readonly isForced: boolean;
}

export interface BlockRange {
  readonly gameId: number;
  readonly fromIndex: number;
  readonly toIndex: number;
}

export interface AuditReads {
  /** Runs a function with one consistent snapshot of all tables. The snapshot ends with the function. */
  snapshot<T>(run: (snapshot: Snapshot) => Promise<T>): Promise<T>;
  /**
   * Returns at least `count` sealed outcomes of a game from an index on, or fewer if fewer exist. The result
   * is split at the boundaries of blocks.
   */
  sealed(gameId: number, index: number, count: number): Promise<Sealed[]>;
  /** Returns those of the given entries that are committed now. */
  entries(ids: readonly bigint[]): Promise<AuditedEntry[]>;
  /** Returns the current state of a cell. The snapshot is not used. */
  cell(cell: number): Promise<AuditedCell>;
  cursor(cell: number): Promise<bigint>;
  /**
   * Returns the cursor of a cell and the next expected index of each of its games, read at the same moment.
   */
  cellProgress(cell: number): Promise<{ cursorId: bigint; next: Map<number, number> }>;
  /** Returns the blocks of a game that have outcomes at or after an index, oldest first. */
  blocksFrom(gameId: number, index: number): Promise<BlockRange[]>;
  /**
   * Returns the positions in the given list of blocks that no published checkpoint of the public log covers.
   */
  unpublished(blocks: readonly Omit<BlockRange, 'toIndex'>[]): Promise<number[]>;
  /**
   * Returns the outcomes of single blocks in the order of `places`; undefined for a block that is not sealed.
   */
  outcomes(places: readonly { gameId: number; fromIndex: number }[]): Promise<(Buffer | undefined)[]>;
}

/** @param sql needs at least two connections */
export function openAuditReads(sql: Sql): AuditReads {
  return {
    snapshot: (run) => inSnapshot(sql, run),
    async sealed(gameId, index, count) {
      const rows = await sql<
        { block: bigint; size: bigint; seed: Buffer | null; outcomes: Buffer; sealed: string | null }[]
      >`
        SELECT from_index AS block, to_index - from_index AS size, CASE octet_length(outcomes) WHEN 0 THEN seed END AS seed, sealed,
          substring(outcomes FROM greatest(${index} - from_index, 0)::int * 2 + 1 FOR ${count * 2}::int) AS outcomes
        FROM blocks WHERE game_id = ${gameId} AND to_index > ${index} AND from_index < ${index + count}`;
      return rows.map(({ block, size, sealed, ...row }) => {
        const fromIndex = safe(block);
        const seed = openNullable(sealed, 'seed', row.seed);
        const removed = seed === null ? {} : { removed: { fromIndex, count: safe(size), seed } };
        const outcomes = openColumn(sealed, 'outcomes', row.outcomes, Math.max(index - fromIndex, 0) * 2);
        return { fromIndex: Math.max(fromIndex, index), outcomes, ...removed };
      });
    },
    async entries(ids) {
      const rows = await sql<EntryRow[]>`
        SELECT ${raw(allColumnsSql())} FROM ledger WHERE entry_id = ANY(${arrayOf(ids)}::bigint[])`;
      return rows.map(auditedEntry);
    },
    async cell(cell) {
      const [row] = await sql<[AuditedCell]>`
        SELECT cell, (SELECT dataset_id FROM installation) || ':' || epoch AS token, cursor_id, halted,
          (SELECT started_at FROM recoveries r
           WHERE r.cell = c.cell AND r.epoch = c.epoch AND finished_at IS NULL) AS recovering_since
        FROM cells c WHERE cell = ${cell}`;
      return row;
    },
    async cursor(cell) {
      const [row] = await sql<{ cursorId: bigint }[]>`SELECT cursor_id FROM cells WHERE cell = ${cell}`;
      return row!.cursorId;
    },
    async cellProgress(cell) {
      const rows = await sql<{ cursorId: bigint; gameId: number | null; nextIndex: bigint | null }[]>`
        SELECT cursor_id, p.game_id, p.next_index FROM cells c
        LEFT JOIN (game_progress p JOIN games USING (game_id) JOIN partners s USING (partner_id)) ON s.cell = c.cell
        WHERE c.cell = ${cell}`;
      const next = new Map<number, number>();
      for (const row of rows) if (row.gameId !== null) next.set(row.gameId, safe(row.nextIndex!));
      return { cursorId: rows[0]!.cursorId, next };
    },
    unpublished: (blocks) => unpublishedOf(sql, blocks),
    async blocksFrom(gameId, index) {
      const rows = await sql<{ fromIndex: bigint; toIndex: bigint }[]>`
        SELECT from_index, to_index FROM blocks WHERE game_id = ${gameId} AND to_index > ${index} ORDER BY from_index`;
      return rows.map((row) => ({ gameId, fromIndex: safe(row.fromIndex), toIndex: safe(row.toIndex) }));
    },
    async outcomes(places) {
      const placed = places.map(({ gameId, fromIndex }, place) => ({ gameId, fromIndex, place }));
      const rows = await sql<{ place: number; outcomes: Buffer; sealed: string | null }[]>`
        SELECT place, outcomes, sealed FROM ${rowsOf(placed, { gameId: 'int', fromIndex: 'bigint', place: 'int' })}
        JOIN blocks USING (game_id, from_index)`;
      const found: (Buffer | undefined)[] = places.map(() => undefined);
      for (const row of rows) {
        found[row.place] = openColumn(row.sealed, 'outcomes', row.outcomes);
      }
      return found;
    },
  };
}

const auditedEntry = (row: EntryRow): AuditedEntry => ({
  // A number outside the safe integer range must become a finding and must not make the audit fail.
  ...ledgerRowOf(row, Number),
  isAdjustment: row.kind === AUDITED_KINDS.adjustment.code,
  isForced: row.kind === AUDITED_KINDS.forcedSpin.code,
});

async function inSnapshot<T>(sql: Sql, run: (snapshot: Snapshot) => Promise<T>): Promise<T> {
  // A long statement has no time limit, so it would wait for ever if the server hangs. A second connection
  // checks that the server responds.
  let fail: (error: Error) => void = () => {};
  const gone = new Promise<never>((_, reject) => {
    fail = reject;
  });
  gone.catch(() => {});
  const look = setInterval(() => {
    sql`SELECT 1`.catch(fail);
  }, LOOK_MS);
  try {
    return await sql.begin(async (tx) => {
      // The lock on the ledger is taken before the snapshot. Otherwise a day might be dropped in between, and
      // its entries would be missing from only one side of a comparison.
      await tx`LOCK TABLE ledger IN ACCESS SHARE MODE`;
      // Rows must be read in the order of an existing index, because sorting all rows would need as much disk
      // space as the rows themselves.
      await tx`SET LOCAL enable_sort = off`;
      await tx`SET LOCAL enable_hashagg = off`;
      const all =
        (select: string): ReadAll =>
        (onRow, onPause) =>
          readRows(orGone(tx.read(`COPY (${select}) TO STDOUT (FORMAT binary)`), gone), onRow, onPause);
      const known = { ...(await facts(tx)), communal: await communalFacts(tx) };
      const { fromId } = known.boundary;
      await tx.patiently();
      return run({
        facts: known,
        ledger: all(ledgerSql(known.communal.pots.length > 0)),
        boundaryPlayers: all(BOUNDARY_PLAYERS),
        keptEntries: all(KEPT_ENTRIES),
        droppedPots: droppedPotReads(fromId, all),
        strayCommunal: all(strayCommunal(fromId)),
        blocks: all(`SELECT ${BLOCK_COLUMNS} FROM blocks ORDER BY game_id, from_index`),
        log: logReads(all),
        unbalancedPostings: all(
          `SELECT entry_id, sum(amount_micros)::text, count(*) FROM postings
           GROUP BY entry_id HAVING sum(amount_micros) <> 0 OR count(*) <> 2`,
        ),
        strayTickets: all(STRAY_TICKETS),
        strayRequests: all(strayRequests({ ...(await boundIds(tx, known.binding)), keptFromId: fromId })),
        rounds: all(roundsSelect(fromId)),
        strayRoundEntries: all(strayRoundEntriesSelect(fromId)),
      });
    }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
  } finally {
    clearInterval(look);
  }
}

const DAY = raw(`to_char(day, 'YYYY-MM-DD')`);

async function facts(tx: Transaction): Promise<Omit<Facts, 'communal'>> {
  const [installed] = await tx<{ spinIdKey: Buffer; cells: number }[]>`
    SELECT spin_id_key, cells FROM installation`;
  const partners = await tx<{ partnerId: number; cell: number; isSandbox: boolean }[]>`
    SELECT partner_id, cell, environment = 'sandbox' AS is_sandbox FROM partners`;
  const games = await tx<AuditedGame[]>`
    SELECT game_id, partner_id, cell, par_sheet_id FROM games JOIN partners USING (partner_id)`;
  // The database returns the decimal texts as they are stored. A number parsed by JSON.parse would not be the
  // certified text.
  const sheets = await tx<{ parSheetId: number; denomination: string; multipliers: string[] }[]>`
    SELECT par_sheet_id, sheet->>'denominationUsd' AS denomination,
      ARRAY(SELECT c.value->>'payMultiplier'
            FROM json_array_elements(sheet->'combinations') WITH ORDINALITY AS c(value, place) ORDER BY place) AS multipliers
    FROM par_sheets WHERE par_sheet_id IN (SELECT par_sheet_id FROM games)`;
  const cells = await tx<{ cell: number; cursorId: bigint }[]>`SELECT cell, cursor_id FROM cells`;
  const progress = await tx<{ gameId: number; nextIndex: bigint }[]>`
    SELECT game_id, next_index FROM game_progress`;
  const voids = await tx<
    { gameId: number; fromIndex: bigint; toIndex: bigint; sealedTo: bigint; entryId: bigint | null }[]
  >`SELECT game_id, from_index, to_index, coalesce(sealed_to, to_index) AS sealed_to, entry_id FROM voids ORDER BY game_id, from_index`;
  const openingDays = await tx<Facts['openingDays']>`
    SELECT partner_id, ${DAY} AS day, players, opened_micros FROM opening_days`;
  const adjustmentDays = await tx<Facts['adjustmentDays']>`
    SELECT partner_id, ${DAY} AS day, adjustments, amount_micros FROM adjustment_days`;
  const intents = await tx<
    { partnerId: number; requestId: string; playerId: string; amountMicros: bigint }[]
  >`SELECT partner_id, request_id, player_id, amount_micros FROM adjustments`;
  return {
    spinIdKey: installed!.spinIdKey,
    cells: installed!.cells,
    binding: await bindingTimes(tx),
    boundary: await boundaryFacts(tx),
    formerCells: await formerCells(tx),
    partnerCells: new Map(partners.map((row) => [row.partnerId, row.cell])),
    sandboxPartners: new Set(partners.filter((row) => row.isSandbox).map((row) => row.partnerId)),
    games,
    sheets: new Map(sheets.map((row) => [row.parSheetId, row])),
    raffles: await auditedRaffles(tx),
    tables: await auditedTables(tx),
    cursors: new Map(cells.map((row) => [row.cell, row.cursorId])),
    progress: new Map(progress.map((row) => [row.gameId, safe(row.nextIndex)])),
    voids: voids.map((row) => ({
      gameId: row.gameId,
      fromIndex: safe(row.fromIndex),
      toIndex: safe(row.toIndex),
      sealedTo: safe(row.sealedTo),
    })),
    rotations: voids.flatMap(({ entryId: id }) => (id === null ? [] : [id])),
    gameDays: await gameDays(tx, 'game_days'),
    sandboxDays: await gameDays(tx, 'sandbox_days'),
    openingDays,
    adjustmentDays,
    intents: new Map(
      intents.map((row) => [
        intentKey(row.partnerId, row.requestId),
        { playerId: row.playerId, amountMicros: Number(row.amountMicros) },
      ]),
    ),
  };
}
