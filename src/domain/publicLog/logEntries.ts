/**
 * Entries of the public log about sealed blocks, the labels by which a game's entries are found, and the
 * records that are the log's leaves.
 */
import { createHmac } from 'node:crypto';
import canonicalize from 'canonicalize';
import { sha256 } from './tree.js';

const COMMITMENT = 'spindle entry v1\n';
const LABEL_KEY = 'spindle label key v1\n';
const LABEL_BYTES = 16;
const PRIVATE_BYTES = 49;
const PRIVATE = 1;
const PUBLIC = 2;

interface Common {
  readonly version: 1;
  readonly gameId: number;
  /** Number of the entry within its game: 0, 1, 2, … without a gap. */
  readonly number: number;
  /** Hash of the label key: 32 bytes in hexadecimal. */
  readonly labelKeyHash: string;
}

interface SealedBlock extends Common {
  readonly fromIndex: number;
  readonly count: number;
  /** Root of the block's tree: 32 bytes in hexadecimal, like `mathHash`. */
  readonly root: string;
  readonly mathHash: string;
  /** Time of sealing in RFC 3339, UTC, with milliseconds. */
  readonly sealedAt: string;
  /** Whether outcomes of the block may have been dealt before the entry was logged. */
  readonly late: boolean;
}

export type PublicLogEntry =
  | (SealedBlock & { readonly type: 'block'; readonly secretHash: string })
  | (SealedBlock & { readonly type: 'pool'; readonly secretHash: string; readonly commitment: string })
  | (SealedBlock & { readonly type: 'shoes'; readonly commitment: string })
  | (Common & {
      readonly type: 'void';
      readonly fromIndex: number;
      readonly count: number;
      readonly reason: string;
      readonly voidedAt: string;
    })
  | (Common & {
      readonly type: 'lost';
      readonly fromNumber: number;
      readonly toNumber: number;
      readonly reason: string;
      readonly at: string;
    });

/** Returns the entry as JCS text (RFC 8785). For a flat object, this is JSON with sorted members. */
export const entryText = (entry: PublicLogEntry): string => JSON.stringify(entry, Object.keys(entry).sort());

/** @param salt 32 random bytes used for this entry only */
export const entryCommitment = (salt: Buffer, text: string): Buffer => sha256(COMMITMENT, salt, text);

/**
 * Hashes a label key, from which the labels of a game's entries are derived.
 * @param labelKey 32 random bytes, which the game keeps for life
 */
export const labelKeyHash = (labelKey: Buffer): Buffer => sha256(LABEL_KEY, labelKey);

/**
 * Computes the label of the log entry that has the given number for a game. Holders of the label key, and
 * nobody else, can recognise the entry by its label.
 */
export function labelOf(labelKey: Buffer, number: number): Buffer {
  const counted = Buffer.alloc(8);
  counted.writeBigUInt64BE(BigInt(number));
  return createHmac('sha256', labelKey).update(counted).digest().subarray(0, LABEL_BYTES);
}

/** Builds a private record of 49 bytes, which reveals nothing without the entry's opening. */
export const privateRecord = (label: Buffer, commitment: Buffer): Buffer =>
  Buffer.concat([Buffer.of(PRIVATE), label, commitment]);

/** Builds a public record, which everybody can read. */
export const publicRecord = (members: Readonly<Record<string, unknown>>): Buffer =>
  Buffer.concat([Buffer.of(PUBLIC), Buffer.from(canonicalize(members)!)]);

/** Returns the label of a private record. Undefined if the record is not private. */
export const labelIn = (record: Buffer): Buffer | undefined =>
  record.length === PRIVATE_BYTES && record[0] === PRIVATE ? record.subarray(1, 1 + LABEL_BYTES) : undefined;

/**
 * Number of labels to look for above the highest number found: one more than the entries that one append can
 * have.
 */
const AHEAD = 1025;

/** Finds a game's entries by its label key among the records of the log, which must be passed in order. */
export class LabelScan {
  readonly #labelKey: Buffer;
  readonly #expected = new Map<string, number>();
  readonly #found = new Map<number, number>();
  readonly #faults: string[] = [];
  #next = 0;
  #highest = -1;

  constructor(labelKey: Buffer) {
    this.#labelKey = labelKey;
    this.#expect(AHEAD);
  }

  #expect(to: number): void {
    for (; this.#next < to; this.#next++) {
      this.#expected.set(labelOf(this.#labelKey, this.#next).toString('latin1'), this.#next);
    }
  }

  take(logIndex: number, record: Buffer): void {
    const label = labelIn(record);
    const number = label && this.#expected.get(label.toString('latin1'));
    if (number === undefined) return;
    const before = this.#found.get(number);
    if (before !== undefined) {
      this.#faults.push(
        `entry number ${number} is in the log twice, at the indices ${before} and ${logIndex}`,
      );
      return;
    }
    this.#found.set(number, logIndex);
    this.#highest = Math.max(this.#highest, number);
    this.#expect(this.#highest + 1 + AHEAD);
  }

  /**
   * Returns the log index of each entry by its number, and the faults: numbers that are logged twice or
   * missing.
   */
  result(): { readonly places: ReadonlyMap<number, number>; readonly faults: readonly string[] } {
    const faults = [...this.#faults];
    for (let number = 0; number <= this.#highest; number++) {
      if (!this.#found.has(number)) faults.push(`entry number ${number} is not in the log`);
    }
    return { places: this.#found, faults };
  }
}
