/**
 * Verifies that every entry has the cell of its partner in its id, and that the cursor of each cell is the id
 * of its newest committed entry or note.
 */
import type { Facts } from './auditReads.store.js';
import { cellOf, cellOfWords, idOf, nextId } from './ids.js';
import type { CheckedEntry, LedgerCheck } from './ledgerCheck.js';
import type { Findings } from './report.js';

export class CursorCheck implements LedgerCheck {
  /** Newest entry of each cell, as the upper and lower 32 bits of its id. */
  readonly #newest = new Map<number, { high: number; low: number }>();

  constructor(
    private readonly facts: Pick<
      Facts,
      'partnerCells' | 'formerCells' | 'cursors' | 'communal' | 'rotations' | 'boundary'
    >,
    private readonly findings: Findings,
  ) {
    for (const [cell, id] of facts.boundary.cells)
      this.#newest.set(cell, { high: Number(id >> 32n), low: Number(id & 0xffffffffn) });
  }

  row({ high, low, partnerId, place }: CheckedEntry): void {
    const cell = cellOfWords(low);
    const newest = this.#newest.get(cell);
    if (newest === undefined) this.#newest.set(cell, { high, low });
    else {
      newest.high = high;
      newest.low = low;
    }
    const { formerCells, partnerCells } = this.facts;
    const left = formerCells.get(partnerId)?.find(({ untilId }) => idOf(high, low) <= untilId);
    const expected = left?.cell ?? partnerCells.get(partnerId);
    if (expected === cell) return;
    const problem = "the cell in the entry's id is not the cell of its partner";
    this.findings.found('cursors', problem, place, expected, cell);
  }

  end(): void {
    const { cursors, communal, formerCells, rotations } = this.facts;
    for (const [cell, cursorId] of cursors) {
      const words = this.#newest.get(cell);
      // The last note of the pot of a partner that moved may lie in the cell that the partner left.
      const noted = communal.pots.map(({ notedTo }) => notedTo).filter((id) => cellOf(id) === cell);
      // Notes of a partner that has left a cell are not recorded individually. Only the id of the partner's
      // last entry in that cell is recorded.
      for (const former of formerCells.values())
        for (const left of former) if (left.cell === cell) noted.push(left.untilId);
      noted.push(...rotations.filter((id) => cellOf(id) === cell));
      const teller = communal.tellers.get(cell);
      // The notice of a share is noted directly after its spin. A game without a communal progressive writes
      // no other notes.
      if (teller !== undefined) noted.push(nextId(teller));
      const newestId = [words === undefined ? 0n : idOf(words.high, words.low), ...noted].reduce((a, b) =>
        a > b ? a : b,
      );
      if (cursorId === newestId) continue;
      const problem =
        cursorId < newestId
          ? 'the ledger has entries above the cursor'
          : 'the cursor is above the newest entry of the ledger';
      this.findings.found('cursors', problem, { cell }, newestId, cursorId);
    }
    this.findings.looked('cursors', 'cells', cursors.size);
  }
}
