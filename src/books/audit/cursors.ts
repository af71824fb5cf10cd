/** The cursor of each cell is at the newest of what is booked of it: an entry of the ledger, or a note. */
import type { Facts } from './auditReads.store.js';
import type { Findings } from './report.js';
import { cellOfId } from './storeAudit.js';
import { idOf } from './tables.js';

/** Of an entry's id: the sequence within its millisecond, and where the millisecond begins. */
const SEQUENCE = 0x3fffn;
const NEXT_MS = 1n << 22n;

/** The id that the cell gives next, in the same call. */
const nextId = (id: bigint): bigint => ((id & SEQUENCE) === SEQUENCE ? id - SEQUENCE + NEXT_MS : id + 1n);

/** @param newest by cell: the words of the id of its newest entry in the ledger */
export function auditCursors(
  { cursors, communal, formerCells, rotations }: Facts,
  findings: Findings,
  newest: ReadonlyMap<number, { high: number; low: number }>,
): void {
  for (const [cell, cursorId] of cursors) {
    const words = newest.get(cell);
    // The pot of a partner that has moved was noted last in the cell that it left.
    const noted = communal.pots.map(({ notedTo }) => notedTo).filter((id) => cellOfId(id) === cell);
    // Of what a partner that has left noted there, only where it ended is known.
    for (const former of formerCells.values())
      for (const left of former) if (left.cell === cell) noted.push(left.untilId);
    noted.push(...rotations.filter((id) => cellOfId(id) === cell));
    const teller = communal.tellers.get(cell);
    // That a spin told a share is noted right after it; a game without a bonus notes nothing else.
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
