/** Decodes the reply to a batch (domain/layouts.ts, REPLY to REPLY_TAIL). */
import { REPLY, REPLY_PARTNER, REPLY_SPIN, REPLY_TAIL } from '../../domain/layouts.js';

/**
 * The decoded reply of lua/deal.lua: a head, a status and a CORE for each spin, and the tails of the spins
 * that have one.
 */
export class BatchReply {
  readonly buffer: Buffer;
  readonly #itemsAt: number;
  /** Tails of the reply by position of the spin in the batch; undefined if no spin has a tail. */
  readonly #tails: Map<number, Buffer> | undefined;

  constructor(buffer: Buffer, partnerCount: number, itemCount: number) {
    this.buffer = buffer;
    this.#itemsAt = REPLY.bytes + partnerCount * REPLY_PARTNER.bytes;
    const tailsAt = this.#itemsAt + itemCount * REPLY_SPIN.bytes;
    if (buffer.length < tailsAt) {
      throw new Error(
        `The reply of a batch has ${buffer.length} bytes, but at least ${tailsAt} were expected`,
      );
    }
    this.#tails = buffer.length === tailsAt ? undefined : readTails(buffer, tailsAt);
  }

  /** Time of the batch by the clock of Redis, in ms since the Unix epoch. */
  get timeMs(): number {
    return this.buffer.readUIntLE(0, 6);
  }

  /** Number of spin requests that the partner made in the current window before the batch. */
  spinsUsed(place: number): number {
    return this.#used(place, REPLY_PARTNER.at.spinsUsed);
  }

  /** Number of API requests that the partner made in the current window before the batch. */
  apiUsed(place: number): number {
    return this.#used(place, REPLY_PARTNER.at.apiUsed);
  }

  #used(place: number, at: number): number {
    return this.buffer.readUInt32LE(REPLY.bytes + place * REPLY_PARTNER.bytes + at);
  }

  status(place: number): number {
    return this.buffer[this.#itemsAt + place * REPLY_SPIN.bytes]!;
  }

  /**
   * Part of a spin's response that is not in its CORE; undefined if there is none. A replay repeats the tail.
   */
  tail(place: number): Buffer | undefined {
    return this.#tails?.get(place);
  }

  /** Offset of a spin's CORE in {@link buffer}. */
  coreAt(place: number): number {
    return this.#itemsAt + place * REPLY_SPIN.bytes + REPLY_SPIN.at.core;
  }
}

/** @throws Error if the last tail is truncated */
function readTails(buffer: Buffer, tailsAt: number): Map<number, Buffer> {
  const tails = new Map<number, Buffer>();
  let at = tailsAt;
  while (at < buffer.length) {
    const bytesAt = at + REPLY_TAIL.bytes;
    const { place, length } =
      bytesAt <= buffer.length ? REPLY_TAIL.read(buffer, at) : { place: 0, length: Number.POSITIVE_INFINITY };
    const end = bytesAt + length;
    if (end > buffer.length) throw new Error('The reply of a batch ends in the middle of a tail');
    tails.set(place, buffer.subarray(bytesAt, end));
    at = end;
  }
  return tails;
}
