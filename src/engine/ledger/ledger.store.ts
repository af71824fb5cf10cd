/**
 * SQL of the ledger. Entries are written by COPY in the same transaction as the cursors of the cells, and
 * read back by entry id.
 *
 * Each entry of a player has the id of the player's previous entry. Openings and spins of a player are
 * numbered 1, 2, 3, …; an adjustment has the number of the previous entry. Only each 64th entry of a player
 * is indexed by player: indexing all of them would write to a different page of the index for each spin. A
 * page of history starts at such an entry (spinHistory.store.ts). The feed's index does hold every spin, but
 * a partner's new spins all go to the same place in it.
 */
import type { CommittedAdjustment, ReasonedAdjustment } from '../../domain/adjustment.js';
import type { GameType } from '../../domain/games/kindOfGame.js';
import { entryCodesSql, isShownAsSpin } from '../../domain/ledgerEntry.js';
import type { NewEvent } from '../../domain/webhook.js';
import { nextChange } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { lockingWithin } from '../../postgres/limits.js';
import { recordEvents } from '../../postgres/partnerEvents.js';
import { arrayOf, raw, rowsOf, together } from '../../postgres/statements.js';
import { bookRounds, type RoundEntry } from '../blackjack/rounds.store.js';
import { type AdjustmentDay, addAdjustmentDays, noteAdjustments } from '../cells/adjustments.store.js';
import { type CursorMove, moveCursors } from '../cells/cells.store.js';
import { bookCommunal, type CommunalFlush } from '../communal/communalFlush.store.js';
import { closeRaffles, noteTickets, type Ticket } from '../raffles/raffles.store.js';
import { addVoids } from '../recovery/positions.store.js';
import { COPY_LEDGER } from './ledgerRow.store.js';
import { noteLargeWins } from './significantEvents.store.js';

export interface FlushedGameDay {
  readonly gameId: number;
  readonly partnerId: number;
  readonly day: string;
  readonly spins: number;
  readonly wageredMicros: bigint;
  readonly paidMicros: bigint;
}

/** Data that a flush commits for one cell. */
export interface CellFlush {
  readonly cursor: CursorMove;
  /** Rows in the binary format of COPY, made by a CopyWriter (ledgerRow.store.ts). */
  readonly rows: Buffer;
  readonly totals: FlushTotals;
  readonly ticketsOf: (raffles: ReadonlySet<number>) => readonly Ticket[];
  readonly adjustments: readonly CommittedAdjustment[];
  readonly events: readonly NewEvent[];
  /** Returns the event of one of these adjustments. Its reason is read in the transaction of the flush. */
  readonly adjustmentEvent: (adjustment: ReasonedAdjustment) => NewEvent;
  readonly communal: CommunalFlush | undefined;
}

/** Totals that a flush adds. In the double-entry books they are the counterpart of the players' entries. */
export interface FlushTotals {
  games: FlushedGameDay[];
  /** Totals of forced spins, which are excluded from the totals of their games. */
  sandbox: FlushedGameDay[];
  openings: { partnerId: number; day: string; players: number; openedMicros: bigint }[];
  adjustments: AdjustmentDay[];
  /**
   * Progress of each game: the first index of this flush, the index after its last one, and the number of
   * indices of this range that were voided instead of dealt.
   */
  progress: { gameId: number; fromIndex: number; toIndex: number; voided: number }[];
  /** Ranges of voided indices in their order; `toIndex` is exclusive. */
  rotations: readonly { entryId: bigint; gameId: number; fromIndex: number; toIndex: number }[];
  rounds: readonly RoundEntry[];
}

/**
 * Thrown when the ledger disagrees with the counter of a game or the record of a round: an outcome or a step
 * was skipped or occurs twice. Nothing was written.
 */
export class ProgressError extends Error {}

export type FlushStep =
  | 'flush.cursor-moved'
  | 'flush.rows-copied'
  | 'flush.communal-booked'
  | 'flush.totals-added';

/**
 * Commits the entries, totals, cursors and events of some cells in one transaction.
 * @param sql pipelined connection: the statements that nearly every flush needs take one round trip in
 * addition to BEGIN and COMMIT
 * @returns the number of webhook deliveries recorded
 * @throws FencedError where a cell has another owner; ProgressError; PotError; a unique violation where an
 * entry exists already. On an error nothing is written for any cell.
 */
