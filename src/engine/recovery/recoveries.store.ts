/** SQL of a rebuild: voids, the records of recoveries, and the checkpoints of players. */
import { entryCellSql, entryTimeMs, idsIn } from '../../domain/entryId.js';
import { kindOfGame } from '../../domain/games/index.js';
import type { GameType } from '../../domain/games/kindOfGame.js';
import { type LedgerRow, type MembersReadBy, membersReadBy } from '../../domain/ledgerColumns.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { type CopyRow, readRows } from '../../postgres/copy.js';
import { arrayOf, raw, rowsOf, safe } from '../../postgres/statements.js';
import {
  assertOwner,
  type CellLease,
  inScope,
  inScopeText,
  type PartnerScope,
} from '../cells/cells.store.js';
import { adoptRules, checkpointRecency } from '../communal/communalRecovery.store.js';
import { columnsSql, fieldsOf, rowReader } from '../ledger/ledgerRow.store.js';
import type { EventEmitter } from '../processEvents.js';
import { type RestoredState, suspendRaffles, voidLeased, voidOpenRounds } from './positions.store.js';

/**
 * Returns the next index of each game of a cell according to the ledger. Games without committed or voided
 * outcomes are omitted.
 */
export async function committedIndices(
  sql: Sql,
  cell: number,
): Promise<{ gameId: number; nextIndex: bigint }[]> {
  return sql<{ gameId: number; nextIndex: bigint }[]>`
    SELECT game_id, next_index FROM game_progress JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE partners.cell = ${cell}`;
}

