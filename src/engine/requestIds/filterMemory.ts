/**
 * Plans the memory of the request-id filters: decides which filters are folded (made smaller and less
 * precise), so that all of them fit.
 */
import { totalmem } from 'node:os';
import { foldedBytes } from '../../domain/requestFilter.js';

/**
 * Maximum number of folds of a filter at a start. One fold leaves 8 bits per id. With a coarser filter,
 * nearly every fresh id would need a look-up in the ledger.
 */
const COARSEST_FOLDS = 1;
/** Size below which a request-id filter is not folded further, in bytes. */
const FILTER_BYTES_MIN = 64;
const DEFAULT_SHARE = 4;
const MEGABYTE = 1e6;

/** Size of a filter that is loaded or is to be loaded. */
export interface FilterSize {
  /** Size of the filter before any fold, in bytes. */
  readonly bytes: number;
  readonly folds: number;
}

/**
 * Returns the memory that this process may use, in bytes: the limit of its container, or the memory of the
 * machine.
 */
function memoryBytes(): number {
  const limit = process.constrainedMemory() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

export const filterMegabytesByDefault = (bytes = memoryBytes()): number =>
  Math.max(1, Math.floor(bytes / DEFAULT_SHARE / MEGABYTE));

/** Returns the size of all filters, in bytes, if each is folded as often as a start allows. */
export function coarsestBytes(filters: readonly Pick<FilterSize, 'bytes'>[]): number {
  return filters.reduce((sum, { bytes }) => sum + foldedBytes(bytes, coarsestFolds(bytes)), 0);
}

const coarsestFolds = (bytes: number): number => (bytes > FILTER_BYTES_MIN ? COARSEST_FOLDS : 0);

/**
 * Plans the number of folds of each filter so that all filters fit into the memory limit. No filter gets
 * fewer folds than it has now. The filters with the fewest folds are folded first, and among these the first
 * in the list. If the filters can't fit, each is made as small as possible.
 */
export function plannedFolds(filters: readonly FilterSize[], bytesMax: number): number[] {
  const folds = filters.map((each) => each.folds);
  const sizeOf = (place: number): number => foldedBytes(filters[place]!.bytes, folds[place]!);
  let bytes = filters.reduce((sum, _, place) => sum + sizeOf(place), 0);
  for (let level = 0; bytes > bytesMax; level++) {
    let isDone = true;
    for (let place = 0; place < filters.length && bytes > bytesMax; place++) {
      const size = sizeOf(place);
      if (size <= FILTER_BYTES_MIN) continue;
      isDone = false;
      if (folds[place] !== level) continue;
      folds[place]!++;
      bytes -= size - sizeOf(place);
    }
    if (isDone) break;
  }
  return folds;
}

/**
 * The filters of request ids don't fit into their memory limit at a start. The message says which setting to
 * raise.
 */
export class FilterMemoryError extends Error {
  constructor(ids: number, needed: number, bytesMax: number) {
    const megabytes = Math.ceil(needed / MEGABYTE);
    super(
      `REQUEST_FILTERS_MAX_MB is ${Math.floor(bytesMax / MEGABYTE)}, but the filters of ${ids} request ids take at least ${megabytes} MB. Set it to at least ${Math.ceil(megabytes * 1.1)}, and give the process at least ${Math.ceil(megabytes * 1.1) + REST_MEGABYTES} MB of memory.`,
    );
  }
}

/** Memory that a front end needs besides the filters, in MB. */
const REST_MEGABYTES = 450;
