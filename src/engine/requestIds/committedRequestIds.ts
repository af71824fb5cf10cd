/**
 * Keeps the request ids that this worker has committed and not yet written to runs, so that they need not be
 * read from the ledger when a run is written. The ids are only cached: after a start, or if there are too
 * many ids, they are read from the ledger.
 */
import { RequestPairs } from '../../domain/requestPairs.js';

/**
 * Maximum numbers of request ids in memory, over all cells, at 16 bytes each. From DUE_IDS on, the ids are
 * written to runs, even those of an open segment. Beyond IDS_MAX they are dropped.
 */
const DUE_IDS = 2 ** 20;
const IDS_MAX = 2 ** 21;
/** Number of request ids for which the memory of a quiet cell has room. */
const FIRST_PAIRS = 256;

/** The request ids of all entries of a cell after `from`, up to and including `to`. */
interface Kept {
  readonly from: bigint;
  to: bigint;
  readonly pairs: RequestPairs;
}

export class CommittedRequestIds {
  readonly #cells = new Map<number, Kept>();
  #ids = 0;

  /** True if memory has so many ids that they should be written to runs. */
  get areDue(): boolean {
    return this.#ids >= DUE_IDS;
  }

  /** Adds committed ids: those of all entries of a cell after `from`, up to and including `to`. */
  add(cell: number, from: bigint, to: bigint, pairs: RequestPairs): void {
    if (this.#cells.get(cell)?.to !== from || this.#ids + pairs.count > IDS_MAX) this.forget(cell);
    if (pairs.count > IDS_MAX - this.#ids) return;
    const kept = this.#cells.get(cell) ?? { from, to, pairs: new RequestPairs(FIRST_PAIRS) };
    this.#cells.set(cell, kept);
    kept.to = to;
    kept.pairs.addWords(pairs.slice(0, pairs.count));
    this.#ids += pairs.count;
  }

  /**
   * Returns the entry of a cell up to which all request ids of the cell are in memory; undefined if none are.
   */
  watermarkOf(cell: number): bigint | undefined {
    return this.#cells.get(cell)?.to;
  }

  /**
   * Removes and returns the ids of a cell's entries after `from`, up to and including `to`. Earlier ids are
   * dropped. Returns undefined if any of the requested ids are missing.
   */
  take(cell: number, from: bigint, to: bigint): RequestPairs | undefined {
    const kept = this.#cells.get(cell);
    if (kept === undefined || kept.from > from || kept.to < to) return undefined;
    const { pairs } = kept;
    const begin = pairs.countTo(from);
    const end = pairs.countTo(to);
    this.forget(cell);
    const rest = new RequestPairs(Math.max(FIRST_PAIRS, pairs.count - end));
    rest.addWords(pairs.slice(end, pairs.count));
    this.#cells.set(cell, { from: to, to: kept.to, pairs: rest });
    this.#ids += rest.count;
    pairs.keep(begin, end);
    return pairs;
  }

  forget(cell: number): void {
    this.#ids -= this.#cells.get(cell)?.pairs.count ?? 0;
    this.#cells.delete(cell);
  }
}
