/**
 * History of a game in the public log (docs/proofs.md): the positions of its records in the log, the openings
 * of these records, and the covered outcome indices. The state is plain data, so that a later run of the
 * command can continue from it.
 */

import { checkReveal, type LogEntry, openEntry, type RevealOptions } from '../../verifier/verify.mjs';
import { labelIn, labelKeyHash, labelOf } from '../domain/publicLog/logEntries.js';
import { leafHash, nodeHash } from '../domain/publicLog/tree.js';

export const STATE_FORMAT = 'spindle history v1';
/**
 * Number of entry numbers searched beyond the highest one found: one more than a single append can contain.
 */
const AHEAD = 1025;
const COMMITMENT_AT = 17;

/** Range of indices or numbers: inclusive start, exclusive end. */
type Range = readonly [number, number];

export interface HistoryState {
  readonly format: typeof STATE_FORMAT;
  readonly origin: string;
  readonly gameId: number;
  readonly labelKeyHash: string;
  /** Checkpoint up to which the log has been read completely. */
  note: string;
  /** Number of records read, and the hashes of their complete subtrees, largest first. */
  size: number;
  hashes: string[];
  /** Position of the entry in the log, by entry number. Null if the log has no such entry. */
  places: (number | null)[];
  /** All entry numbers below this number have been compared with the service's list of entries. */
  told: number;
  /** Commitments of entries not opened yet and of blocks not revealed yet, by entry number. */
  sealed: Record<number, string>;
  covered: Range[];
  voided: Range[];
  /** First indices of blocks sealed by a version without the log. Indices before them may be in no entry. */
  late: number[];
  /** Entry numbers that the service can't open, and the ranges of numbers declared by `lost` entries. */
  unopened: number[];
  lost: Range[];
  /** Type of the game's blocks. Empty if no block has been opened. */
  type: string;
  /** Number of times that each outcome code was revealed, by the mathHash of the game's mathematics. */
  counts: Record<string, number[]>;
  revealed: number;
  /**
   * Predecessor of this log, as named in this log's first record, and the number of the game's entries in the
   * predecessor. Those entries are not checked.
   */
  before?: { readonly origin: string; readonly size: number; numbers: number };
}

/** Reads the predecessor of a log from its first record. */
function logBefore(genesis: Buffer): HistoryState['before'] {
  try {
    const { previous } = JSON.parse(genesis.subarray(1).toString('utf8')) as {
      previous?: { origin?: unknown; size?: unknown };
    };
    const { origin, size } = previous ?? {};
    const isOne = typeof origin === 'string' && typeof size === 'number' && Number.isSafeInteger(size);
    return isOne ? { origin, size, numbers: 0 } : undefined;
  } catch {
    return undefined;
  }
}

export const newState = (about: {
  readonly origin: string;
  readonly gameId: number;
  readonly labelKey: Buffer;
}): HistoryState => ({
  format: STATE_FORMAT,
  origin: about.origin,
  gameId: about.gameId,
  note: '',
  size: 0,
  hashes: [],
  labelKeyHash: labelKeyHash(about.labelKey).toString('hex'),
  places: [],
  told: 0,
  sealed: {},
  covered: [],
  voided: [],
  late: [],
  unopened: [],
  lost: [],
  counts: {},
  revealed: 0,
  type: '',
});

const overlaps = (ranges: readonly Range[], [from, to]: Range): boolean =>
  ranges.some((each) => each[0] < to && from < each[1]);

function withRange(ranges: readonly Range[], [from, to]: Range): Range[] {
  const last = ranges.at(-1);
  if (last === undefined || last[1] < from) return [...ranges, [from, to]];
  const touches = (each: Range): boolean => each[0] <= to && from <= each[1];
  const touching = ranges.filter(touches);
  const merged: Range = [
    Math.min(from, ...touching.map((each) => each[0])),
    Math.max(to, ...touching.map((each) => each[1])),
  ];
  return [...ranges.filter((each) => !touches(each)), merged].sort((a, b) => a[0] - b[0]);
}

export class GameHistory {
  readonly faults: string[] = [];
  readonly state: HistoryState;
  readonly #labelKey: Buffer;
  readonly #labels = new Map<string, number>();
  readonly #subtrees: Buffer[];

  constructor(labelKey: Buffer, state: HistoryState) {
    this.state = state;
    this.#labelKey = labelKey;
    this.#subtrees = state.hashes.map((hash) => Buffer.from(hash, 'hex'));
    this.#expect();
  }

