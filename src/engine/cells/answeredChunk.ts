/**
 * A buffer of answered spins in binary form. As hundreds of thousands of short-lived objects, the spins would
 * have to be moved by the garbage collector, at 4 % of the cost of a spin. One spin is stored as:
 *
 *   entryId u64 | partnerId u32 | gameId u32 | outcomeCode u16 | balanceMicros f64
 *   | bytes of playerId u16 | bytes of requestId u16 | playerId UTF-8 | requestId UTF-8
 */
import type { AnsweredSpin } from './answered.store.js';
import { writeText } from './batch.js';

export const CHUNK_BYTES = 32_768;
const HEAD_BYTES = 30;
/** Size of the largest spin, whose playerId and requestId have 128 characters each, in bytes. */
const SPIN_BYTES_MAX = HEAD_BYTES + 2 * 128 * 4;
const NONE = 0xffff;

interface Request {
  readonly partner: { readonly partnerId: number };
  readonly gameId: number;
  readonly playerId: string;
  readonly requestId: string | undefined;
}

export class AnsweredChunk {
  readonly #bytes = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  /**
   * A DataView writes a number in a quarter of the time that a Buffer needs, and writes a bigint without
   * creating garbage.
   */
  readonly #view = new DataView(this.#bytes.buffer);
  #length = 0;
  #count = 0;
  #epoch = '';
  #newestId = 0n;

  /** Empties the chunk and starts it anew for the given epoch of a cell. */
  begin(epoch: string): void {
    this.#length = 0;
    this.#count = 0;
    this.#epoch = epoch;
    this.#newestId = 0n;
  }

  get epoch(): string {
    return this.#epoch;
  }

  /**
   * Id of the entry that must be committed before the chunk can be dropped. No spin in the chunk has a newer
   * entry.
   */
  get newestId(): bigint {
    return this.#newestId;
  }

  get count(): number {
    return this.#count;
  }

  get hasRoom(): boolean {
    return this.#length + SPIN_BYTES_MAX <= CHUNK_BYTES;
  }

  /**
   * Appends a spin. {@link hasRoom} must be true.
   * @param upTo the spin's entry, or a newer entry of the same cell that is committed in the same flush or in
   * a later one
   */
  add(
    entryId: bigint,
    { partner, gameId, playerId, requestId }: Request,
    { outcomeCode, balanceMicros }: { readonly outcomeCode: number; readonly balanceMicros: number },
    upTo: bigint,
  ): void {
    const bytes = this.#bytes;
    const view = this.#view;
    const at = this.#length;
    view.setBigUint64(at, entryId, true);
    view.setUint32(at + 8, partner.partnerId, true);
    view.setUint32(at + 12, gameId, true);
    view.setUint16(at + 16, outcomeCode, true);
    view.setFloat64(at + 18, balanceMicros, true);
    const playerBytes = writeText(bytes, playerId, at + HEAD_BYTES);
    view.setUint16(at + 26, playerBytes, true);
    const requestAt = at + HEAD_BYTES + playerBytes;
    const requestBytes = requestId === undefined ? 0 : writeText(bytes, requestId, requestAt);
    view.setUint16(at + 28, requestId === undefined ? NONE : requestBytes, true);
    this.#length = requestAt + requestBytes;
    this.#count++;
    if (upTo > this.#newestId) this.#newestId = upTo;
  }

  spins(): AnsweredSpin[] {
    const bytes = this.#bytes;
    const spins: AnsweredSpin[] = [];
    for (let at = 0; at < this.#length; ) {
      const playerAt = at + HEAD_BYTES;
      const requestAt = playerAt + bytes.readUInt16LE(at + 26);
      const requestBytes = bytes.readUInt16LE(at + 28);
      const end = requestAt + (requestBytes === NONE ? 0 : requestBytes);
      spins.push({
        entryId: bytes.readBigUInt64LE(at),
        partnerId: bytes.readUInt32LE(at + 8),
        gameId: bytes.readUInt32LE(at + 12),
        outcomeCode: bytes.readUInt16LE(at + 16),
        balanceMicros: bytes.readDoubleLE(at + 18),
        playerId: bytes.toString('utf8', playerAt, requestAt),
        requestId: requestBytes === NONE ? undefined : bytes.toString('utf8', requestAt, end),
      });
      at = end;
    }
    return spins;
  }
}
