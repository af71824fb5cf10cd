/** Moves of partners from cell to cell: requested by an operator, carried out by the worker of the old cell, on record for good. */

import { entryTimeMs } from '../../domain/entryId.js';
import type { MoveStep, PartnerMove as PartnerMoveSchema } from '../../domain/partnerMove.js';
import type { WithDates } from '../../domain/schema.js';
import { because, nextChange, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { boundLocks } from '../../postgres/limits.js';
import { arrayOf } from '../../postgres/statements.js';
import {
  assertOwner,
  type CellLease,
  drainingOf,
  FencedError,
  livesIn,
  NEWEST_MOVE,
} from '../cells/cells.store.js';
import type { AwayPartner } from '../redis/cellHead.js';

/** `switchedAt` is null while the old cell deals for the partner, `finishedAt` while something of the move is left to do, also after it failed. */
export type PartnerMove = WithDates<typeof PartnerMoveSchema, 'requestedAt' | 'switchedAt' | 'finishedAt'>;

interface Row {
  move_id: number;
  partner_id: number;
  from_cell: number;
  to_cell: number;
  requested_at: Date;
  switched_at: Date | null;
  finished_at: Date | null;
  failure: string | null;
}

const moveOf = (row: Row): PartnerMove => ({
  moveId: row.move_id,
  partnerId: row.partner_id,
  fromCell: row.from_cell,
  toCell: row.to_cell,
  requestedAt: row.requested_at,
  switchedAt: row.switched_at,
  finishedAt: row.finished_at,
  failure: row.failure,
});

/** Why no move was begun. `there`: the partner lives in that cell. `moving`: a move of it is under way. */
export type NotMoved = 'noSuchPartner' | 'noSuchCell' | 'cellDrains' | 'there' | 'moving';

/** Moves of partners, as operators ask for them. */
export class PartnerMoves {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** Puts a move on record; the old cell's worker finds it there. */
  async request(
    actor: string,
    partnerId: number,
    toCell: number,
    reason?: string,
  ): Promise<PartnerMove | NotMoved> {
    return withChange(this.#sql, async (tx) => {
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
      const [row] = await tx<Row[]>`
        INSERT INTO partner_moves (partner_id, from_cell, to_cell) VALUES (${partnerId}, ${partner.cell}, ${toCell})
        RETURNING *`;
      await writeAuditEntry(tx, {
        actor,
        action: 'partner.move',
        subject: `partner:${partnerId}`,
        before: { cell: partner.cell },
        after: { cell: toCell, ...because(reason) },
      });
      return moveOf(row!);
    });
  }

  /** The newest moves of a partner, newest first. */
  async ofPartner(partnerId: number): Promise<PartnerMove[]> {
    const rows = await this.#sql<Row[]>`
      SELECT * FROM partner_moves WHERE partner_id = ${partnerId} ORDER BY move_id DESC LIMIT 20`;
    return rows.map(moveOf);
  }
}

/** Numbers for the next steps of a partner's move, ascending: a cell refuses a step once it has seen a later one. */
export async function nextSteps(sql: Sql, partnerId: number, count: number): Promise<MoveStep[]> {
  const rows = await sql<{ number: bigint }[]>`
    SELECT nextval('move_steps') AS number FROM generate_series(1, ${count}::int) ORDER BY 1`;
  return rows.map(({ number }) => ({ partnerId, number }));
}

/** Moves out of some cells that are not finished, oldest first. */
export async function openMoves(sql: Sql, cells: readonly number[]): Promise<PartnerMove[]> {
  const rows = await sql<Row[]>`
    SELECT * FROM partner_moves WHERE finished_at IS NULL AND from_cell = ANY(${arrayOf(cells)}::int[]) ORDER BY move_id`;
  return rows.map(moveOf);
}

/** The partners that have left a cell, also those that have come back. */
export async function awayPartners(sql: Sql, cell: number): Promise<AwayPartner[]> {
  const rows = await sql<{ partner_id: number; cell: number; newest_move: number }[]>`
    SELECT partner_id, cell, newest_move FROM (SELECT partner_id, cell, ${NEWEST_MOVE} FROM partners) p
    WHERE EXISTS (SELECT 1 FROM partner_moves m
      WHERE m.partner_id = p.partner_id AND m.from_cell = ${cell} AND m.switched_at IS NOT NULL)`;
  return rows.map((row) => ({
    partnerId: row.partner_id,
    backBy: row.cell === cell ? row.newest_move : undefined,
  }));
}

/** By which move a partner has come back to the cell that it lives in; 0: it never left it. */
export async function backBy(sql: Sql, partnerId: number, cell: number): Promise<number> {
  const away = await awayPartners(sql, cell);
  return away.find((partner) => partner.partnerId === partnerId)?.backBy ?? 0;
}

/** Clocks of the stores may differ by so much. */
const CLOCKS_SECONDS = 60;

/** Whether a partner has come to a cell, or what it had there was removed, since an entry was made, or shortly before. */
export async function hasMovedSince(sql: Sql, cell: number, entryId: bigint): Promise<boolean> {
  const since = new Date(entryTimeMs(entryId) - CLOCKS_SECONDS * 1000);
  const rows = await sql`
    SELECT 1 FROM partner_moves
    WHERE to_cell = ${cell} AND switched_at > ${since}
      OR from_cell = ${cell} AND switched_at IS NOT NULL AND coalesce(finished_at, now()) > ${since} LIMIT 1`;
  return rows.length > 0;
}

/**
 * Who may write a cell now: whoever writes by this fence is refused once the cell has another owner, or is prepared anew.
 * @throws Error where no worker serves the cell.
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
  /** Of the old cell. */
  readonly lease: CellLease;
  /** By which the new cell was filled. */
  readonly toFence: bigint;
  readonly untilId: bigint;
  /** No lock is waited for beyond it; as performance.now() counts. */
  readonly deadline: number;
}

/**
 * Switches a partner to its new cell, in one transaction: from its commit on it is dealt for there. Blocks stay leased: all that was
 * dealt is booked.
 * @param fill writes to the new cell what depends on the rows that are held meanwhile
 * @throws FencedError where one of the cells has another owner, or not all of the partner's entries are booked.
 */
export async function switchPartner(
  sql: Sql,
  { move, lease, toFence, untilId, deadline }: Switch,
  fill: (tx: Transaction) => Promise<void>,
): Promise<void> {
  const { moveId, partnerId, fromCell, toCell } = move;
  await sql.begin(async (tx) => {
    await boundLocks(tx, deadline - performance.now());
    // Cells before the number of the change, as a flush does that closes a raffle: the other way round each would wait for the other.
    const held = await tx<{ cell: number; fence: bigint; cursor_id: bigint }[]>`
      SELECT cell, fence, cursor_id FROM cells WHERE cell IN (${fromCell}, ${toCell}) ORDER BY cell FOR NO KEY UPDATE`;
    const from = held.find(({ cell }) => cell === fromCell);
    const to = held.find(({ cell }) => cell === toCell);
    if (from?.fence !== lease.fence || to?.fence !== toFence || from.cursor_id < untilId)
      throw new FencedError(`Cell ${fromCell} or ${toCell} has another owner, or entries are not booked`);
    if (!(await livesIn(tx, partnerId, fromCell))) throw new FencedError('The partner lives in another cell');
    await boundLocks(tx, deadline - performance.now());
    const changed = await nextChange(tx);
    await fill(tx);
    await boundLocks(tx, deadline - performance.now());
    await tx`UPDATE partners SET cell = ${toCell}, changed = ${changed} WHERE partner_id = ${partnerId}`;
    // The catalog has the cell with each game.
    await tx`UPDATE games SET changed = ${changed} WHERE partner_id = ${partnerId}`;
    await tx`UPDATE partner_moves SET until_id = ${untilId}, switched_at = now() WHERE move_id = ${moveId}`;
  });
}

/** Whether the partner was switched, for certain: waits for a transaction that may be about it. @throws FencedError where the cell has another owner. */
export async function isSwitched(sql: Sql, lease: CellLease, moveId: number): Promise<boolean> {
  return sql.begin(async (tx) => {
    await assertOwner(tx, lease);
    const [row] = await tx<{ switched_at: Date | null }[]>`
      SELECT switched_at FROM partner_moves WHERE move_id = ${moveId}`;
    return row!.switched_at !== null;
  });
}

/** Nothing is left to be done of a move, whether it was carried out or given up. */
export async function finishMove(sql: Sql, moveId: number): Promise<void> {
  await sql`UPDATE partner_moves SET finished_at = now() WHERE move_id = ${moveId}`;
}

/** @param failure why the move was given up */
export async function failMove(sql: Sql, moveId: number, failure: string): Promise<void> {
  await sql`UPDATE partner_moves SET failure = ${failure} WHERE move_id = ${moveId}`;
}

/** By partner: up to which entry it lived in which cell, in their order. */
export type FormerCells = ReadonlyMap<number, readonly { readonly cell: number; readonly untilId: bigint }[]>;

/** Where partners lived before. */
export async function formerCells(tx: Transaction): Promise<FormerCells> {
  const rows = await tx<{ partner_id: number; from_cell: number; until_id: bigint }[]>`
    SELECT partner_id, from_cell, until_id FROM partner_moves WHERE switched_at IS NOT NULL ORDER BY move_id`;
  const former = new Map<number, { cell: number; untilId: bigint }[]>();
  for (const { partner_id: partnerId, from_cell: cell, until_id: untilId } of rows) {
    const known = former.get(partnerId);
    if (known === undefined) former.set(partnerId, [{ cell, untilId }]);
    else known.push({ cell, untilId });
  }
  return former;
}

/** A partner that changes its cell, for the audit. */
export interface MovedPartner {
  readonly partnerId: number;
  readonly slug: string;
  readonly fromCell: number;
  readonly toCell: number;
  readonly gameIds: readonly number[];
}

export interface MoveReads {
  now(): Promise<Date>;
  /** Partners whose moves are under way, or ended after a moment of the database's clock. */
  movedSince(at: Date | undefined): Promise<MovedPartner[]>;
}

export const openMoveReads = (sql: Sql): MoveReads => ({
  async now() {
    const [row] = await sql<{ now: Date }[]>`SELECT now()`;
    return row!.now;
  },
  async movedSince(at) {
    const rows = await sql<
      { partner_id: number; slug: string; from_cell: number; to_cell: number; game_ids: number[] }[]
    >`
      SELECT partner_id, slug, from_cell, to_cell,
        ARRAY(SELECT game_id FROM games g WHERE g.partner_id = m.partner_id) AS game_ids
      FROM partner_moves m JOIN partners USING (partner_id)
      WHERE finished_at IS NULL OR finished_at >= ${at ?? 'infinity'} ORDER BY move_id`;
    return rows.map((row) => ({
      partnerId: row.partner_id,
      slug: row.slug,
      gameIds: row.game_ids,
      fromCell: row.from_cell,
      toCell: row.to_cell,
    }));
  },
});
