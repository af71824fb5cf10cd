/** SEGMENTS (domain/layouts.ts): which request ids Redis holds of a cell. */
import { ENTRY_ID, SEGMENTS } from '../../domain/layouts.js';

/** The field `segments` of a cell's hash. */
export interface Segments {
  /** Request ids of entries up to this one are released. */
  readonly releasedId: bigint;
  /** Number of the oldest segment. */
  readonly first: number;
  /** Newest entry of each closed segment, oldest first; one more segment follows them, which is written. */
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
/** Of a cell that begins, or was rebuilt: one segment, of entries after those that are in the runs. */
export const firstSegment = (runsReachId: bigint): Segments => ({
  releasedId: runsReachId,
  first: FIRST_SEGMENT,
  closed: [],
});

/** Numbers of all segments that there are, the one that is written last. */
export const segmentNumbers = ({ first, closed }: Segments): number[] =>
  Array.from({ length: closed.length + 1 }, (_, i) => first + i);
