/**
 * Stores the ownership of cells. A worker leases a cell for a few seconds at a time. Each new owner gets a
 * higher fencing token (the fence), and every write of an owner checks the fence in the same transaction. A
 * paused worker that resumes after its lease has lapsed therefore can't write anything.
 */

import { CELL_MAX } from '../../domain/entryId.js';
import { because, nextChange, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { arrayOf, raw, rowsOf } from '../../postgres/statements.js';
import { OBSTACLES, type Obstacles, type ObstaclesRow, obstaclesOf } from '../recovery/obstacles.store.js';

export interface CellLease {
  readonly cell: number;
  readonly fence: bigint;
  readonly epoch: bigint;
  /** Epoch that Redis must hold: the dataset id of this database and the number of the epoch. */
  readonly token: string;
  readonly cursorId: bigint;
  readonly halted: string | null;
}

// SQL for the token of an epoch. It includes the dataset id, because the Redis of another installation may
// have an epoch with the same number.
export const TOKEN = raw(`(SELECT dataset_id FROM installation) || ':' || epoch`);

/** Number of cells, and number of live workers among which the cells are divided. */
export interface Division {
  readonly cells: number;
  readonly workers: number;
  /** Number of other live workers that started earlier than this worker. */
  readonly earlier: number;
  /** Number of cells that are not leased to any worker. */
  readonly free: number;
}

/**
 * Renews the owner's leases on the given cells.
 *
 * If the owner never learned that it had acquired a lease, because the reply of Postgres was lost, the lease
 * is not renewed. It lapses and is acquired again. The statement waits for a flush that locks the cell's row,
 * and renews from the end of that flush. No other worker can acquire the cell in the meantime.
 * @returns the cells that the owner still holds
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
 * Does the same as {@link renewCells}, records that the worker is alive, counts the other workers, and looks
 * for obstacles. All of this is one statement, because all workers run it continually. If the statement has
 * to wait for a row lock, it may miss a new obstacle, which the next call finds.
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

/**
 * Leases cells that have no owner or whose lease has lapsed, other than the cells in `except`.
 * @param cellsMax maximum number of cells to lease; null for no limit
 */
export async function acquireCells(
  sql: Sql,
  owner: string,
  leaseMs: number,
  cellsMax: number | null = null,
  except: readonly number[] = [],
): Promise<CellLease[]> {
  return sql<CellLease[]>`
    UPDATE cells SET owner = ${owner}, fence = fence + 1, lease_until = now() + ${leaseMs} * interval '1 millisecond'
    WHERE cell IN (SELECT cell FROM cells WHERE lease_until < now() AND cell <> ALL(${arrayOf(except)}::int[])
                   ORDER BY cell LIMIT ${cellsMax}::bigint FOR NO KEY UPDATE SKIP LOCKED)
    RETURNING cell, fence, epoch, ${TOKEN} AS token, cursor_id, halted`;
}

/** Releases all leases of a worker, so that other workers need not wait for them to lapse. */
export async function releaseCells(sql: Sql, owner: string): Promise<void> {
  await sql`
    UPDATE cells SET lease_until = '-infinity', owner = NULL
    WHERE cell IN (SELECT cell FROM cells WHERE owner = ${owner} ORDER BY cell FOR NO KEY UPDATE)`;
}

/**
 * Removes a worker and releases its cells in one statement. Other workers then divide the cells anew. These
 * workers never see only one of the two changes.
 */
export async function leave(sql: Sql, owner: string): Promise<void> {
  await sql`
    WITH gone AS (DELETE FROM workers WHERE owner = ${owner})
    UPDATE cells SET lease_until = '-infinity', owner = NULL
    WHERE cell IN (SELECT cell FROM cells WHERE owner = ${owner} ORDER BY cell FOR NO KEY UPDATE)`;
}

/** Releases the lease on one cell if its fence is unchanged. */
export async function releaseCell(sql: Sql, lease: { cell: number; fence: bigint }): Promise<void> {
  await sql`
    UPDATE cells SET lease_until = '-infinity', owner = NULL WHERE cell = ${lease.cell} AND fence = ${lease.fence}`;
}

/**
 * Time after which a database session that waits for its client counts as stalled, in seconds. It is longer
 * than the statement_timeout of any statement that does not wait for its client (connect.ts).
 */
const STALLED_SECONDS = 10;

/**
 * Terminates database sessions of this service that lock a row of `cells` and have been waiting for their
 * client for too long, within a statement or between two statements. A worker that is paused during a COPY is
 * such a session, and nobody could take its cells over: Postgres never ends a COPY that waits for its client,
 * whatever `statement_timeout` says. Other transactions lock the row last, and have no limit on their idle
 * time.
 * @returns the number of terminated sessions
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

/** The cell's lease went to another owner, and nothing was written. */
export class FencedError extends Error {}

/**
 * Locks the rows of cells and moves their cursors forward over new entries, the oldest of which is `first`. A
 * transaction that locks several rows does so in the order of the cells, so that two transactions can't
 * deadlock.
 * @throws FencedError if a cell has another owner or another epoch, or if its cursor is not at the expected
 * entry
 */
export async function moveCursors(tx: Transaction, moves: readonly CursorMove[]): Promise<void> {
  const cells = arrayOf(moves.map(({ lease }) => lease.cell));
  const given = moves.map(({ lease, from, first, to }) => ({
    ...lease,
    fromId: from,
    firstId: first,
    toId: to,
  }));
  const rows = await tx<{ cell: number }[]>`
    WITH held AS MATERIALIZED (SELECT cell FROM cells WHERE cell = ANY(${cells}::int[]) ORDER BY cell FOR NO KEY UPDATE)
    UPDATE cells c SET cursor_id = m.to_id, unchecked_from = coalesce(c.unchecked_from, m.first_id)
    FROM held JOIN ${rowsOf(given, { cell: 'int', fence: 'bigint', epoch: 'bigint', fromId: 'bigint', firstId: 'bigint', toId: 'bigint' }, 'm')} USING (cell)
    WHERE c.cell = m.cell AND c.fence = m.fence AND c.epoch = m.epoch AND c.cursor_id = m.from_id
    RETURNING c.cell`;
  if (rows.length === moves.length) return;
  const moved = new Set(rows.map(({ cell }) => cell));
  const lost = moves.filter(({ lease }) => !moved.has(lease.cell));
  throw new FencedError(
    lost
      .map(
        ({ lease }) =>
          `Fencing token ${lease.fence} of cell ${lease.cell} is no longer valid, because the cell has another owner`,
      )
      .join('; '),
  );
}

/** Locks the cell's row for this transaction. */
export async function assertOwner(tx: Transaction, lease: { cell: number; fence: bigint }): Promise<void> {
  const rows =
    await tx`SELECT 1 FROM cells WHERE cell = ${lease.cell} AND fence = ${lease.fence} FOR NO KEY UPDATE`;
  if (rows.length !== 1)
    throw new FencedError(
      `Fencing token ${lease.fence} of cell ${lease.cell} is no longer valid, because the cell has another owner`,
    );
}

/**
 * Raises the fence of a cell that this worker owns above the fence in Redis. This is needed if Postgres was
 * restored from a backup, or if Redis belongs to another installation.
 */
export async function raiseFence(sql: Sql, lease: CellLease, above: bigint): Promise<CellLease> {
  const [row] = await sql<{ fence: bigint }[]>`
    UPDATE cells SET fence = ${above + 1n} WHERE cell = ${lease.cell} AND fence = ${lease.fence} RETURNING fence`;
  if (row === undefined) throw new FencedError(`Cell ${lease.cell} has another owner`);
  return { ...lease, fence: row.fence };
}

/** Halts the flushing of a cell, with the reason, until an engineer has examined it. */
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

/** Resumes a halted cell after an engineer has examined it. */
export async function clearHalt(sql: Sql, cell: number): Promise<void> {
  await sql.begin(async (tx) => {
    const [before] = await tx<{ halted: string | null }[]>`
      SELECT halted FROM cells WHERE cell = ${cell} FOR NO KEY UPDATE`;
    if (before === undefined || before.halted === null) return;
    await tx`UPDATE cells SET halted = NULL WHERE cell = ${cell}`;
    await writeAuditEntry(tx, { actor: 'cli', action: 'cell.resume', subject: `cell:${cell}`, before });
  });
}

/** Reads the lease of every cell, without acquiring any lease. */
export async function cellLeases(sql: Sql): Promise<CellLease[]> {
  return sql<CellLease[]>`
    SELECT cell, fence, epoch, ${TOKEN} AS token, cursor_id, halted FROM cells ORDER BY cell`;
}

/**
 * Returns the fence of a cell and the id of its newest committed entry, or undefined if the cell does not
 * exist.
 */
export async function writtenOf(
  sql: Sql,
  cell: number,
): Promise<{ fence: bigint; cursor: bigint } | undefined> {
  const [row] = await sql<{ fence: bigint; cursor: bigint }[]>`
    SELECT fence, cursor_id AS cursor FROM cells WHERE cell = ${cell}`;
  return row;
}

export async function committedIdOf(sql: Sql, cell: number): Promise<bigint> {
  const [row] = await sql<{ cursorId: bigint }[]>`SELECT cursor_id FROM cells WHERE cell = ${cell}`;
  return row?.cursorId ?? 0n;
}

export async function cellOfPartner(sql: Sql | Transaction, partnerId: number): Promise<number | undefined> {
  const [row] = await sql<{ cell: number }[]>`SELECT cell FROM partners WHERE partner_id = ${partnerId}`;
  return row?.cell;
}

/**
 * True if a partner's data is in the given cell. This transaction must hold the cell's row, so that the
 * partner can't leave the cell before the transaction ends.
 */
export async function livesIn(tx: Transaction, partnerId: number, cell: number): Promise<boolean> {
  return (await cellOfPartner(tx, partnerId)) === cell;
}

/** True if a game is in the given cell, whose row this transaction must hold. */
export async function gameLivesIn(tx: Transaction, gameId: number, cell: number): Promise<boolean> {
  return (await cellOfGame(tx, gameId)) === cell;
}

export async function cellOfGame(sql: Sql | Transaction, gameId: number): Promise<number | undefined> {
  const [row] = await sql<{ cell: number }[]>`
    SELECT cell FROM partners JOIN games USING (partner_id) WHERE game_id = ${gameId}`;
  return row?.cell;
}

/**
 * Result of draining a cell, or of letting a drained cell take partners again. `unknown`: the cell does not
 * exist. `last`: no other cell would take partners.
 */
export type Drained = 'changed' | 'unknown' | 'last';

export class Cells {
  constructor(private readonly sql: Sql) {}

  async cursors(): Promise<{ cell: number; epoch: string; cursor: bigint }[]> {
    return this.sql<{ cell: number; epoch: string; cursor: bigint }[]>`
      SELECT cell, ${TOKEN} AS epoch, cursor_id AS cursor FROM cells`;
  }

  async halted(): Promise<{ cell: number; reason: string }[]> {
    return this.sql<{ cell: number; reason: string }[]>`
      SELECT cell, halted AS reason FROM cells WHERE halted IS NOT NULL ORDER BY cell`;
  }

  /**
   * Returns the cells that no worker owns, and the number of live workers. `lapsedAt` is null if the last
   * owner released the cell.
   */
  async unowned(): Promise<{
    readonly workers: number;
    readonly cells: readonly { readonly cell: number; readonly lapsedAt: Date | null }[];
  }> {
    const rows = await this.sql<{ cell: number; lapsedAt: Date | null; workers: number }[]>`
      SELECT cell, nullif(lease_until, '-infinity') AS lapsed_at,
        (SELECT count(*) FROM workers WHERE alive_until >= now())::int AS workers
      FROM cells WHERE lease_until < now() ORDER BY cell`;
    return {
      workers: rows[0]?.workers ?? 0,
      cells: rows.map((row) => ({ cell: row.cell, lapsedAt: row.lapsedAt })),
    };
  }

  /**
   * Adds cells with the next free numbers. Every process learns of them with its next poll of the catalog.
   * @returns the numbers of the new cells, or undefined if there would be more than 256 cells and none was
   * added
   */
  async add(actor: string, count: number): Promise<number[] | undefined> {
    return withChange(this.sql, async (tx) => {
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

  /**
   * Stops or resumes the assignment of new partners to a cell. Returns `last` if no other cell would take new
   * partners.
   */
  async setDraining(actor: string, cell: number, isDraining: boolean, reason?: string): Promise<Drained> {
    return this.sql.begin(async (tx) => {
      // The cell's row is locked before the number of the change is assigned. A comment in switchPartner
      // explains this order.
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

/** True if a cell takes no new partners; undefined if the cell does not exist. */
export async function drainingOf(tx: Transaction, cell: number): Promise<boolean | undefined> {
  const [row] = await tx<{ isDraining: boolean }[]>`SELECT is_draining FROM cells WHERE cell = ${cell}`;
  return row?.isDraining;
}

/** The partners to select: all partners of a cell, given by its number, or a single partner. */
export type PartnerScope = number | { readonly partnerId: number };

/** SQL condition that selects the rows of `partners` in the scope. */
export const inScopeText = (scope: PartnerScope): string =>
  typeof scope === 'number' ? `partners.cell = ${scope}` : `partners.partner_id = ${scope.partnerId}`;

/** The SQL condition that {@link inScopeText} returns, as a fragment for a tagged statement. */
export const inScope = (scope: PartnerScope): unknown => raw(inScopeText(scope));

/**
 * Select expression for the number of the newest completed move of a row of `partners`; 0 if the partner has
 * never moved.
 */
export const NEWEST_MOVE_TEXT = `coalesce((SELECT max(m.move_id) FROM partner_moves m
  WHERE m.partner_id = partners.partner_id AND m.switched_at IS NOT NULL), 0) AS newest_move`;
export const NEWEST_MOVE = raw(NEWEST_MOVE_TEXT);
