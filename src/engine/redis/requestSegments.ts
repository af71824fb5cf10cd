/**
 * The segments of a cell's request ids. Any process may read them; the cell's owner closes and releases them
 * (lua/requestSegments.lua).
 */

import { newestEntryId } from './cellRecords.js';
import { cellKey, idempotencyKey } from './keys.js';
import type { RedisNodes } from './nodes.js';
import { CLIENT } from './redisClient.js';
import { readSegments, type Segments } from './segmentRecords.js';

export interface CellSegments extends Segments {
  /** The SEGMENTS record as it is stored in Redis. */
  readonly bytes: Buffer;
  /** Id of the cell's newest entry; 0 if the cell has never had one. */
  readonly newestEntryId: bigint;
}

/** Reads the segments of a cell; undefined if the cell has not had an owner of this version yet. */
export async function requestSegments(nodes: RedisNodes, cell: number): Promise<CellSegments | undefined> {
  const [bytes, last] = await nodes
    .of(cell)
    [CLIENT].hmgetBuffer(cellKey(nodes.nameOf(cell)), 'segments', 'last');
  if (!bytes) return undefined;
  return { ...readSegments(bytes), bytes, newestEntryId: last ? newestEntryId(last, cell) : 0n };
}

/** Closes the newest segment, unless the segments have changed since they were read. */
export const closeSegment = (
  nodes: RedisNodes,
  lease: { readonly cell: number; readonly fence: bigint },
  read: CellSegments,
): Promise<CellSegments> => change(nodes, lease, read, []);

/**
 * Releases the oldest segment, which must be closed, unless the segments have changed since they were read.
 */
export const releaseSegment = (
  nodes: RedisNodes,
  lease: { readonly cell: number; readonly fence: bigint },
  read: CellSegments,
): Promise<CellSegments> =>
  change(nodes, lease, read, [idempotencyKey(nodes.nameOf(lease.cell), read.first)]);

async function change(
  nodes: RedisNodes,
  { cell, fence }: { readonly cell: number; readonly fence: bigint },
  read: CellSegments,
  released: readonly string[],
): Promise<CellSegments> {
  const node = nodes.of(cell);
  // The requestSegments script may run when Redis is out of memory, because it frees memory.
  const script = node.script('requestSegments', 'allow-oom');
  const bytes = await node.run(
    script,
    [cellKey(nodes.nameOf(cell)), ...released],
    [String(fence), cell, read.bytes],
  );
  return { ...readSegments(bytes as Buffer), bytes: bytes as Buffer, newestEntryId: read.newestEntryId };
}
