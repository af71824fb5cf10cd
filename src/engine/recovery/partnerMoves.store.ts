/**
 * Stores moves of partners between cells. An operator requests a move, and the worker of the old cell carries
 * it out. The record of a move is kept permanently.
 */

import { entryTimeMs } from '../../domain/entryId.js';
import type { MoveStep, PartnerMove as PartnerMoveSchema } from '../../domain/partnerMove.js';
import type { WithDates } from '../../domain/schema.js';
import { because, nextChange, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { boundLocks } from '../../postgres/limits.js';
import { arrayOf, raw } from '../../postgres/statements.js';
import {
  assertOwner,
  type CellLease,
  drainingOf,
  FencedError,
  livesIn,
  NEWEST_MOVE,
} from '../cells/cells.store.js';
import type { AwayPartner } from '../redis/cellHead.js';

/**
 * `switchedAt` is null as long as the old cell deals for the partner. `finishedAt` is null as long as steps
 * of the move remain, even after a failure.
 */
export type PartnerMove = WithDates<typeof PartnerMoveSchema, 'requestedAt' | 'switchedAt' | 'finishedAt'>;

const COLUMNS = raw(
  'move_id, partner_id, from_cell, to_cell, requested_at, switched_at, finished_at, failure',
);

/**
 * Reason why a move was not begun. `there`: the partner already belongs to that cell. `moving`: another move
 * of the partner is under way.
 */
export type NotMoved = 'noSuchPartner' | 'noSuchCell' | 'cellDrains' | 'there' | 'moving';

export class PartnerMoves {
  constructor(private readonly sql: Sql) {}

  /** Records an operator's request to move a partner. The worker of the partner's old cell carries it out. */
  async request(
    actor: string,
    partnerId: number,
    toCell: number,
    reason?: string,
  ): Promise<PartnerMove | NotMoved> {
    return withChange(this.sql, async (tx) => {
      const [partner] = await tx<
        { cell: number }[]
      >`SELECT cell FROM partners WHERE partner_id = ${partnerId}`;
      if (partner === undefined) return 'noSuchPartner';
      const isDraining = await drainingOf(tx, toCell);
      if (isDraining === undefined) return 'noSuchCell';
      if (isDraining) return 'cellDrains';
      const open =
        await tx`SELECT 1 FROM partner_moves WHERE partner_id = ${partnerId} AND finished_at IS NULL`;
      if (open.length > 0) return 'moving';
      if (partner.cell === toCell) return 'there';
      const [row] = await tx<PartnerMove[]>`
        INSERT INTO partner_moves (partner_id, from_cell, to_cell) VALUES (${partnerId}, ${partner.cell}, ${toCell})
        RETURNING ${COLUMNS}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'partner.move',
        subject: `partner:${partnerId}`,
        before: { cell: partner.cell },
        after: { cell: toCell, ...because(reason) },
      });
      return row!;
    });
  }

  async ofPartner(partnerId: number): Promise<PartnerMove[]> {
    return this.sql<PartnerMove[]>`
      SELECT ${COLUMNS} FROM partner_moves WHERE partner_id = ${partnerId} ORDER BY move_id DESC LIMIT 20`;
  }
}

/**
 * Returns ascending numbers for the next steps of a partner's move. A cell refuses a step once it has seen a
 * step with a higher number.
 */
export async function nextSteps(sql: Sql, partnerId: number, count: number): Promise<MoveStep[]> {
  return sql<MoveStep[]>`
    SELECT ${partnerId}::int AS partner_id, nextval('move_steps') AS number FROM generate_series(1, ${count}::int) ORDER BY 2`;
}

export async function openMoves(sql: Sql, cells: readonly number[]): Promise<PartnerMove[]> {
  return sql<PartnerMove[]>`
    SELECT ${COLUMNS} FROM partner_moves WHERE finished_at IS NULL AND from_cell = ANY(${arrayOf(cells)}::int[]) ORDER BY move_id`;
}

/** Returns the partners that have ever left a cell, including those that have come back. */
export async function awayPartners(sql: Sql, cell: number): Promise<AwayPartner[]> {
  const rows = await sql<{ partnerId: number; cell: number; newestMove: number }[]>`
    SELECT partner_id, cell, newest_move FROM (SELECT partner_id, cell, ${NEWEST_MOVE} FROM partners) p
    WHERE EXISTS (SELECT 1 FROM partner_moves m
      WHERE m.partner_id = p.partner_id AND m.from_cell = ${cell} AND m.switched_at IS NOT NULL)`;
  return rows.map((row) => ({
    partnerId: row.partnerId,
    backBy: row.cell === cell ? row.newestMove : undefined,
  }));
}

/**
 * Returns the number of the move by which a partner came back to the cell that it belongs to, or 0 if it has
 * never left that cell.
 */
export async function backBy(sql: Sql, partnerId: number, cell: number): Promise<number> {
  const away = await awayPartners(sql, cell);
  return away.find((partner) => partner.partnerId === partnerId)?.backBy ?? 0;
}

/** Maximum difference between the clocks of Redis and Postgres, in seconds. */
const CLOCKS_SECONDS = 60;

/**
 * True if, since shortly before the given entry, a partner has moved to the cell, or a moved partner's data
 * has been removed from it.
 */
export async function hasMovedSince(sql: Sql, cell: number, entryId: bigint): Promise<boolean> {
  const since = new Date(entryTimeMs(entryId) - CLOCKS_SECONDS * 1000);
  const rows = await sql`
    SELECT 1 FROM partner_moves
    WHERE to_cell = ${cell} AND switched_at > ${since}
      OR from_cell = ${cell} AND switched_at IS NOT NULL AND coalesce(finished_at, now()) > ${since} LIMIT 1`;
  return rows.length > 0;
}

/**
 * Returns the fence and epoch of a cell that is currently served. Writes under this fence are refused once
 * the cell has another owner or is prepared again.
 * @throws Error if no worker serves the cell
 */
export async function servedCell(
  sql: Sql,
  cell: number,
): Promise<{ readonly cell: number; readonly fence: bigint; readonly token: string }> {
  const [row] = await sql<{ fence: bigint; token: string }[]>`
    SELECT fence, (SELECT dataset_id FROM installation) || ':' || epoch AS token FROM cells
    WHERE cell = ${cell} AND lease_until > now() AND halted IS NULL`;
  if (row === undefined) throw new Error(`No worker serves cell ${cell}`);
  return { cell, ...row };
}

export interface Switch {
  readonly move: PartnerMove;
  /** Lease on the cell that the partner leaves. */
  readonly lease: CellLease;
  /** Fence under which the partner's new cell was filled. */
  readonly toFence: bigint;
  readonly untilId: bigint;
  /** Deadline for waiting on database locks, on the scale of performance.now(). */
  readonly deadline: number;
}

/**
 * Switches a partner to its new cell in one transaction. From its commit on, the new cell deals for the
 * partner. Blocks stay leased, because all dealt outcomes have been committed.
 * @param fill writes the data to the new cell that depends on the locked rows
 * @throws FencedError if one of the cells has another owner, or not all of the partner's entries are
 * committed
 */
export async function switchPartner(
  sql: Sql,
  { move, lease, toFence, untilId, deadline }: Switch,
  fill: (tx: Transaction) => Promise<void>,
): Promise<void> {
  const { moveId, partnerId, fromCell, toCell } = move;
  await sql.begin(async (tx) => {
    await boundLocks(tx, deadline - performance.now());
    // The cells are locked before the number of the change is assigned. A flush that closes a raffle uses the
    // same order. With the opposite order the two transactions could deadlock.
    const held = await tx<{ cell: number; fence: bigint; cursorId: bigint }[]>`
      SELECT cell, fence, cursor_id FROM cells WHERE cell IN (${fromCell}, ${toCell}) ORDER BY cell FOR NO KEY UPDATE`;
    const from = held.find(({ cell }) => cell === fromCell);
    const to = held.find(({ cell }) => cell === toCell);
    if (from?.fence !== lease.fence || to?.fence !== toFence || from.cursorId < untilId)
      throw new FencedError(
        `Cell ${fromCell} or ${toCell} has another owner, or entries are not committed yet`,
      );
    if (!(await livesIn(tx, partnerId, fromCell))) throw new FencedError('The partner is in another cell');
    await boundLocks(tx, deadline - performance.now());
    const changed = await nextChange(tx);
    await fill(tx);
    await boundLocks(tx, deadline - performance.now());
    await tx`UPDATE partners SET cell = ${toCell}, changed = ${changed} WHERE partner_id = ${partnerId}`;
    // The games of the partner are marked as changed as well, because the catalog stores the cell with each
    // game.
    await tx`UPDATE games SET changed = ${changed} WHERE partner_id = ${partnerId}`;
    await tx`UPDATE partner_moves SET until_id = ${untilId}, switched_at = now() WHERE move_id = ${moveId}`;
  });
}

/**
 * Waits for any transaction that may be about to switch the partner.
 * @returns true if the partner has been switched
 */
export async function isSwitched(sql: Sql, lease: CellLease, moveId: number): Promise<boolean> {
  return sql.begin(async (tx) => {
    await assertOwner(tx, lease);
    const [row] = await tx<{ switchedAt: Date | null }[]>`
      SELECT switched_at FROM partner_moves WHERE move_id = ${moveId}`;
    return row!.switchedAt !== null;
  });
}

/** Marks a partner's move as finished, whether it was carried out or cancelled. */
export async function finishMove(sql: Sql, moveId: number): Promise<void> {
  await sql`UPDATE partner_moves SET finished_at = now() WHERE move_id = ${moveId}`;
}

export async function failMove(sql: Sql, moveId: number, failure: string): Promise<void> {
  await sql`UPDATE partner_moves SET failure = ${failure} WHERE move_id = ${moveId}`;
}

/** By partner: the former cells in their order, each with the last entry that the partner made there. */
export type FormerCells = ReadonlyMap<number, readonly { readonly cell: number; readonly untilId: bigint }[]>;

export async function formerCells(tx: Transaction): Promise<FormerCells> {
  const rows = await tx<{ partnerId: number; fromCell: number; untilId: bigint }[]>`
    SELECT partner_id, from_cell, until_id FROM partner_moves WHERE switched_at IS NOT NULL ORDER BY move_id`;
  const former = new Map<number, { cell: number; untilId: bigint }[]>();
  for (const { partnerId, fromCell: cell, untilId } of rows) {
    const known = former.get(partnerId);
    if (known === undefined) former.set(partnerId, [{ cell, untilId }]);
    else known.push({ cell, untilId });
  }
  return former;
}

/** A partner that has moved or is moving to another cell, for the audit. */
export interface MovedPartner {
  readonly partnerId: number;
  readonly slug: string;
  readonly fromCell: number;
  readonly toCell: number;
  readonly gameIds: readonly number[];
}

export interface MoveReads {
  now(): Promise<Date>;
  /**
   * Returns the partners whose moves are under way, or ended after the given time by the clock of Postgres.
   */
  movedSince(at: Date | undefined): Promise<MovedPartner[]>;
}

export const openMoveReads = (sql: Sql): MoveReads => ({
  async now() {
    const [row] = await sql<{ now: Date }[]>`SELECT now()`;
    return row!.now;
  },
  async movedSince(at) {
    const rows = await sql<
      { partnerId: number; slug: string; fromCell: number; toCell: number; gameIds: number[] }[]
    >`
      SELECT partner_id, slug, from_cell, to_cell,
        ARRAY(SELECT game_id FROM games g WHERE g.partner_id = m.partner_id) AS game_ids
      FROM partner_moves m JOIN partners USING (partner_id)
      WHERE finished_at IS NULL OR finished_at >= ${at ?? 'infinity'} ORDER BY move_id`;
    return rows;
  },
});
