/** Which runs of request ids are merged: a rule without stores. */
import { entryTimeMs } from '../domain/entryId.js';
import type { RequestRun } from '../postgres/requestRuns.js';

/** Runs are merged by four of a size: an id is copied once for each power of four. */
const FAN_IN = 4;
/** A run of more ids stays as it is: a quarter of what one filter in memory may have. */
const MERGED_IDS_MAX = 2 ** 23;

const sizeOf = ({ ids }: RequestRun): number => Math.floor(Math.log2(ids) / Math.log2(FAN_IN));

const spanMs = (first: RequestRun, last: RequestRun): number =>
  entryTimeMs(last.toId) - entryTimeMs(first.fromId);

/**
 * Neighbours to merge; undefined: there are few enough. Four of one size, with smaller ones between them.
 * @param runs of one cell, oldest first
 * @param spanMsMax from the first entry of what is merged to its last
 */
export function runsToMerge(
  runs: readonly RequestRun[],
  spanMsMax: number,
): readonly RequestRun[] | undefined {
  const sizes = [...new Set(runs.map(sizeOf))].sort((a, b) => a - b);
  for (const size of sizes) {
    /** Places of runs of this size that may be merged. */
    let places: number[] = [];
    for (let i = 0; i < runs.length; i++) {
      const run = runs[i]!;
      if (sizeOf(run) > size || run.ids > MERGED_IDS_MAX) places = [];
      else if (sizeOf(run) === size) {
        places = places.filter((place) => spanMs(runs[place]!, run) <= spanMsMax);
        places.push(i);
        if (places.length === FAN_IN) return runs.slice(places[0], i + 1);
      }
    }
  }
  return undefined;
}