/** True if outcomes of the cell's games have ever been leased, or partners have moved to the cell. */
export async function hasBlocks(sql: Sql, cell: number): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM blocks JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE partners.cell = ${cell}
    UNION ALL SELECT 1 FROM partner_moves WHERE to_cell = ${cell} AND switched_at IS NOT NULL LIMIT 1`;
  return rows.length > 0;
}

/**
 * Begins a recovery in one transaction. The cell gets its next epoch, so that calls under the old epoch are
 * refused. Leased and uncommitted outcomes of slot games are voided on record. Raffle tickets are not voided:
 * a ticket is revealed only after its commit, so all tickets that are not committed are still for sale.
 *
 * After a restore to an older state the rules are stricter. Slot games and tables continue after all outcomes
 * that may have been loaded, every open round is voided, and every open raffle is suspended until the
 * operator decides.
 * @param aboveEpoch number that the number of the new epoch must also exceed
 */
export async function beginRecovery(
  sql: Sql,
  lease: CellLease,
  reason: string,
  aboveEpoch: bigint,
  restored?: RestoredState,
): Promise<{ lease: CellLease; voided: number }> {
  return sql.begin(async (tx) => {
    await assertOwner(tx, lease);
    const [row] = await tx<{ epoch: bigint; token: string; cursorId: bigint }[]>`
      UPDATE cells SET epoch = greatest(epoch, ${aboveEpoch}) + 1 WHERE cell = ${lease.cell}
      RETURNING epoch, (SELECT dataset_id FROM installation) || ':' || epoch AS token, cursor_id`;
    const { epoch, token, cursorId } = row!;
    const voids = await voidLeased(tx, lease.cell, epoch, reason, restored);
    const suspended = restored === undefined ? [] : await suspendRaffles(tx, lease.cell);
    if (restored !== undefined) await voidOpenRounds(tx, lease.cell);
    await adoptRules(tx, lease.cell, cursorId);
    const voided = voids.reduce((sum, each) => sum + each.leasedTo - each.fromIndex, 0);
    await tx`
      INSERT INTO recoveries (cell, epoch, reason, step, voided)
      VALUES (${lease.cell}, ${epoch}, ${reason}, 'begun', ${voided})`;
    await writeAuditEntry(tx, {
      actor: 'worker',
      action: 'cell.recover',
      subject: `cell:${lease.cell}`,
      after: {
        epoch: Number(epoch),
        reason,
        voided: voids.map(({ gameId, fromIndex, toIndex }) => ({ gameId, fromIndex, toIndex })),
        ...(restored !== undefined && { suspended }),
      },
    });
    return { lease: { ...lease, epoch, token, cursorId }, voided };
  });
}

/** Records the progress of a recovery. */
export async function recordRecovery(
  sql: Sql,
  lease: CellLease,
  now: { step: string; players: number; requests: number; isFinished?: boolean },
): Promise<void> {
  await sql.begin(async (tx: Transaction) => {
    await assertOwner(tx, lease);
    await tx`
      UPDATE recoveries SET step = ${now.step}, players = ${now.players}, requests = ${now.requests},
        finished_at = CASE WHEN ${now.isFinished === true}::boolean THEN now() END
      WHERE cell = ${lease.cell} AND epoch = ${lease.epoch} AND finished_at IS NULL`;
  });
}

/** Marks an interrupted recovery under this epoch as finished, because the cell was found to be ready. */
export async function finishRecovery(sql: Sql, lease: CellLease): Promise<void> {
  await sql`
    UPDATE recoveries SET step = 'finished', finished_at = now()
    WHERE cell = ${lease.cell} AND epoch = ${lease.epoch} AND finished_at IS NULL`;
}

export interface Recovery {
  cell: number;
  reason: string;
  step: string;
  players: number;
  requests: number;
  startedAt: Date;
  /** False if the recovery is under way, or was interrupted and will be retried. */
  isFinished: boolean;
}

type Counts = 'players' | 'requests';

export class Recoveries {
  constructor(private readonly sql: Sql) {}

  /** Returns the recoveries that are not finished, or finished within the last minute. */
  async recent(): Promise<Recovery[]> {
    const rows = await this.sql<(Omit<Recovery, Counts> & Record<Counts, bigint>)[]>`
      SELECT cell, reason, step, players, requests, started_at, finished_at IS NOT NULL AS is_finished
      FROM recoveries JOIN cells USING (cell, epoch)
      WHERE finished_at IS NULL OR finished_at > now() - interval '1 minute' ORDER BY cell`;
    return rows.map((row) => ({ ...row, players: safe(row.players), requests: safe(row.requests) }));
  }
}

/**
 * Returns the net result (payouts minus wagers, in micro-USD) of each partner of a cell with committed spins.
 */
export async function partnerNets(
  sql: Sql,
  cell: number,
): Promise<{ partnerId: number; netMicros: bigint }[]> {
  return sql<{ partnerId: number; netMicros: bigint }[]>`
    SELECT partner_id, sum(paid_micros) - sum(wagered_micros) AS net_micros
    FROM game_days JOIN partners USING (partner_id) WHERE cell = ${cell} GROUP BY partner_id`;
}

/**
 * Returns the index at which each game continues, after a rebuild or in its partner's new cell, and the index
 * at which the next loaded block begins. Games without blocks are omitted. The blocks of a raffle or table,
 * which continues at its old index, are loaded again from the first block that is not completely committed.
 * @param isAllCommitted true if every dealt outcome is committed, so that each game continues exactly where
 * it was
 */
export async function resumptionsOf(
  sql: Sql | Transaction,
  scope: PartnerScope,
  isAllCommitted = false,
): Promise<{ gameId: number; nextIndex: number; queueEnd: number }[]> {
  const rows = await sql<
    {
      gameId: number;
      gameType: GameType;
      toIndex: bigint;
      nextIndex: bigint;
      openFrom: bigint | null;
      voidedPool: number | null;
    }[]
  >`
    SELECT game_id, game_type, to_index, next_index,
      (SELECT min(from_index) FROM blocks b WHERE b.game_id = g.game_id AND b.to_index > next_index) AS open_from,
      (SELECT pool_size FROM raffles r WHERE r.game_id = g.game_id AND voided_at IS NOT NULL) AS voided_pool
    FROM (
      SELECT game_id, game_type, greatest(max(to_index), max(next_index)) AS to_index, coalesce(max(next_index), 0) AS next_index
      FROM games JOIN partners USING (partner_id) LEFT JOIN blocks USING (game_id) LEFT JOIN game_progress USING (game_id)
      WHERE ${inScope(scope)} GROUP BY game_id, game_type HAVING greatest(max(to_index), max(next_index)) > 0
    ) g`;
  return rows.map((row) => {
    // A voided raffle sells no further tickets (redis/endPool.ts).
    if (row.voidedPool !== null)
      return { gameId: row.gameId, nextIndex: row.voidedPool, queueEnd: row.voidedPool };
    const end = safe(row.toIndex);
    const booked = safe(row.nextIndex);
    const nextIndex = isAllCommitted ? booked : kindOfGame(row.gameType).outcomeSource.resumesAt(end, booked);
    const queueEnd = nextIndex < end && row.openFrom !== null ? safe(row.openFrom) : end;
    return { gameId: row.gameId, nextIndex, queueEnd };
  });
}

/** The newest entry of a player, with the fields that a rebuild needs. */
export interface PlayerState {
  readonly partnerId: number;
  readonly playerId: string;
  readonly entryId: bigint;
  readonly entryNumber: number;
  readonly outcomeCode: number;
  readonly balanceMicros: number;
  /**
   * First entry of the player; its time is the player's creation time. Undefined if the entry was not read.
   */
  readonly firstId: bigint | undefined;
}

/**
 * Returns the first entry of the cell that {@link readCheckpoint} does not include; undefined if it includes
 * all entries.
 */
export async function uncheckedFrom(sql: Sql, cell: number): Promise<bigint | undefined> {
  const [row] = await sql<{ uncheckedFrom: bigint | null }[]>`
    SELECT unchecked_from FROM cells WHERE cell = ${cell}`;
  return row?.uncheckedFrom ?? undefined;
}

const CHECKPOINT_LOCK = 7_310_003;

/**
 * Advances player_checkpoints and communal_recency in all cells by at most two minutes of entries. Does
 * nothing if another worker is doing it, or if the entries since the last checkpoint span less than
 * `minAgeMs`.
 * @returns the number of updated players, or undefined if nothing was done
 */
export async function checkpointPlayers(sql: Sql, minAgeMs: number): Promise<number | undefined> {
  return sql.begin(async (tx) => {
    const [lock] = await tx<
      { ours: boolean }[]
    >`SELECT pg_try_advisory_xact_lock(${CHECKPOINT_LOCK}) AS ours`;
    if (lock?.ours !== true) return undefined;
    const cells = await tx<Unchecked[]>`
      SELECT cell, unchecked_from, cursor_id FROM cells WHERE unchecked_from IS NOT NULL`;
    const oldest = cells.reduce((id, each) => (each.uncheckedFrom < id ? each.uncheckedFrom : id), MAX_ID);
    let newest = cells.reduce((id, each) => (each.cursorId > id ? each.cursorId : id), 0n);
    if (cells.length === 0 || entryTimeMs(newest - oldest) < minAgeMs) return undefined;
    const end = oldest + CHECKPOINT_SLICE;
    if (newest > end) newest = end;
    const due = cells.filter((each) => each.uncheckedFrom <= newest);
    return checkpointRange(tx, due, oldest, newest);
  });
}

/**
 * Keeps the checkpoints of the players close to the newest ledger entries, so that a rebuild has few entries
 * to read.
 */
export async function checkpointAllPlayers(
  sql: Sql,
  minAgeMs: number,
  events: EventEmitter,
  stopped: AbortSignal,
): Promise<void> {
  const started = performance.now();
  let made = 0;
  while (!stopped.aborted) {
    const players = await checkpointPlayers(sql, minAgeMs);
    if (players === undefined) break;
    made += players;
  }
  const seconds = (performance.now() - started) / 1000;
  if (made > 0) events.emit('PlayersCheckpointed', { players: made, seconds });
}

/**
 * Advances the checkpoint of one cell's players and communal progressives to the cell's cursor, or past the
 * given entry id.
 */
export async function checkpointCell(sql: Sql, cell: number, beyondId = MAX_ID): Promise<void> {
  for (let isDone = false; !isDone; ) {
    isDone = await sql.begin(async (tx) => {
      await tx`SELECT pg_advisory_xact_lock(${CHECKPOINT_LOCK})`;
      const [due] = await tx<Unchecked[]>`
        SELECT cell, unchecked_from, cursor_id FROM cells WHERE cell = ${cell} AND unchecked_from <= cursor_id`;
      if (due === undefined) return true;
      const end = due.uncheckedFrom + CHECKPOINT_SLICE;
      const newest = due.cursorId < end ? due.cursorId : end;
      await checkpointRange(tx, [due], due.uncheckedFrom, newest);
      return newest === due.cursorId || newest >= beyondId;
    });
  }
}

interface Unchecked {
  readonly cell: number;
  readonly uncheckedFrom: bigint;
  readonly cursorId: bigint;
}

/**
 * Advances the checkpoint of players over a range of entries.
 * @returns the number of updated players
 */
async function checkpointRange(
  tx: Transaction,
  due: readonly Unchecked[],
  oldest: bigint,
  newest: bigint,
): Promise<number> {
  await tx.patiently();
  const ranges = rowsOf(
    due.map((each) => ({
      cell: each.cell,
      fromId: each.uncheckedFrom,
      toId: each.cursorId < newest ? each.cursorId : newest,
    })),
    { cell: 'int', fromId: 'bigint', toId: 'bigint' },
    'c',
  );
  const players = await tx`
    INSERT INTO player_checkpoints AS t
      (partner_id, player_id, entry_id, entry_number, outcome_code, balance_micros, first_id)
    SELECT l.partner_id, l.player_id, l.entry_id, l.entry_number, l.outcome_code, l.balance_micros, n.first_id
    FROM (
      SELECT max(entry_id) AS entry_id, min(entry_id) AS first_id
      FROM ledger JOIN ${ranges}
        ON ${raw(entryCellSql('entry_id'))} = c.cell AND entry_id BETWEEN c.from_id AND c.to_id
      WHERE entry_id BETWEEN ${oldest} AND ${newest}
      GROUP BY partner_id, player_id
    ) AS n JOIN ledger l USING (entry_id)
    WHERE l.entry_id BETWEEN ${oldest} AND ${newest}
    ON CONFLICT (partner_id, player_id) DO UPDATE SET entry_id = excluded.entry_id,
      entry_number = excluded.entry_number, outcome_code = excluded.outcome_code,
      balance_micros = excluded.balance_micros
    WHERE excluded.entry_id > t.entry_id
    RETURNING 1`;
  await checkpointRecency(tx, oldest, newest, ranges);
  // The rows of `cells` are locked in the same order as in a flush. A flush locks several rows, too, and
  // another order could cause a deadlock.
  await tx`SELECT 1 FROM cells WHERE cell = ANY(${arrayOf(due.map(({ cell }) => cell))}::int[]) ORDER BY cell FOR NO KEY UPDATE`;
  await tx`
    UPDATE cells SET unchecked_from = CASE WHEN cursor_id > c.to_id THEN c.to_id + 1 END
    FROM ${ranges} WHERE cells.cell = c.cell`;
  return players.length;
}

const MAX_ID = 2n ** 63n - 1n;
/**
 * Range of entry ids that one step of a checkpoint covers: two minutes. On a busy system a step takes one or
 * two seconds.
 */
const CHECKPOINT_SLICE = idsIn(120_000);

const PLAYER_STATE_COLUMNS = [
  'partner_id',
  'player_id',
  'entry_id',
  'entry_number',
  'outcome_code',
  'balance_micros',
  'first_id',
] as const;
const PLAYER_STATE = fieldsOf(PLAYER_STATE_COLUMNS);

/** @param only players with an entry after `afterId`, and further players of one partner by their ids */
export async function readCheckpoint(
  sql: Sql,
  scope: PartnerScope,
  onPlayer: (player: PlayerState) => void,
  onPause: () => Promise<void>,
  { afterId, others }: { readonly afterId: bigint; readonly others: readonly string[] },
): Promise<void> {
  const columns = PLAYER_STATE_COLUMNS.map((name) => `c.${name}`).join(', ');
  const all = `SELECT ${columns} FROM player_checkpoints c JOIN partners USING (partner_id) WHERE ${inScopeText(scope)}`;
  // The query finds the few changed players through their new ledger entries. OFFSET 0 makes Postgres look up
  // each player separately.
  const ids = others.map((playerId) => Buffer.from(playerId).toString('hex'));
  const some = `
    SELECT ${columns} FROM (
      SELECT partner_id, player_id FROM ledger JOIN partners USING (partner_id)
      WHERE entry_id > ${afterId} AND ${inScopeText(scope)}
      UNION SELECT partner_id, convert_from(decode(id, 'hex'), 'UTF8')
      FROM partners CROSS JOIN unnest('{${ids.join()}}'::text[]) AS id WHERE ${inScopeText(scope)}) n
    CROSS JOIN LATERAL (SELECT * FROM player_checkpoints WHERE partner_id = n.partner_id AND player_id = n.player_id OFFSET 0) c`;
  await sql.begin(async (tx) => {
    await tx.patiently();
    const rows = tx.read(`COPY (${afterId === 0n ? all : some}) TO STDOUT (FORMAT binary)`);
    await readRows(
      rows,
      (row) =>
        onPlayer({
          partnerId: row.int(PLAYER_STATE.partner_id),
          playerId: row.text(PLAYER_STATE.player_id),
          entryId: row.big(PLAYER_STATE.entry_id),
          entryNumber: row.int(PLAYER_STATE.entry_number),
          outcomeCode: row.int(PLAYER_STATE.outcome_code),
          balanceMicros: row.safe(PLAYER_STATE.balance_micros),
          firstId: row.big(PLAYER_STATE.first_id),
        }),
      onPause,
    );
  });
}

/**
 * Columns for a spin's notice of a communal progressive. If `eventId` is null, the spin has no notice, and
 * the other columns may be missing.
 */
const TOLD_COLUMNS = {
  eventId: 'e.event_id',
  tierLevel: 'tier_level',
  tierName: 'tier_name',
  paidMicros: 'paid_micros',
  /** Null if the player had no share of the event. */
  shareMicros: 's.share_micros',
} as const;
const TOLD_JOINS = `
  LEFT JOIN (SELECT told_by, event_id, amount_micros AS share_micros FROM communal_shares WHERE told_by IS NOT NULL) s
    ON s.told_by = l.entry_id
  LEFT JOIN communal_events e ON e.event_id = coalesce(s.event_id, l.entry_id) AND paid_micros > 0`;

const REBUILT = membersReadBy('rebuild');

export const RECOVERED = {
  ...fieldsOf(REBUILT),
  ...fieldsOf(Object.keys(TOLD_COLUMNS) as (keyof typeof TOLD_COLUMNS)[], REBUILT.length),
};

export const recoveredRow: (row: CopyRow) => Pick<LedgerRow, MembersReadBy<'rebuild'>> = rowReader(REBUILT);

/**
 * Reads the entries of cells from an id on with one scan, in no particular order. The constant {@link
 * RECOVERED} lists the fields of the rows.
 */
export async function readEntriesFrom(
  sql: Sql,
  cells: readonly number[],
  fromId: bigint,
  onRow: (row: CopyRow) => void,
  onPause: () => Promise<void>,
): Promise<void> {
  await sql.begin(async (tx) => {
    const tells = (await tx`SELECT 1 FROM communal_events LIMIT 1`).length > 0;
    await tx.patiently();
    const rows = tx.read(`
      COPY (SELECT ${columnsSql(REBUILT, 'l')}, ${tells ? Object.values(TOLD_COLUMNS).join(', ') : 'NULL::bigint'}
            FROM ledger l ${tells ? TOLD_JOINS : ''}
            WHERE entry_id >= ${fromId} AND ${entryCellSql('entry_id')} = ANY('${arrayOf(cells)}'::int[]))
      TO STDOUT (FORMAT binary)`);
    await readRows(rows, onRow, onPause);
  });
}
