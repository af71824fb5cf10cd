/** Which runs of request ids are merged: a rule without stores. */
import type { RequestRun } from '../postgres/requestRuns.js';

/** Runs are merged by four of a size: an id is copied once for each power of four. */
const FAN_IN = 4;
/** A run of more ids stays as it is: a quarter of what one filter in memory may have. */
const MERGED_IDS_MAX = 2 ** 23;

const sizeOf = ({ ids }: RequestRun): number => Math.floor(Math.log2(ids) / Math.log2(FAN_IN));

/**
 * Neighbours to merge; undefined: there are few enough. Four of one size, with smaller ones between them.
 * @param runs of one cell, oldest first
 */
export function runsToMerge(runs: readonly RequestRun[]): readonly RequestRun[] | undefined {
  const sizes = [...new Set(runs.map(sizeOf))].sort((a, b) => a - b);
  for (const size of sizes) {
    let first: number | undefined;
    let count = 0;
    for (let i = 0; i < runs.length; i++) {
      const run = runs[i]!;
      if (sizeOf(run) > size || run.ids > MERGED_IDS_MAX) {
        first = undefined;
        count = 0;
      } else if (sizeOf(run) === size) {
        first ??= i;
        if (++count === FAN_IN) return runs.slice(first, i + 1);
      }
    }
  }
  return undefined;
}
