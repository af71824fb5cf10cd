/** What a rebuild of Redis reads and writes down: outcomes voided, recoveries, and the checkpoints of players. */
import { assertOwner, type CellLease } from './cells.js';
import { audit } from './changes.js';
import { type Sql, safe, type Transaction } from './client.js';
import { type CopyRow, readRows } from './copyReader.js';

/** The next index of each game of a cell, as the ledger has it; games of which nothing is booked or voided are left out. */
export async function bookedIndices(
  sql: Sql,
  cell: number,
): Promise<{ gameId: number; nextIndex: bigint }[]> {
  const rows = await sql<{ game_id: number; next_index: bigint }[]>`
    SELECT game_id, next_index FROM game_progress JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE partners.cell = ${cell}`;
  return rows.map((row) => ({ gameId: row.game_id, nextIndex: row.next_index }));
}

/** Outcomes of the cell's games were leased at some time. */
export async function hasBlocks(sql: Sql, cell: number): Promise<boolean> {
  const rows = await sql`
    SELECT 1 FROM blocks JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE partners.cell = ${cell} LIMIT 1`;
  return rows.length > 0;
}

/**
 * Begins a recovery: the cell's epoch becomes the next one, so that nobody who believes in the old one deals; what is
 * leased and not booked is voided, in writing. One transaction.
 * @param aboveEpoch the new epoch's number is above this one, too.
 * @returns the lease at the new epoch, and how many outcomes were voided.
 * @throws FencedError where the cell has another owner.
 */
export async function beginRecovery(
  sql: Sql,
  lease: CellLease,
  reason: string,
  aboveEpoch: bigint,
): Promise<{ lease: CellLease; voided: number }> {
  return sql.begin(async (tx) => {
    await assertOwner(tx, lease);
    const [row] = await tx<{ epoch: bigint; token: string; cursor_id: bigint }[]>`
      UPDATE cells SET epoch = greatest(epoch, ${aboveEpoch}) + 1 WHERE cell = ${lease.cell}
      RETURNING epoch, (SELECT dataset_id FROM installation) || ':' || epoch AS token, cursor_id`;
    const { epoch, token, cursor_id: cursorId } = row!;
    const voids = await tx<{ game_id: number; from_index: bigint; to_index: bigint }[]>`
      INSERT INTO voids (game_id, from_index, to_index, epoch, reason)
      SELECT b.game_id, coalesce(p.next_index, 0), b.to_index, ${epoch}, ${reason}
      FROM (SELECT game_id, max(to_index) AS to_index FROM blocks GROUP BY game_id) b
        JOIN games USING (game_id) JOIN partners USING (partner_id) LEFT JOIN game_progress p USING (game_id)
      WHERE partners.cell = ${lease.cell} AND b.to_index > coalesce(p.next_index, 0)
      RETURNING game_id, from_index, to_index`;
    await tx`
      INSERT INTO game_progress (game_id, next_index)
      SELECT game_id, to_index FROM voids JOIN games USING (game_id) JOIN partners USING (partner_id)
      WHERE partners.cell = ${lease.cell} AND voids.epoch = ${epoch}
      ON CONFLICT (game_id) DO UPDATE SET next_index = excluded.next_index`;
    const voided = voids.reduce((sum, each) => sum + safe(each.to_index - each.from_index), 0);
    await tx`
      INSERT INTO recoveries (cell, epoch, reason, step, voided)
      VALUES (${lease.cell}, ${epoch}, ${reason}, 'begun', ${voided})`;
    await audit(tx, {
      actor: 'worker',
      action: 'cell.recover',
      subject: `cell:${lease.cell}`,
      after: {
        epoch: Number(epoch),
        reason,
        voided: voids.map((each) => ({
          gameId: each.game_id,
          fromIndex: safe(each.from_index),
          toIndex: safe(each.to_index),
        })),
      },
    });
    return { lease: { ...lease, epoch, token, cursorId }, voided };
  });
}

