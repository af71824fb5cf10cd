/** What is kept of an entry of the public log, and the text that it gives: what was committed to, to the byte. */

import { secretHash } from './leaves.js';
import { entryText, labelKeyHash, type PublicLogEntry } from './logEntries.js';
import { HASH_BYTES } from './tree.js';

/** As `log_entries.kind` has them. */
export const LOG_ENTRY_KINDS = { forgotten: 0, block: 1, pool: 2, shoes: 3, void: 4, lost: 5 } as const;
/** `forgotten`: a number whose opening a restore has lost; an entry `lost` names it. */
export type EntryType = keyof typeof LOG_ENTRY_KINDS;

export const entryTypeOf = (kind: number): EntryType =>
  (Object.keys(LOG_ENTRY_KINDS) as EntryType[]).find((type) => LOG_ENTRY_KINDS[type] === kind)!;

/** An entry's own row, its game's, and that of its block where it is one. */
export interface Opening {
  readonly gameId: number;
  readonly number: number;
  readonly type: EntryType;
  /** Indices, `toIndex` without; of a lost entry numbers, `toIndex` the last one. */
  readonly fromIndex: number;
  readonly toIndex: number;
  readonly at: Date;
  readonly isLate: boolean;
  readonly reason: string | null;
  readonly labelKey: Buffer;
  readonly mathHash: Buffer | null;
  /** Of a block; null of others. Shoes have a seed each, which their entry does not name. */
  readonly seed: Buffer | null;
  readonly nonce: Buffer | null;
  /** At least its root. */
  readonly tree: Buffer | null;
  readonly commitment: Buffer | null;
}

/** The entry's text (JCS). @throws Error where what it needs of its block is missing */
export function openedText(opening: Opening): string {
  return entryText(entryOf(opening));
}

function needed(bytes: Buffer | null, { gameId, number }: Opening): Buffer {
  if (bytes === null) throw new Error(`Entry ${number} of game ${gameId} lacks a part of its block`);
  return bytes;
}

/** Openings of one append share the key of their game. */
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