  #expect(): void {
    for (let next = this.#labels.size; next < this.state.places.length + AHEAD; next++) {
      this.#labels.set(labelOf(this.#labelKey, next).toString('latin1'), next);
    }
  }

  take(record: Buffer): void {
    const { state } = this;
    const at = state.size++;
    const before = at === 0 ? logBefore(record) : undefined;
    if (before !== undefined) state.before = before;
    let hash = leafHash(record);
    for (let rest = at; rest % 2 === 1; rest = (rest - 1) / 2) hash = nodeHash(this.#subtrees.pop()!, hash);
    this.#subtrees.push(hash);
    const label = labelIn(record);
    const number = label && this.#labels.get(label.toString('latin1'));
    if (number === undefined) return;
    const place = state.places[number];
    if (typeof place === 'number') {
      this.faults.push(`number ${number} is logged twice, at ${place} and ${at}`);
      return;
    }
    while (state.places.length < number) state.places.push(null);
    state.places[number] = at;
    state.sealed[number] = record.toString('hex', COMMITMENT_AT);
    this.#expect();
  }

  root(): Buffer | undefined {
    return this.#subtrees.length === 0
      ? undefined
      : this.#subtrees.reduceRight((right, left) => nodeHash(left, right));
  }

  /** Completes the reading up to a checkpoint and compares the root of the records with the checkpoint. */
  readAll({ size, root }: { readonly size: number; readonly root: Uint8Array }): void {
    const { state } = this;
    if (state.size !== size || !this.root()?.equals(root))
      this.faults.push(`log: its records do not give the root of the checkpoint with ${size} records`);
    state.hashes = this.#subtrees.map((hash) => hash.toString('hex'));
    // Entry numbers of a game continue from one log to the next. So the numbers in the previous log are the
    // first ones, without a gap.
    if (state.before !== undefined && state.told === 0)
      state.before.numbers = Math.max(
        0,
        state.places.findIndex((place) => place !== null),
      );
    const first = state.before?.numbers ?? 0;
    for (const [number, place] of state.places.entries()) {
      if (place === null && number >= Math.max(first, state.told))
        this.faults.push(`number ${number} is not logged`);
    }
  }

  /**
   * Compares an entry listed by the service with its position in the log.
   * @returns false if the entry lies beyond the records read
   */
  compareListed({
    number,
    logIndex,
  }: {
    readonly number: number;
    readonly logIndex: number | null;
  }): boolean {
    const place = this.state.places[number] ?? undefined;
    if (number < (this.state.before?.numbers ?? 0)) return true;
    // The service may not know an entry's position in the log if the opening of the entry is lost.
    if (logIndex === null) return place !== undefined;
    if (logIndex >= this.state.size) return false;
    if (place !== undefined && place !== logIndex)
      this.faults.push(`number ${number} is logged at ${place}, but the service says ${logIndex}`);
    if (place === undefined && number >= this.state.places.length)
      this.faults.push(`number ${number} is not logged`);
    return true;
  }

  /** Opens the record of an entry number with the opening from the service. */
  async open(answer: { readonly number: number }): Promise<void> {
    const { state, faults } = this;
    const { faults: found, entry } = await openEntry(answer, state.sealed[answer.number]);
    faults.push(...found);
    if (entry === undefined) return;
    const is = (holds: boolean, what: string): void => {
      if (!holds) faults.push(`number ${answer.number}: ${what}`);
    };
    is(entry.number === answer.number, `its entry contains the number ${entry.number}`);
    is(entry.gameId === state.gameId, `its entry belongs to game ${entry.gameId}`);
    is(entry.labelKeyHash === state.labelKeyHash, 'its entry contains another label key');
    if (entry.type === 'lost') state.lost.push([entry.fromNumber, entry.toNumber + 1]);
    else this.#cover(entry, is);
    if (entry.type === 'void' || entry.type === 'lost') delete state.sealed[answer.number];
  }

  #cover({ type, fromIndex, count, late }: LogEntry, is: (holds: boolean, what: string) => void): void {
    const { state } = this;
    const range: Range = [fromIndex, fromIndex + count];
    const isRange = Number.isSafeInteger(range[0]) && Number.isSafeInteger(range[1]) && count > 0;
    is(isRange && fromIndex >= 0, 'its entry does not contain a valid range of indices');
    if (type === 'void') {
      state.voided = withRange(state.voided, range);
      return;
    }
    const indices = `the indices ${range[0]} to ${range[1] - 1}`;
    is(!overlaps(state.covered, range), `${indices} overlap with indices of an earlier block`);
    is(!overlaps(state.voided, range), `${indices} overlap with indices that were voided earlier`);
    state.covered = withRange(state.covered, range);
    state.type = type;
    if (late === true) state.late.push(fromIndex);
  }

  /** Records that the service can't open an entry number, so a `lost` entry must declare it. */
  notOpened(number: number): void {
    this.state.unopened.push(number);
    delete this.state.sealed[number];
  }

  isLost(number: number): boolean {
    return overlaps(this.state.lost, [number, number + 1]);
  }

  /** Completes the comparison of a game's entries and checks that no outcome index is missing. */
  allTold(): void {
    const { state, faults } = this;
    state.told = state.places.length;
    for (const number of state.unopened) {
      if (!this.isLost(number))
        faults.push(`number ${number} can't be opened, and no entry declares it lost`);
    }
    const known = state.voided.reduce(withRange, state.covered);
    for (const [at, [from]] of known.entries()) {
      const before = known[at - 1]?.[1];
      if (before !== undefined && !state.late.includes(from))
        faults.push(`the indices ${before} to ${from - 1} are missing in the log`);
    }
  }

  /** Compares a revealed block with its logged commitment. */
  async reveal(answer: { readonly number: number }, options: RevealOptions): Promise<void> {
    const { state, faults } = this;
    const { number } = answer;
    const { faults: closed, entry } = await openEntry(answer, state.sealed[number]);
    faults.push(...closed);
    if (entry === undefined) return;
    const { faults: found, codes } = await checkReveal(answer, options);
    faults.push(...found);
    if (found.length > 0) return;
    delete state.sealed[number];
    state.revealed++;
    if (codes === undefined) return;
    state.counts[entry.mathHash] ??= [];
    const counts = state.counts[entry.mathHash]!;
    for (const code of codes) {
      while (counts.length <= code) counts.push(0);
      counts[code]!++;
    }
  }
}