export async function bookEntries(
  sql: Sql,
  flushes: readonly CellFlush[],
  onFailpoint: (step: FlushStep) => void,
): Promise<number> {
  const totals = joined(flushes.map((flush) => flush.totals));
  return sql.begin(async (tx) => {
    const [, , raffles] = await together([
      moveCursors(
        tx,
        flushes.map(({ cursor }) => cursor),
      ).then(() => onFailpoint('flush.cursor-moved')),
      tx
        .copy(COPY_LEDGER, Buffer.concat([COPY_HEAD, ...flushes.map(({ rows }) => rows), COPY_END]))
        .then(() => onFailpoint('flush.rows-copied')),
      addTotals(tx, totals),
    ]);
    for (const note of Object.values(NOTES)) await note(tx, { flushes, totals, raffles, onFailpoint });
    const adjusted: NewEvent[] = [];
    for (const { adjustments, adjustmentEvent } of flushes)
      if (adjustments.length > 0)
        adjusted.push(...(await noteAdjustments(tx, adjustments)).map(adjustmentEvent));
    onFailpoint('flush.totals-added');
    const events = [...flushes.flatMap((flush) => flush.events), ...adjusted];
    await noteLargeWins(tx, events);
    return recordEvents(tx, events);
  });
}

/** Data about a flush that is passed to the functions in {@link NOTES}. */
interface Booked {
  readonly flushes: readonly CellFlush[];
  readonly totals: FlushTotals;
  readonly raffles: ReadonlySet<number>;
  readonly onFailpoint: (step: FlushStep) => void;
}

/** Writes of a flush that only some kinds of games need, in addition to rows and totals. */
const NOTES: { readonly [T in GameType]: (tx: Transaction, booked: Booked) => Promise<void> } = {
  async slot(tx, { flushes, onFailpoint }) {
    const communal = flushes.flatMap((flush) => flush.communal ?? []);
    if (communal.length === 0) return;
    await bookCommunal(tx, joined(communal));
    onFailpoint('flush.communal-booked');
  },
  async raffle(tx, { flushes, raffles }) {
    if (raffles.size === 0) return;
    await noteTickets(
      tx,
      flushes.flatMap(({ ticketsOf }) => ticketsOf(raffles)),
    );
  },
  async blackjack(tx, { totals: { rounds } }) {
    if (rounds.length === 0) return;
    const faults = await bookRounds(tx, rounds);
    if (faults.length > 0) throw new ProgressError(faults.join('; '));
  },
};

/** Joins the lists of all parts, separately for each property. */
function joined<Lists extends { readonly [Name in keyof Lists]: readonly unknown[] }>(
  parts: readonly Lists[],
): Lists {
  const [first] = parts as [Lists];
  if (parts.length === 1) return first;
  const names = Object.keys(first) as (keyof Lists)[];
  return Object.fromEntries(
    names.map((name) => [name, parts.flatMap((part) => part[name])]),
  ) as unknown as Lists;
}

async function addGameDays(
  tx: Transaction,
  table: 'game_days' | 'sandbox_days',
  days: readonly FlushedGameDay[],
): Promise<void> {
  await tx`
    INSERT INTO ${raw(table)} AS t (game_id, day, partner_id, spins, wagered_micros, paid_micros)
    SELECT * FROM ${rowsOf(days, { gameId: 'int', day: 'date', partnerId: 'int', spins: 'bigint', wageredMicros: 'numeric', paidMicros: 'numeric' })}
    ON CONFLICT (game_id, day) DO UPDATE SET spins = t.spins + excluded.spins,
      wagered_micros = t.wagered_micros + excluded.wagered_micros, paid_micros = t.paid_micros + excluded.paid_micros`;
}

/**
 * Adds totals to their tables and closes raffles that are sold out.
 * @returns the ids of the games that are raffles
 */
async function addTotals(tx: Transaction, totals: FlushTotals): Promise<ReadonlySet<number>> {
  const { games, sandbox, openings, adjustments, progress, rotations } = totals;
  const [raffles] = await together([
    progress.length > 0 ? moveProgress(tx, progress) : Promise.resolve([]),
    ...(sandbox.length > 0 ? [addGameDays(tx, 'sandbox_days', sandbox)] : []),
    ...(games.length > 0 ? [addGameDays(tx, 'game_days', games)] : []),
    ...(rotations.length > 0 ? [addVoids(tx, rotations)] : []),
    ...(openings.length > 0 ? [addOpenings(tx, openings)] : []),
    ...(adjustments.length > 0 ? [addAdjustmentDays(tx, adjustments)] : []),
  ]);
  const soldOut = raffles.filter(({ isSoldOut }) => isSoldOut).map(({ gameId }) => gameId);
  if (soldOut.length > 0) await closeRaffles(tx, await nextChange(tx), soldOut);
  return new Set(raffles.map(({ gameId }) => gameId));
}

/**
 * @returns the raffles among the games, which need more writes: only a raffle has a finite pool, closes with
 * its last outcome, and binds request ids permanently
 */
