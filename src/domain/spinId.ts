/**
 * Spin ids: the ledger entry's id and its partner, encrypted as one AES block and written in hexadecimal. A
 * partner can infer neither order nor volume from spin ids, and can't forge them, because the unused bytes
 * must be zero.
 */
import { type Cipher, createCipheriv, createDecipheriv } from 'node:crypto';

const BLOCK_BYTES = 16;

export class SpinIds {
  readonly #key: Buffer;
  /**
   * Cipher that all batches share. Blocks are encrypted one by one (ECB), so the cipher keeps no state
   * between calls.
   */
  readonly #cipher: Cipher;

  /** @param key 16 secret bytes, which must not change during the life of the ledger */
  constructor(key: Buffer) {
    if (key.length !== BLOCK_BYTES) throw new RangeError('The spin id key must have 16 bytes');
    this.#key = key;
    this.#cipher = createCipheriv('aes-128-ecb', key, null);
    this.#cipher.setAutoPadding(false);
  }

  /**
   * Encodes the ids of a whole batch in one call. The result has {@link SPIN_ID_CHARACTERS} characters for
   * each spin, in the order of the blocks.
   * @param blocks 16 bytes per spin: entry id u64, partner id u32 (little endian), four zeros
   */
  encode(blocks: Buffer): string {
    return this.#cipher.update(blocks).toString('hex');
  }

  encodeOne(entryId: bigint, partnerId: number): string {
    const block = Buffer.alloc(BLOCK_BYTES);
    block.writeBigUInt64LE(entryId, 0);
    block.writeUInt32LE(partnerId, 8);
    return this.encode(block);
  }

  /**
   * Encodes the id of an entry that is not a spin. It never equals the id of a spin.
   * @param kind 1 to 2^32 − 1
   */
  encodeOther(entryId: bigint, partnerId: number, kind: number): string {
    const block = Buffer.alloc(BLOCK_BYTES);
    block.writeBigUInt64LE(entryId, 0);
    block.writeUInt32LE(partnerId, 8);
    block.writeUInt32LE(kind, 12);
    return this.encode(block);
  }

  /** Undefined if this service never issued it. */
  decode(spinId: string): { entryId: bigint; partnerId: number } | undefined {
    if (!/^[0-9a-f]{32}$/.test(spinId)) return undefined;
    const decipher = createDecipheriv('aes-128-ecb', this.#key, null);
    decipher.setAutoPadding(false);
    const block = decipher.update(Buffer.from(spinId, 'hex'));
    if (block.readUInt32LE(12) !== 0) return undefined;
    return { entryId: block.readBigUInt64LE(0), partnerId: block.readUInt32LE(8) };
  }
}
