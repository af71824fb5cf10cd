/** What operators do to the cells: add some, and let one take no more partners. */

import { CELL_MAX } from '../domain/entryId.js';
import { audit, nextChange, withChange } from './changes.js';
import type { Sql, Transaction } from './client.js';

/**
 * Adds cells behind those that there are. Every process learns of them with its next poll of the catalog.
 * @returns the numbers of the new cells; undefined: there would be more than 256, and none was added
 */
export async function addCells(sql: Sql, actor: string, count: number): Promise<number[] | undefined> {
  return withChange(sql, async (tx) => {
    const [before] = await tx<{ cells: number }[]>`SELECT cells FROM installation FOR UPDATE`;
    const first = before!.cells;
    if (first + count > CELL_MAX + 1) return undefined;
    const added = Array.from({ length: count }, (_, i) => first + i);
    await tx`INSERT INTO cells (cell) SELECT generate_series(${first}::int, ${first + count - 1}::int)`;
    await tx`UPDATE installation SET cells = ${first + count}`;
    await audit(tx, {
      ...{ actor, action: 'cells.add', subject: 'installation' },
      ...{ before: { cells: first }, after: { cells: first + count } },
    });
    return added;
  });
}

/** How a cell was asked to drain, or to take partners again. */
export type Drained = 'changed' | 'unknown' | 'last';

/** Lets a cell take no new partners, or some again. `last`: no other cell would take any. */
export async function setDraining(
  sql: Sql,
  actor: string,
  cell: number,
  isDraining: boolean,
): Promise<Drained> {
  return sql.begin(async (tx) => {
    // The cell before the number of the change: see switchPartner.
    await tx`SELECT 1 FROM cells WHERE cell = ${cell} FOR NO KEY UPDATE`;
    await nextChange(tx);
    const before = await drainingOf(tx, cell);
    if (before === undefined) return 'unknown';
    if (isDraining && (await takesNobody(tx, cell))) return 'last';
    if (before === isDraining) return 'changed';
    await tx`UPDATE cells SET is_draining = ${isDraining} WHERE cell = ${cell}`;
    await audit(tx, {
      ...{ actor, action: 'cell.drain', subject: `cell:${cell}` },
      ...{ before: { isDraining: before }, after: { isDraining } },
    });
    return 'changed';
  });
}

async function takesNobody(tx: Transaction, without: number): Promise<boolean> {
  return (await tx`SELECT 1 FROM cells WHERE NOT is_draining AND cell <> ${without} LIMIT 1`).length === 0;
}

/** Whether a cell takes no new partners; undefined: there is no such cell. */
export async function drainingOf(tx: Transaction, cell: number): Promise<boolean | undefined> {
  const [row] = await tx<{ is_draining: boolean }[]>`SELECT is_draining FROM cells WHERE cell = ${cell}`;
  return row?.is_draining;
}
