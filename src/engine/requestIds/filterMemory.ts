/** How much memory the filters of request ids take: which of them are made coarser, so that all have room. */
import { totalmem } from 'node:os';
import { foldedBytes } from '../../domain/requestFilter.js';

/** 8 bits an id: of a filter that is coarser nearly every fresh id would ask the ledger. */
const COARSEST_FOLDS = 1;
/** A filter that is as small is not folded any more. */
const FILTER_BYTES_MIN = 64;
const DEFAULT_SHARE = 4;
const MEGABYTE = 1e6;

/** A filter that is held, or is to be. */
export interface FilterSize {
  /** Before it is folded. */
  readonly bytes: number;
  readonly folds: number;
}

/** Bytes of memory that this process may use: the limit of its container, or what the machine has. */
function memoryBytes(): number {
  const limit = process.constrainedMemory() ?? 0;
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

/** Megabytes that filters may take where nobody says how many. */
export const filterMegabytesByDefault = (bytes = memoryBytes()): number =>
  Math.max(1, Math.floor(bytes / DEFAULT_SHARE / MEGABYTE));

/** Bytes of filters that are as coarse as they may be at a start. */
export function coarsestBytes(filters: readonly Pick<FilterSize, 'bytes'>[]): number {
  return filters.reduce((sum, { bytes }) => sum + foldedBytes(bytes, coarsestFolds(bytes)), 0);
}

const coarsestFolds = (bytes: number): number => (bytes > FILTER_BYTES_MIN ? COARSEST_FOLDS : 0);

/**
 * How often each filter is folded so that all have room, none less than it is: those first that were folded least, of them the first.
 * Where there is no room, they are as small as can be.
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

/** What to set so that a process starts. */
export class FilterMemoryError extends Error {
  constructor(ids: number, needed: number, bytesMax: number) {
    const megabytes = Math.ceil(needed / MEGABYTE);
    super(
      `REQUEST_FILTERS_MAX_MB is ${Math.floor(bytesMax / MEGABYTE)}, but the filters of ${ids} request ids take ${megabytes} MB at the least; set it to ${Math.ceil(megabytes * 1.1)} or more, and let the process use ${Math.ceil(megabytes * 1.1) + REST_MEGABYTES} MB or more`,
    );
  }
}

/** What a front end takes beside the filters. */
const REST_MEGABYTES = 450;
