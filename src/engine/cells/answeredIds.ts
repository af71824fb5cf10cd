/**
 * The newest entry of each cell that this process has answered. Each call of a script tells it: a server that lacks the entry, because an
 * older copy has taken over and is not recognised yet, then deals nothing.
 */
import { entryTimeMs, parseEntryId } from '../../domain/entryId.js';

interface Answered {
  readonly epoch: string;
  readonly id: bigint;
  readonly bytes: Buffer;
}

export class AnsweredIds {
  readonly #cells = new Map<number, Answered>();

  /** An entry that was made under an epoch is answered, in the same turn of the event loop. */
  note(cell: number, epoch: string, id: bigint): void {
    const known = this.#cells.get(cell);
    if (known !== undefined && known.epoch === epoch && known.id >= id) return;
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeUIntLE(entryTimeMs(id), 0, 6);
    bytes.writeUInt16LE(parseEntryId(id).sequence, 6);
    this.#cells.set(cell, { epoch, id, bytes });
  }

  /** The newest of each cell. */
  *all(): Iterable<{ readonly cell: number; readonly epoch: string; readonly id: bigint }> {
    for (const [cell, { epoch, id }] of this.#cells) yield { cell, epoch, id };
  }

  /** As a script reads it (lua/include/cell.lua); undefined: none was answered under the epoch. */
  newest(cell: number, epoch: string): Buffer | undefined {
    const known = this.#cells.get(cell);
    return known?.epoch === epoch ? known.bytes : undefined;
  }
}