async function moveProgress(
  tx: Transaction,
  progress: FlushTotals['progress'],
): Promise<{ gameId: number; isSoldOut: boolean }[]> {
  const rows = await tx<{ gameId: number; nextIndex: bigint; poolSize: number | null }[]>`
    INSERT INTO game_progress AS t (game_id, next_index)
    SELECT u.game_id, u.to_index FROM ${rowsOf(progress, { gameId: 'int', fromIndex: 'bigint', toIndex: 'bigint' }, 'u')}
    WHERE u.from_index = coalesce((SELECT p.next_index FROM game_progress p WHERE p.game_id = u.game_id), 0)
    ON CONFLICT (game_id) DO UPDATE SET next_index = excluded.next_index
    RETURNING game_id, next_index, (SELECT pool_size FROM raffles r WHERE r.game_id = t.game_id) AS pool_size`;
  if (rows.length !== progress.length) {
    const booked = new Set(rows.map((row) => row.gameId));
    const wrong = progress.filter((g) => !booked.has(g.gameId));
    throw new ProgressError(
      wrong
        .map((g) => `game ${g.gameId}: index ${g.fromIndex} is not the next index in the ledger`)
        .join('; '),
    );
  }
  return rows
    .filter((row) => row.poolSize !== null)
    .map((row) => ({ gameId: row.gameId, isSoldOut: row.nextIndex === BigInt(row.poolSize!) }));
}

async function addOpenings(tx: Transaction, openings: FlushTotals['openings']): Promise<void> {
  await tx`
    INSERT INTO opening_days AS t (partner_id, day, players, opened_micros)
    SELECT * FROM ${rowsOf(openings, { partnerId: 'int', day: 'date', players: 'bigint', openedMicros: 'numeric' })}
    ON CONFLICT (partner_id, day) DO UPDATE SET players = t.players + excluded.players,
      opened_micros = t.opened_micros + excluded.opened_micros`;
}

/**
 * Timeout for locks while a partition is made, in ms. Queries that wait behind the lock can then continue,
 * and the partition is tried again later.
 */
const PARTITION_LOCK_TIMEOUT_MS = 2000;

const partitionName = (day: string): string => `ledger_${day.replaceAll('-', '')}`;
const feedIndexName = (day: string): string => `${partitionName(day)}_feed`;

/** Condition of the feed's index, and of the statements that can use it. */
export const IS_SPIN = raw(`kind IN ${entryCodesSql(isShownAsSpin)}`);

/**
 * Returns the UTC days whose spins are indexed by partner. Earlier versions made partitions without this
 * index.
 */
export async function indexedDays(sql: Sql, days: readonly string[]): Promise<string[]> {
  const rows = await sql<{ relname: string }[]>`
    SELECT relname FROM pg_class WHERE relkind = 'i' AND relname = ANY(${arrayOf(days.map(feedIndexName))}::text[])`;
  const names = new Set(rows.map(({ relname }) => relname));
  return days.filter((day) => names.has(feedIndexName(day)));
}

/** Returns the UTC days, such as 2026-11-22, that have a partition. */
export async function partitionDays(sql: Sql, days: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await sql<{ relname: string }[]>`
    SELECT relname FROM pg_class JOIN pg_inherits ON inhrelid = oid
    WHERE inhparent = 'ledger'::regclass AND relname = ANY(${arrayOf(days.map(partitionName))}::text[])`;
  const names = new Set(rows.map(({ relname }) => relname));
  return new Set(days.filter((day) => names.has(partitionName(day))));
}

/**
 * Indexes the spins of a UTC day by partner. The day's partition must exist and be empty, so that nobody
 * waits for the lock.
 */
export async function indexFeed(sql: Sql | Transaction, day: string): Promise<void> {
  await sql`
    CREATE INDEX IF NOT EXISTS ${raw(feedIndexName(day))} ON ${raw(partitionName(day))} (partner_id, entry_id) WHERE ${IS_SPIN}`;
}

/**
 * Creates the partition of a UTC day if it does not exist. An existing partition is found without a lock.
 * @param range entry ids of that day: `from` is inclusive, `to` exclusive
 * @throws Error if a lock of the ledger can't be acquired in time
 */
export async function ensurePartition(
  sql: Sql,
  day: string,
  range: { from: bigint; to: bigint },
): Promise<void> {
  if ((await partitionDays(sql, [day])).has(day)) return;
  const name = partitionName(day);
  await lockingWithin(sql, () => PARTITION_LOCK_TIMEOUT_MS).begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(7310002)`;
    const [found] =
      await tx`SELECT 1 FROM pg_class WHERE relname = ${name} AND relnamespace = 'public'::regnamespace`;
    if (found !== undefined) return;
    // The table is created alone and then attached as a partition. Creating it as a partition would wait for
    // every reader of the ledger, and every writer would wait behind that statement.
    await tx`CREATE TABLE ${raw(name)} (LIKE ledger INCLUDING ALL)`;
    await indexFeed(tx, day);
    await tx`
      ALTER TABLE ledger ATTACH PARTITION ${raw(name)}
      FOR VALUES FROM (${raw(String(range.from))}) TO (${raw(String(range.to))})`;
  });
}

/**
 * Header of the binary COPY format: signature, no flags, no extension (PostgreSQL documentation, "COPY", File
 * Formats).
 */
const COPY_HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
const COPY_END = Buffer.from([0xff, 0xff]);
