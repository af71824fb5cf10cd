/** Reads the reply to a batch (domain/layouts.ts, REPLY to REPLY_TAIL). */
import { REPLY, REPLY_PARTNER, REPLY_SPIN, REPLY_TAIL } from '../../domain/layouts.js';

/** Reads the reply of lua/deal.lua: a head, a status with a CORE for each spin, and the tails of those that have one. */
export class BatchReply {
  readonly buffer: Buffer;
  readonly #itemsAt: number;
  /** By the place of the spin; undefined where no spin has one. */
  readonly #tails: Map<number, Buffer> | undefined;

  constructor(buffer: Buffer, partnerCount: number, itemCount: number) {
    this.buffer = buffer;
    this.#itemsAt = REPLY.bytes + partnerCount * REPLY_PARTNER.bytes;
    const tailsAt = this.#itemsAt + itemCount * REPLY_SPIN.bytes;
    if (buffer.length < tailsAt) {
      throw new Error(`The reply of a batch has ${buffer.length} bytes, at least ${tailsAt} were expected`);
    }
    this.#tails = buffer.length === tailsAt ? undefined : readTails(buffer, tailsAt);
  }

  /** The store's clock at the batch, milliseconds since the epoch. */
  get timeMs(): number {
    return this.buffer.readUIntLE(0, 6);
  }

  /** Spin requests of the partner in this window before the batch. */
  spinsUsed(place: number): number {
    return this.#used(place, REPLY_PARTNER.at.spinsUsed);
  }

  /** API requests of the partner in this window before the batch. */
  apiUsed(place: number): number {
    return this.#used(place, REPLY_PARTNER.at.apiUsed);
  }

  #used(place: number, at: number): number {
    return this.buffer.readUInt32LE(REPLY.bytes + place * REPLY_PARTNER.bytes + at);
  }

  status(place: number): number {
    return this.buffer[this.#itemsAt + place * REPLY_SPIN.bytes]!;
  }

  /** What the spin's outcome has beside its CORE; undefined: nothing. A replay repeats it. */
  tail(place: number): Buffer | undefined {
    return this.#tails?.get(place);
  }

  /** Where the CORE of a spin begins in {@link buffer}. */
  coreAt(place: number): number {
    return this.#itemsAt + place * REPLY_SPIN.bytes + REPLY_SPIN.at.core;
  }
}

/** The tails that follow the items of a reply. @throws Error where the last one is cut off. */
function readTails(buffer: Buffer, tailsAt: number): Map<number, Buffer> {
  const tails = new Map<number, Buffer>();
  let at = tailsAt;
  while (at < buffer.length) {
    const bytesAt = at + REPLY_TAIL.bytes;
    const { place, length } =
      bytesAt <= buffer.length ? REPLY_TAIL.read(buffer, at) : { place: 0, length: Number.POSITIVE_INFINITY };
    const end = bytesAt + length;
    if (end > buffer.length) throw new Error('The reply of a batch ends within a tail');
    tails.set(place, buffer.subarray(bytesAt, end));
    at = end;
  }
  return tails;
}
