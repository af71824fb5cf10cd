/**
 * Ownership of the cells. A worker leases a cell for a few seconds at a time; each new owner gets a higher fence, and
 * every write that an owner makes for its cell checks the fence in the same transaction. So a worker that was stopped
 * and comes back after its lease ended can write nothing.
 */

import { CELL_MAX } from '../../domain/entryId.js';
import { because, nextChange, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { arrayOf, raw } from '../../postgres/statements.js';
import { OBSTACLES, type Obstacles, type ObstaclesRow, obstaclesOf } from '../recovery/obstacles.store.js';

export interface CellLease {
  readonly cell: number;
  readonly fence: bigint;
  readonly epoch: bigint;
  /** What Redis must hold as its epoch: this database's identity and the number. */
  readonly token: string;
  /** Id of the newest booked ledger entry. */
  readonly cursorId: bigint;
  readonly halted: string | null;
}

// Of another installation's Redis the number alone would be the same.
export const TOKEN = raw(`(SELECT dataset_id FROM installation) || ':' || epoch`);

interface Row {
  cell: number;
  fence: bigint;
  epoch: bigint;
  token: string;
  cursor_id: bigint;
  halted: string | null;
}

const fromRow = (row: Row): CellLease => ({
  cell: row.cell,
  fence: row.fence,
  epoch: row.epoch,
  token: row.token,
  cursorId: row.cursor_id,
  halted: row.halted,
});

/** How the cells are divided among the workers that are there. */
export interface Division {
  readonly cells: number;
  readonly workers: number;
  /** Of the others, those that came earlier. */
  readonly earlier: number;
  /** Cells that nobody holds. */
  readonly free: number;
}

/**
 * Prolongs the leases of these cells that the owner still has; gives the cells that it holds on to. A lease that the
 * owner does not know of (the answer to its acquisition was lost) is not among them: it ends, and is taken anew.
 * It waits for a flush that holds the cell's row, and prolongs from the end of that: nobody took the cell meanwhile.
 */
export async function renewCells(
  sql: Sql,
  owner: string,
  cells: readonly number[],
  leaseMs: number,
): Promise<number[]> {
  const rows = await sql<{ cell: number }[]>`
    UPDATE cells SET lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    WHERE cell IN (SELECT cell FROM cells WHERE owner = ${owner} AND cell = ANY(${arrayOf(cells)}::int[]) AND lease_until >= now()
                   ORDER BY cell FOR NO KEY UPDATE)
    RETURNING cell`;
  return rows.map((row) => row.cell);
}

/**
 * As {@link renewCells}; says besides that the worker is there, counts the others, and looks for obstacles: all workers ask for all of it
 * all the time. Where it had to wait for a row, an obstacle that came meanwhile may be seen by the next call only.
 */
export async function renewAndDivide(
  sql: Sql,
  owner: string,
  cells: readonly number[],
  leaseMs: number,
): Promise<{
  readonly kept: readonly number[];
  readonly division: Division;
  readonly obstacles: Obstacles;
}> {
  const [row] = await sql.prepared<[Division & ObstaclesRow & { kept: number[] }]>`
    WITH renewed AS (
      UPDATE cells SET lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
      WHERE cell IN (SELECT cell FROM cells WHERE owner = ${owner} AND cell = ANY(${arrayOf(cells)}::int[]) AND lease_until >= now()
                     ORDER BY cell FOR NO KEY UPDATE)
      RETURNING cell),
    me AS (
      INSERT INTO workers (owner, alive_until)
      SELECT ${owner}, clock_timestamp() + ${leaseMs} * interval '1 millisecond' FROM (SELECT count(*) FROM renewed) renewal
      ON CONFLICT (owner) DO UPDATE SET alive_until = excluded.alive_until RETURNING owner, since),
    others AS (
      SELECT (w.since, w.owner) < (me.since, me.owner) AS is_earlier
      FROM workers w, me WHERE w.owner <> me.owner AND w.alive_until >= now()),
    gone AS (DELETE FROM workers WHERE owner <> ${owner} AND alive_until < now() - interval '1 minute')
    SELECT (SELECT count(*) FROM others)::int + 1 AS workers,
      (SELECT count(*) FROM others WHERE is_earlier)::int AS earlier,
      count(*)::int AS cells, (count(*) FILTER (WHERE lease_until < now()))::int AS free,
      array(SELECT cell FROM renewed) AS kept, ${OBSTACLES}
    FROM cells`;
  return { kept: row.kept, division: row, obstacles: obstaclesOf(row) };
}

/** Leases cells that nobody holds (or whose lease has ended), except some, and says which. @param cellsMax null: all */
export async function acquireCells(
  sql: Sql,
  owner: string,
  leaseMs: number,
  cellsMax: number | null = null,
  except: readonly number[] = [],
): Promise<CellLease[]> {
  const rows = await sql<Row[]>`
    UPDATE cells SET owner = ${owner}, fence = fence + 1, lease_until = now() + ${leaseMs} * interval '1 millisecond'
    WHERE cell IN (SELECT cell FROM cells WHERE lease_until < now() AND cell <> ALL(${arrayOf(except)}::int[])
                   ORDER BY cell LIMIT ${cellsMax}::bigint FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING cell, fence, epoch, ${TOKEN} AS token, cursor_id, halted`;
  return rows.map(fromRow);
}

/** Gives the cells back, so that another worker need not wait for the leases to end. */
export async function releaseCells(sql: Sql, owner: string): Promise<void> {
  await sql`
    UPDATE cells SET lease_until = '-infinity', owner = NULL
    WHERE cell IN (SELECT cell FROM cells WHERE owner = ${owner} ORDER BY cell FOR NO KEY UPDATE)`;
}

/** The worker goes: its cells are free, and the others divide them anew, both at once: none of them sees the one without the other. */
export async function leave(sql: Sql, owner: string): Promise<void> {
  await sql`
    WITH gone AS (DELETE FROM workers WHERE owner = ${owner})
    UPDATE cells SET lease_until = '-infinity', owner = NULL
    WHERE cell IN (SELECT cell FROM cells WHERE owner = ${owner} ORDER BY cell FOR NO KEY UPDATE)`;
}

/** Gives one cell back, where it is still ours. */
export async function releaseCell(sql: Sql, lease: { cell: number; fence: bigint }): Promise<void> {
  await sql`
    UPDATE cells SET lease_until = '-infinity', owner = NULL WHERE cell = ${lease.cell} AND fence = ${lease.fence}`;
}

/** Longer than a statement_timeout lets any statement run that does not wait for its client (connect.ts), seconds. */
const STALLED_SECONDS = 10;

/**
 * Ends sessions of this service that hold a row of `cells` and have waited for their client for long, in one statement or between two:
 * some transactions take the row last of all, and without a bound of Postgres's on their idle time.
 * @returns how many
 */
export async function endStalledSessions(sql: Sql): Promise<number> {
  const rows = await sql.prepared`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity a
    WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
      AND state <> 'idle' AND wait_event_type = 'Client' AND state_change < now() - make_interval(secs => ${STALLED_SECONDS}::int)
      AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND relation = 'cells'::regclass
        AND mode IN ('RowShareLock', 'RowExclusiveLock'))`;
  return rows.length;
}

export interface CursorMove {
  readonly lease: { readonly cell: number; readonly fence: bigint; readonly epoch: bigint };
  readonly from: bigint;
  readonly first: bigint;
  readonly to: bigint;
}

/** The cell's lease was lost to another owner; nothing was written. */
export class FencedError extends Error {}

/**
 * Takes the rows of cells for this transaction and moves their cursors over entries, of which `first` is the oldest. Whoever
 * takes several rows takes them in the order of the cells: two of them can't wait for each other.
 * @throws FencedError where another owner came, another epoch began, or a cursor is not where it was believed to be.
 */
export async function moveCursors(tx: Transaction, moves: readonly CursorMove[]): Promise<void> {
  const cells = arrayOf(moves.map(({ lease }) => lease.cell));
  const rows = await tx<{ cell: number }[]>`
    WITH held AS MATERIALIZED (SELECT cell FROM cells WHERE cell = ANY(${cells}::int[]) ORDER BY cell FOR NO KEY UPDATE)
    UPDATE cells c SET cursor_id = m.to_id, unchecked_from = coalesce(c.unchecked_from, m.first_id)
    FROM held JOIN unnest(${cells}::int[], ${arrayOf(moves.map(({ lease }) => lease.fence))}::bigint[],
      ${arrayOf(moves.map(({ lease }) => lease.epoch))}::bigint[], ${arrayOf(moves.map(({ from }) => from))}::bigint[],
      ${arrayOf(moves.map(({ first }) => first))}::bigint[], ${arrayOf(moves.map(({ to }) => to))}::bigint[])
      AS m(cell, fence, epoch, from_id, first_id, to_id) USING (cell)
    WHERE c.cell = m.cell AND c.fence = m.fence AND c.epoch = m.epoch AND c.cursor_id = m.from_id
    RETURNING c.cell`;
  if (rows.length === moves.length) return;
  const moved = new Set(rows.map(({ cell }) => cell));
  const lost = moves.filter(({ lease }) => !moved.has(lease.cell));
  throw new FencedError(
    lost.map(({ lease }) => `Cell ${lease.cell} is no longer written by fence ${lease.fence}`).join('; '),
  );
}

/** Holds the cell's row for this transaction. @throws FencedError where another owner came. */
export async function assertOwner(tx: Transaction, lease: { cell: number; fence: bigint }): Promise<void> {
  const rows =
    await tx`SELECT 1 FROM cells WHERE cell = ${lease.cell} AND fence = ${lease.fence} FOR NO KEY UPDATE`;
  if (rows.length !== 1)
    throw new FencedError(`Cell ${lease.cell} is no longer written by fence ${lease.fence}`);
}

/**
 * Raises the fence of a cell that is ours above one that Redis knows: Postgres was put back, or Redis is another's.
 * @throws FencedError where another owner came.
 */
export async function raiseFence(sql: Sql, lease: CellLease, above: bigint): Promise<CellLease> {
  const [row] = await sql<{ fence: bigint }[]>`
    UPDATE cells SET fence = ${above + 1n} WHERE cell = ${lease.cell} AND fence = ${lease.fence} RETURNING fence`;
  if (row === undefined) throw new FencedError(`Cell ${lease.cell} has another owner`);
  return { ...lease, fence: row.fence };
}

/** Stops the flushing of a cell, with the reason, until an engineer has looked. */
export async function haltCell(sql: Sql, cell: number, reason: string): Promise<void> {
  await sql.begin(async (tx) => {
    const rows =
      await tx`UPDATE cells SET halted = ${reason} WHERE cell = ${cell} AND halted IS NULL RETURNING cell`;
    if (rows.length === 0) return;
    await writeAuditEntry(tx, {
      actor: 'worker',
      action: 'cell.halt',
      subject: `cell:${cell}`,
      after: { reason },
    });
  });
}

/** A halted cell goes on: an engineer has looked. */
export async function clearHalt(sql: Sql, cell: number): Promise<void> {
  await sql.begin(async (tx) => {
    const [before] = await tx<{ halted: string | null }[]>`
      SELECT halted FROM cells WHERE cell = ${cell} FOR NO KEY UPDATE`;
    if (before === undefined || before.halted === null) return;
    await tx`UPDATE cells SET halted = NULL WHERE cell = ${cell}`;
    await writeAuditEntry(tx, { actor: 'cli', action: 'cell.resume', subject: `cell:${cell}`, before });
  });
}

/** Every cell as it is, without taking it: to look, not to write. */
export async function cellLeases(sql: Sql): Promise<CellLease[]> {
  const rows = await sql<Row[]>`
    SELECT cell, fence, epoch, ${TOKEN} AS token, cursor_id, halted FROM cells ORDER BY cell`;
  return rows.map(fromRow);
}

/** The fence under which a cell is written, and the id of its newest committed entry. Undefined where there is no such cell. */
export async function writtenOf(
  sql: Sql,
  cell: number,
): Promise<{ fence: bigint; cursor: bigint } | undefined> {
  const [row] = await sql<{ fence: bigint; cursor_id: bigint }[]>`
      SELECT fence, cursor_id FROM cells WHERE cell = ${cell}`;
  return row && { fence: row.fence, cursor: row.cursor_id };
}

/** Id of the newest booked ledger entry of a cell. */
export async function committedIdOf(sql: Sql, cell: number): Promise<bigint> {
  const [row] = await sql<{ cursor_id: bigint }[]>`SELECT cursor_id FROM cells WHERE cell = ${cell}`;
  return row?.cursor_id ?? 0n;
}

/** The cell that a partner lives in; undefined where there is no such partner. */
export async function cellOfPartner(sql: Sql | Transaction, partnerId: number): Promise<number | undefined> {
  const [row] = await sql<{ cell: number }[]>`SELECT cell FROM partners WHERE partner_id = ${partnerId}`;
  return row?.cell;
}

/** Whether a partner lives in a cell whose row this transaction holds: it can't leave the cell before the transaction ends. */
export async function livesIn(tx: Transaction, partnerId: number, cell: number): Promise<boolean> {
  return (await cellOfPartner(tx, partnerId)) === cell;
}

/** The same of a game. */
export async function gameLivesIn(tx: Transaction, gameId: number, cell: number): Promise<boolean> {
  return (await cellOfGame(tx, gameId)) === cell;
}

/** The cell that a game lives in: its partner's. */
export async function cellOfGame(sql: Sql | Transaction, gameId: number): Promise<number | undefined> {
  const [row] = await sql<{ cell: number }[]>`
    SELECT cell FROM partners JOIN games USING (partner_id) WHERE game_id = ${gameId}`;
  return row?.cell;
}

/** How a cell was asked to drain, or to take partners again. */
export type Drained = 'changed' | 'unknown' | 'last';

/** The cells as operators and front ends see them. */
export class Cells {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /** How far each cell is booked, and under which epoch. */
  async cursors(): Promise<{ cell: number; epoch: string; cursor: bigint }[]> {
    const rows = await this.#sql<{ cell: number; token: string; cursor_id: bigint }[]>`
      SELECT cell, ${TOKEN} AS token, cursor_id FROM cells`;
    return rows.map((row) => ({ cell: row.cell, epoch: row.token, cursor: row.cursor_id }));
  }

  /** The cells whose ledger is halted, with the reason. */
  async halted(): Promise<{ cell: number; reason: string }[]> {
    return this.#sql<{ cell: number; reason: string }[]>`
      SELECT cell, halted AS reason FROM cells WHERE halted IS NOT NULL ORDER BY cell`;
  }

  /**
   * Adds cells behind those that there are. Every process learns of them with its next poll of the catalog.
   * @returns the numbers of the new cells; undefined: there would be more than 256, and none was added
   */
  async add(actor: string, count: number): Promise<number[] | undefined> {
    return withChange(this.#sql, async (tx) => {
      const [before] = await tx<{ cells: number }[]>`SELECT cells FROM installation FOR UPDATE`;
      const first = before!.cells;
      if (first + count > CELL_MAX + 1) return undefined;
      const added = Array.from({ length: count }, (_, i) => first + i);
      await tx`INSERT INTO cells (cell) SELECT generate_series(${first}::int, ${first + count - 1}::int)`;
      await tx`UPDATE installation SET cells = ${first + count}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'cells.add',
        subject: 'installation',
        before: { cells: first },
        after: { cells: first + count },
      });
      return added;
    });
  }

  /** Lets a cell take no new partners, or some again. `last`: no other cell would take any. */
  async setDraining(actor: string, cell: number, isDraining: boolean, reason?: string): Promise<Drained> {
    return this.#sql.begin(async (tx) => {
      // The cell before the number of the change: see switchPartner.
      await tx`SELECT 1 FROM cells WHERE cell = ${cell} FOR NO KEY UPDATE`;
      await nextChange(tx);
      const before = await drainingOf(tx, cell);
      if (before === undefined) return 'unknown';
      if (isDraining && (await takesNobody(tx, cell))) return 'last';
      if (before === isDraining) return 'changed';
      await tx`UPDATE cells SET is_draining = ${isDraining} WHERE cell = ${cell}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'cell.drain',
        subject: `cell:${cell}`,
        before: { isDraining: before },
        after: { isDraining, ...because(reason) },
      });
      return 'changed';
    });
  }
}

async function takesNobody(tx: Transaction, without: number): Promise<boolean> {
  return (await tx`SELECT 1 FROM cells WHERE NOT is_draining AND cell <> ${without} LIMIT 1`).length === 0;
}

/** Whether a cell takes no new partners; undefined: there is no such cell. */
export async function drainingOf(tx: Transaction, cell: number): Promise<boolean | undefined> {
  const [row] = await tx<{ is_draining: boolean }[]>`SELECT is_draining FROM cells WHERE cell = ${cell}`;
  return row?.is_draining;
}

/** A cell's number, or a partner. */
export type PartnerScope = number | { readonly partnerId: number };

/** SQL that is true of the rows of `partners` that are meant. */
export const inScopeText = (scope: PartnerScope): string =>
  typeof scope === 'number' ? `partners.cell = ${scope}` : `partners.partner_id = ${scope.partnerId}`;

/** The same, to be part of a statement. */
export const inScope = (scope: PartnerScope): unknown => raw(inScopeText(scope));

/** Number of the newest move that is done of a row of `partners`; 0: it never moved. */
export const NEWEST_MOVE_TEXT = `coalesce((SELECT max(m.move_id) FROM partner_moves m
  WHERE m.partner_id = partners.partner_id AND m.switched_at IS NOT NULL), 0) AS newest_move`;
export const NEWEST_MOVE = raw(NEWEST_MOVE_TEXT);