/** Writes down where a recovery stands. @throws FencedError where the cell has another owner. */
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
      WHERE cell = ${lease.cell} AND epoch = ${lease.epoch}`;
  });
}

/** A recovery of this epoch that ended without a word is over: the cell was found ready. */
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
}

/** The recoveries that are under way, or were interrupted and will come again. */
export async function openRecoveries(sql: Sql): Promise<Recovery[]> {
  const rows = await sql<
    {
      cell: number;
      reason: string;
      step: string;
      players: bigint;
      requests: bigint;
      started_at: Date;
    }[]
  >`
    SELECT cell, reason, step, players, requests, started_at FROM recoveries JOIN cells USING (cell, epoch)
    WHERE finished_at IS NULL ORDER BY cell`;
  return rows.map((row) => ({
    cell: row.cell,
    reason: row.reason,
    step: row.step,
    players: safe(row.players),
    requests: safe(row.requests),
    startedAt: row.started_at,
  }));
}

/** Net paid to players (payouts − wagers, micro-USD) of each partner of a cell that has booked a spin. */
export async function partnerNets(
  sql: Sql,
  cell: number,
): Promise<{ partnerId: number; netMicros: number }[]> {
  const rows = await sql<{ partner_id: number; net: bigint }[]>`
    SELECT partner_id, (sum(paid_micros) - sum(wagered_micros))::bigint AS net
    FROM game_days JOIN partners USING (partner_id) WHERE cell = ${cell} GROUP BY partner_id`;
  return rows.map((row) => ({ partnerId: row.partner_id, netMicros: safe(row.net) }));
}

/** Where the leases of a cell's games end; games without blocks are left out. */
export async function leaseEndsOf(sql: Sql, cell: number): Promise<{ gameId: number; end: number }[]> {
  const rows = await sql<{ game_id: number; to_index: bigint }[]>`
    SELECT game_id, max(to_index) AS to_index FROM blocks JOIN games USING (game_id) JOIN partners USING (partner_id)
    WHERE partners.cell = ${cell} GROUP BY game_id`;
  return rows.map((row) => ({ gameId: row.game_id, end: safe(row.to_index) }));
}

/** The newest entry of a player, as far as a rebuild needs it. */
export interface PlayerState {
  readonly partnerId: number;
  readonly playerId: string;
  readonly entryId: bigint;
  readonly entryNumber: number;
  readonly outcomeCode: number;
  readonly balanceMicros: number;
  /** Its time is the player's; undefined where the player's first entry was not read. */
  readonly firstId: bigint | undefined;
}

/** The entry up to which {@link readCheckpoint} is complete. */
export async function checkpointId(sql: Sql): Promise<bigint> {
  const [row] = await sql<{ entry_id: bigint }[]>`SELECT entry_id FROM checkpoint`;
  return row!.entry_id;
}

/** Players of a cell as of the checkpoint. */
export async function readCheckpoint(
  sql: Sql,
  cell: number,
  onPlayer: (player: PlayerState) => void,
  onPause: () => Promise<void>,
): Promise<void> {
  await sql.begin(async (tx) => {
    const rows = tx.read(`
      COPY (SELECT c.partner_id, player_id, entry_id, entry_number, outcome_code, balance_micros, first_id
            FROM player_checkpoints c JOIN partners USING (partner_id) WHERE cell = ${cell})
      TO STDOUT (FORMAT binary)`);
    await readRows(
      rows,
      (row) =>
        onPlayer({
          partnerId: row.int(0),
          playerId: row.text(1),
          entryId: row.big(2),
          entryNumber: row.int(3),
          outcomeCode: row.int(4),
          balanceMicros: row.safe(5),
          firstId: row.big(6),
        }),
      onPause,
    );
  });
}

/**
 * Entries of a cell after an id, in no order. The row's fields: entry id (bigint), partner id, player id, entry number,
 * outcome code, balance (bigint), game id, request id (or null).
 */
export async function readEntriesAfter(
  sql: Sql,
  cell: number,
  afterId: bigint,
  onRow: (row: CopyRow) => void,
  onPause: () => Promise<void>,
): Promise<void> {
  await sql.begin(async (tx) => {
    const rows = tx.read(`
      COPY (SELECT entry_id, partner_id, player_id, entry_number, outcome_code, balance_micros, game_id, request_id
            FROM ledger WHERE entry_id > ${afterId} AND (entry_id >> 14) & 255 = ${cell})
      TO STDOUT (FORMAT binary)`);
    await readRows(rows, onRow, onPause);
  });
}
