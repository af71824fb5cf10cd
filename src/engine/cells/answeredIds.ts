/**
 * Keeps the id of the newest entry of each cell that this process has answered. Every script call contains
 * that id. A promoted replica that lacks the entry then refuses to deal, even before this process recognizes
 * the failover.
 */
import { entryTimeMs, parseEntryId } from '../../domain/entryId.js';

interface Answered {
  readonly epoch: string;
  readonly id: bigint;
  readonly bytes: Buffer;
}

export class AnsweredIds {
  readonly #cells = new Map<number, Answered>();

  /**
   * Records that an entry of the given epoch has been answered. Must be called in the same turn of the event
   * loop in which the entry is answered.
   */
  note(cell: number, epoch: string, id: bigint): void {
    const known = this.#cells.get(cell);
    if (known !== undefined && known.epoch === epoch && known.id >= id) return;
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeUIntLE(entryTimeMs(id), 0, 6);
    bytes.writeUInt16LE(parseEntryId(id).sequence, 6);
    this.#cells.set(cell, { epoch, id, bytes });
  }

  *all(): Iterable<{ readonly cell: number; readonly epoch: string; readonly id: bigint }> {
    for (const [cell, { epoch, id }] of this.#cells) yield { cell, epoch, id };
  }

  /**
   * Returns the newest answered entry in the byte format of lua/include/cell.lua, or undefined if no entry of
   * the epoch was answered.
   */
  newest(cell: number, epoch: string): Buffer | undefined {
    const known = this.#cells.get(cell);
    return known?.epoch === epoch ? known.bytes : undefined;
  }
}
