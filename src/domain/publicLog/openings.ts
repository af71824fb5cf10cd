/** Stored data of an entry of the public log, and the exact text to which the log's record commits. */

import { secretHash } from './leaves.js';
import { entryText, labelKeyHash, type PublicLogEntry } from './logEntries.js';
import { HASH_BYTES } from './tree.js';

/** Codes of the types of log entries in the column `log_entries.kind`. */
export const LOG_ENTRY_KINDS = { forgotten: 0, block: 1, pool: 2, shoes: 3, void: 4, lost: 5 } as const;
/**
 * Type of a log entry. `forgotten` stands for an entry number whose opening was lost in a restore of the
 * database; an entry of type `lost` lists such numbers.
 */
export type EntryType = keyof typeof LOG_ENTRY_KINDS;

export const entryTypeOf = (kind: number): EntryType =>
  (Object.keys(LOG_ENTRY_KINDS) as EntryType[]).find((type) => LOG_ENTRY_KINDS[type] === kind)!;

/** Data of a log entry: its own row, its game's row, and its block's row if it has one. */
export interface Opening {
  readonly gameId: number;
  readonly number: number;
  readonly type: EntryType;
  /**
   * Range of indices; `toIndex` is exclusive. A `lost` entry has a range of entry numbers, and `toIndex` is
   * the last of them.
   */
  readonly fromIndex: number;
  readonly toIndex: number;
  readonly at: Date;
  readonly isLate: boolean;
  readonly reason: string | null;
  readonly labelKey: Buffer;
  readonly mathHash: Buffer | null;
  /**
   * Seed of the entry's block. Null for entries without a block, and for shoes: each shoe has its own seed,
   * which the entry does not contain.
   */
  readonly seed: Buffer | null;
  readonly nonce: Buffer | null;
  /** Stored hashes of the block's tree; at least its root. */
  readonly tree: Buffer | null;
  readonly commitment: Buffer | null;
}

/**
 * Returns the entry's text (canonical JSON, RFC 8785).
 * @throws Error if a part of its block is missing
 */
export function openedText(opening: Opening): string {
  return entryText(entryOf(opening));
}

function needed(bytes: Buffer | null, { gameId, number }: Opening): Buffer {
  if (bytes === null)
    throw new Error(
      `Entry ${number} of game ${gameId} can't be opened, because a part of its block is missing`,
    );
  return bytes;
}

/** Cache of label key hashes, because the openings in one append share the label key of their game. */
const labelKeyHashes = new WeakMap<Buffer, string>();

function labelKeyHashOf(labelKey: Buffer): string {
  const hash = labelKeyHashes.get(labelKey) ?? labelKeyHash(labelKey).toString('hex');
  labelKeyHashes.set(labelKey, hash);
  return hash;
}

function entryOf(opening: Opening): PublicLogEntry {
  const { gameId, number, type, fromIndex, toIndex, isLate } = opening;
  if (type === 'forgotten') throw new Error(`The opening of entry ${number} of game ${gameId} is lost`);
  const common = {
    version: 1 as const,
    gameId,
    number,
    labelKeyHash: labelKeyHashOf(opening.labelKey),
  };
  const at = opening.at.toISOString();
  const reason = opening.reason ?? '';
  const count = toIndex - fromIndex;
  if (type === 'void') return { ...common, type, fromIndex, count, reason, voidedAt: at };
  if (type === 'lost') return { ...common, type, fromNumber: fromIndex, toNumber: toIndex, reason, at };
  const hex = (bytes: Buffer | null): string => needed(bytes, opening).toString('hex');
  const sealed = {
    ...common,
    fromIndex,
    count,
    sealedAt: at,
    late: isLate,
    root: hex(opening.tree).slice(0, 2 * HASH_BYTES),
    mathHash: hex(opening.mathHash),
  };
  if (type === 'shoes') return { ...sealed, type, commitment: hex(opening.commitment) };
  const secret = secretHash(needed(opening.nonce, opening), needed(opening.seed, opening)).toString('hex');
  return type === 'block'
    ? { ...sealed, type, secretHash: secret }
    : { ...sealed, type, secretHash: secret, commitment: hex(opening.commitment) };
}
