/** What the answer to a spin has beside its CORE (layouts.ts), and each replay repeats: the tail of the spin's reply and of what its requestId is bound to. */
import type { BonusNotice } from './communal.js';
import { BONUS_NOTICE, FORCED_TAIL } from './layouts.js';
import type { LedgerEntry } from './ledgerColumns.js';

export interface SpinTail {
  /** What the spin notifies its player of, of a communal progressive. */
  readonly notice: BonusNotice | undefined;
  /** A tester chose the outcome. */
  readonly isForced: boolean;
}

/** The tail of most spins. */
export const NO_TAIL: SpinTail = { notice: undefined, isForced: false };
const FORCED: SpinTail = { notice: undefined, isForced: true };
const NO_BYTES = Buffer.alloc(0);

/** The tail of a spin that the ledger has. */
export function tailOfEntry({ kind }: Pick<LedgerEntry, 'kind'>, notice: BonusNotice | undefined): SpinTail {
  if (kind === 'forcedSpin') return FORCED;
  return notice === undefined ? NO_TAIL : { notice, isForced: false };
}

/** @param bytes undefined or empty: the spin has no tail */
export function readTail(bytes: Buffer | undefined): SpinTail {
  if (bytes === undefined || bytes.length === 0) return NO_TAIL;
  // A notice is longer.
  return bytes.equals(FORCED_TAIL) ? FORCED : { notice: readNotice(bytes), isForced: false };
}

export function writeTail({ notice, isForced }: SpinTail): Buffer {
  if (isForced) return FORCED_TAIL;
  return notice === undefined ? NO_BYTES : writeNotice(notice);
}

export function readNotice(bytes: Buffer): BonusNotice {
  const { isTrigger, ...event } = BONUS_NOTICE.read(bytes);
  return { ...event, isTrigger: isTrigger === 1, tierName: bytes.toString('utf8', BONUS_NOTICE.bytes) };
}

export const writeNotice = ({ isTrigger, tierName, ...event }: BonusNotice): Buffer =>
  Buffer.concat([BONUS_NOTICE.make({ ...event, isTrigger: isTrigger ? 1 : 0 }), Buffer.from(tierName)]);
