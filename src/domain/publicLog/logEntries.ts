/** What the log tells of sealed blocks: entries, their labels, and the records that are the log's leaves. */
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
  /** Counts the game's entries from 0 on, without a gap. */
  readonly number: number;
  /** 32 bytes, hexadecimal. */
  readonly labelKeyHash: string;
}

interface SealedBlock extends Common {
  readonly fromIndex: number;
  readonly count: number;
  /** Hashes: 32 bytes, hexadecimal. */
  readonly root: string;
  readonly mathHash: string;
  /** RFC 3339, UTC, milliseconds. */
  readonly sealedAt: string;
  /** Some of it may have been dealt before it was logged. */
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

/** JCS (RFC 8785): of a flat object that is JSON's own text of its members in their order. */
export const entryText = (entry: PublicLogEntry): string => JSON.stringify(entry, Object.keys(entry).sort());

/** @param salt 32 random bytes of this entry alone */
export const entryCommitment = (salt: Buffer, text: string): Buffer => sha256(COMMITMENT, salt, text);

/** @param labelKey 32 random bytes, the game's for life */
export const labelKeyHash = (labelKey: Buffer): Buffer => sha256(LABEL_KEY, labelKey);

/** Where a game's entry of a number is recognised by who has the label key, and by nobody else. */
export function labelOf(labelKey: Buffer, number: number): Buffer {
  const counted = Buffer.alloc(8);
  counted.writeBigUInt64BE(BigInt(number));
  return createHmac('sha256', labelKey).update(counted).digest().subarray(0, LABEL_BYTES);
}

/** A record that shows nobody anything without the entry's opening, 49 bytes. */
export const privateRecord = (label: Buffer, commitment: Buffer): Buffer =>
  Buffer.concat([Buffer.of(PRIVATE), label, commitment]);

/** A record that says something to everybody. */
export const publicRecord = (members: Readonly<Record<string, unknown>>): Buffer =>
  Buffer.concat([Buffer.of(PUBLIC), Buffer.from(canonicalize(members)!)]);

/** The label of a record; undefined where it is not a private one. */
export const labelIn = (record: Buffer): Buffer | undefined =>
  record.length === PRIVATE_BYTES && record[0] === PRIVATE ? record.subarray(1, 1 + LABEL_BYTES) : undefined;

/** How many numbers above the highest one found are looked for: one more than may wait in one append. */
const AHEAD = 1025;

/** Finds a game's entries in the log's records, fed in their order, by the game's label key. */
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
      this.#faults.push(`number ${number} is logged twice, at ${before} and ${logIndex}`);
      return;
    }
    this.#found.set(number, logIndex);
    this.#highest = Math.max(this.#highest, number);
    this.#expect(this.#highest + 1 + AHEAD);
  }

  /** Log indices by number, and what is wrong: numbers logged twice or missing. */
  result(): { readonly places: ReadonlyMap<number, number>; readonly faults: readonly string[] } {
    const faults = [...this.#faults];
    for (let number = 0; number <= this.#highest; number++) {
      if (!this.#found.has(number)) faults.push(`number ${number} is not logged`);
    }
    return { places: this.#found, faults };
  }
}
