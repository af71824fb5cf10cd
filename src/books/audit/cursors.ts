/** Verifies that the cursor of each cell is the id of its newest committed entry or note. */
import type { Facts } from './auditReads.store.js';
import type { Findings } from './report.js';
import { cellOfId } from './storeAudit.js';
import { idOf } from './tables.js';

/**
 * Parts of an entry id: the mask of the sequence within a millisecond, and the increment of one millisecond.
 */
const SEQUENCE = 0x3fffn;
const NEXT_MS = 1n << 22n;

/** Returns the entry id that the cell assigns after the given one within the same script call. */
const nextId = (id: bigint): bigint => ((id & SEQUENCE) === SEQUENCE ? id - SEQUENCE + NEXT_MS : id + 1n);

/** @param newest newest ledger entry of each cell, as the upper and lower 32 bits of its id */
export function auditCursors(
  { cursors, communal, formerCells, rotations }: Facts,
  findings: Findings,
  newest: ReadonlyMap<number, { high: number; low: number }>,
): void {
  for (const [cell, cursorId] of cursors) {
    const words = newest.get(cell);
    // The last note of the pot of a partner that moved may lie in the cell that the partner left.
    const noted = communal.pots.map(({ notedTo }) => notedTo).filter((id) => cellOfId(id) === cell);
    // Notes of a partner that has left a cell are not recorded individually. Only the id of the partner's
    // last entry in that cell is recorded.
    for (const former of formerCells.values())
      for (const left of former) if (left.cell === cell) noted.push(left.untilId);
    noted.push(...rotations.filter((id) => cellOfId(id) === cell));
    const teller = communal.tellers.get(cell);
    // The notice of a share is noted directly after its spin. A game without a communal progressive writes no
    // other notes.
    if (teller !== undefined) noted.push(nextId(teller));
    const newestId = [words === undefined ? 0n : idOf(words.high, words.low), ...noted].reduce((a, b) =>
      a > b ? a : b,
    );
    if (cursorId === newestId) continue;
    const problem =
      cursorId < newestId
        ? 'the ledger has entries above the cursor'
        : 'the cursor is above the newest entry of the ledger';
    findings.found('cursors', problem, { cell }, newestId, cursorId);
  }
}
