/** Which runs of request ids are merged: a rule without stores. */
import { entryTimeMs } from '../../domain/entryId.js';
import type { RequestRun } from './requestRuns.store.js';

/** Runs are merged by so many of a size: an id is copied once for each power of it, and a front end asks as many filters. */
const FAN_IN = 16;
/** So few are merged where no further one could join them. */
const FAN_IN_MIN = 4;
/** No more ids come into one run: its filter is read in one piece. */
const MERGED_IDS_MAX = 2 ** 25;

const sizeOf = ({ ids }: RequestRun): number => Math.floor(Math.log2(ids) / Math.log2(FAN_IN));

const spanMs = (first: RequestRun, last: RequestRun): number =>
  entryTimeMs(last.toId) - entryTimeMs(first.fromId);

const idsOf = (runs: readonly RequestRun[]): number => runs.reduce((sum, { ids }) => sum + ids, 0);

/**
 * Neighbours to merge; undefined: there are few enough. {@link FAN_IN} of one size, or as many as fit, with smaller ones between and
 * before them.
 * @param runs of one cell, oldest first
 * @param spanMsMax from the first entry of what is merged to its last
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
  /** Neighbours that may become one run, and how many of them are of the size. */
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
    // Nothing can join them any more.
    if (isOver() && ofSize >= FAN_IN_MIN) return open;
    while (isOver()) if (sizeOf(open.shift()!) === size) ofSize--;
    open.push(run);
    if (sizeOf(run) === size) ofSize++;
    if (ofSize === FAN_IN) return open;
  }
  return undefined;
}
