/**
 * Encodes and decodes SEGMENTS (domain/layouts.ts): the segments of request ids that Redis holds for a cell.
 */
import { ENTRY_ID, SEGMENTS } from '../../domain/layouts.js';

/** Contents of the field `segments` in a cell's hash. */
export interface Segments {
  /** Watermark of released request ids: the ids of all entries up to this one have been released. */
  readonly releasedId: bigint;
  /** Number of the oldest segment of request ids. */
  readonly first: number;
  /**
   * Newest entry of each closed segment, oldest first. The open segment, which takes new ids, follows the
   * closed ones.
   */
  readonly closed: readonly bigint[];
}

export function readSegments(buffer: Buffer): Segments {
  const closed: bigint[] = [];
  for (let at = SEGMENTS.bytes; at < buffer.length; at += ENTRY_ID.bytes)
    closed.push(ENTRY_ID.read(buffer, at).id);
  return { ...SEGMENTS.read(buffer), closed };
}

export const writeSegments = ({ releasedId, first, closed }: Segments): Buffer =>
  Buffer.concat([SEGMENTS.make({ releasedId, first }), ...closed.map((id) => ENTRY_ID.make({ id }))]);

export const FIRST_SEGMENT = 1;
/** Returns the segments of a new or rebuilt cell: one open segment, for entries after those in the runs. */
export const firstSegment = (runsReachId: bigint): Segments => ({
  releasedId: runsReachId,
  first: FIRST_SEGMENT,
  closed: [],
});

/** Returns the numbers of all segments, ending with the open one. */
export const segmentNumbers = ({ first, closed }: Segments): number[] =>
  Array.from({ length: closed.length + 1 }, (_, i) => first + i);
