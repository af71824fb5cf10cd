/**
 * The request ids of what this worker has booked and not written to runs yet: whoever hands them over need not read them of the ledger.
 * They are a copy: without them, as after a start or where they are too many, the ledger is read.
 */
import { RequestPairs } from '../../domain/requestPairs.js';

/** Of all cells, at 16 bytes each. Past the one they are written to runs, also of a segment that is not closed; past the other let go. */
const DUE_IDS = 2 ** 20;
const IDS_MAX = 2 ** 21;
/** What a quiet cell keeps room for. */
const FIRST_PAIRS = 256;

/** Of all entries of a cell after one, up to (with) another one. */
interface Kept {
  readonly from: bigint;
  to: bigint;
  readonly pairs: RequestPairs;
}

export class CommittedRequestIds {
  readonly #cells = new Map<number, Kept>();
  #ids = 0;

  /** There are so many that they are to be written. */
  get areDue(): boolean {
    return this.#ids >= DUE_IDS;
  }

  /** Takes note of ids that are committed: those of all entries of a cell after `from`, up to `to`. */
  add(cell: number, from: bigint, to: bigint, pairs: RequestPairs): void {
    if (this.#cells.get(cell)?.to !== from || this.#ids + pairs.count > IDS_MAX) this.forget(cell);
    if (pairs.count > IDS_MAX - this.#ids) return;
    const kept = this.#cells.get(cell) ?? { from, to, pairs: new RequestPairs(FIRST_PAIRS) };
    this.#cells.set(cell, kept);
    kept.to = to;
    kept.pairs.addWords(pairs.slice(0, pairs.count));
    this.#ids += pairs.count;
  }

  /** Up to which entry of a cell they are all there; undefined: none is. */
  watermarkOf(cell: number): bigint | undefined {
    return this.#cells.get(cell)?.to;
  }

  /**
   * Gives the ids of a cell's entries after `from`, up to `to`, away, and forgets those before them. Undefined where they are not all
   * there.
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
