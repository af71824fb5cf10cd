/**
 * Decides which runs of request ids are merged. The functions are pure and access neither Postgres nor Redis.
 */
import { entryTimeMs } from '../../domain/entryId.js';
import type { RequestRun } from './requestRuns.store.js';

/**
 * Number of runs of one size class that are merged. With a higher number, an id is copied less often, but a
 * front end must check more filters per class.
 */
const FAN_IN = 16;
/**
 * Minimum number of runs of one size class for an early merge. A merge is early if no further run could join
 * it.
 */
const FAN_IN_MIN = 4;
/** There is a limit because the filter of a run is read whole. */
const MERGED_IDS_MAX = 2 ** 25;

const sizeOf = ({ ids }: RequestRun): number => Math.floor(Math.log2(ids) / Math.log2(FAN_IN));

const spanMs = (first: RequestRun, last: RequestRun): number =>
  entryTimeMs(last.toId) - entryTimeMs(first.fromId);

const idsOf = (runs: readonly RequestRun[]): number => runs.reduce((sum, { ids }) => sum + ids, 0);

/**
 * Returns neighbouring runs to merge, or undefined if no merge is needed. The result has {@link FAN_IN} runs
 * of one size class, or as many as fit, and the smaller runs between and before them.
 * @param runs runs of one cell, oldest first
 * @param spanMsMax maximum time from the first entry of the merged run to its last entry, in ms
 */
export function runsToMerge(
  runs: readonly RequestRun[],
  spanMsMax: number,
): readonly RequestRun[] | undefined {
  const sizes = [...new Set(runs.map(sizeOf))].sort((a, b) => a - b);
  for (const size of sizes) {
    const found = mergedOfSize(runs, size, spanMsMax);
    if (found !== undefined) return found;
  }
  return undefined;
}

function mergedOfSize(
  runs: readonly RequestRun[],
  size: number,
  spanMsMax: number,
): readonly RequestRun[] | undefined {
  /**
   * Neighbouring runs that may be merged into one. `ofSize` is the number of runs of the size class among
   * them.
   */
  let open: RequestRun[] = [];
  let ofSize = 0;
  for (const run of runs) {
    if (sizeOf(run) > size) {
      open = [];
      ofSize = 0;
      continue;
    }
    const isOver = (): boolean =>
      open.length > 0 && (spanMs(open[0]!, run) > spanMsMax || idsOf(open) + run.ids > MERGED_IDS_MAX);
    // No further run may join these neighbouring runs, because the merged run would be too large or span too
    // much time.
    if (isOver() && ofSize >= FAN_IN_MIN) return open;
    while (isOver()) if (sizeOf(open.shift()!) === size) ofSize--;
    open.push(run);
    if (sizeOf(run) === size) ofSize++;
    if (ofSize === FAN_IN) return open;
  }
  return undefined;
}
