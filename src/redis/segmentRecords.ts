/** SEGMENTS (lua/include/records.lua): which request ids Redis holds of a cell. Little endian. */
import { readId } from './records.js';

/** The field `segments` of a cell's hash: which request ids Redis holds. */
export interface Segments {
  /** Request ids of entries up to this one are released. */
  readonly releasedId: bigint;
  /** Number of the oldest segment. */
  readonly first: number;
  /** Newest entry of each closed segment, oldest first; one more segment follows them, which is written. */
  readonly closed: readonly bigint[];
}

const SEGMENTS_BYTES = 12;

export function readSegments(buffer: Buffer): Segments {
  const closed: bigint[] = [];
  for (let at = SEGMENTS_BYTES; at < buffer.length; at += 8) closed.push(readId(buffer, at));
  return { releasedId: readId(buffer, 0), first: buffer.readUInt32LE(8), closed };
}

export function writeSegments({ releasedId, first, closed }: Segments): Buffer {
  const buffer = Buffer.alloc(SEGMENTS_BYTES + closed.length * 8);
  buffer.writeBigUInt64LE(releasedId, 0);
  buffer.writeUInt32LE(first, 8);
  closed.forEach((id, i) => {
    buffer.writeBigUInt64LE(id, SEGMENTS_BYTES + i * 8);
  });
  return buffer;
}

export const FIRST_SEGMENT = 1;
/** Of a cell that begins, or was rebuilt: one segment, of entries after those that were handed over. */
export const firstSegment = (handedOverId: bigint): Segments => ({
  releasedId: handedOverId,
  first: FIRST_SEGMENT,
  closed: [],
});

/** Numbers of all segments that there are, the one that is written last. */
export const segmentNumbers = ({ first, closed }: Segments): number[] =>
  Array.from({ length: closed.length + 1 }, (_, i) => first + i);
