/**
 * Tail of a spin's reply: optional data after its CORE (layouts.ts). The tail is bound to the requestId, too,
 * so each replay repeats it.
 */
import type { BonusNotice } from './communal.js';
import { BONUS_NOTICE, FORCED_TAIL } from './layouts.js';
import type { LedgerEntry } from './ledgerColumns.js';

export interface SpinTail {
  /** Bonus of a communal progressive that the spin notifies its player of. */
  readonly notice: BonusNotice | undefined;
  readonly isForced: boolean;
}

/** Empty tail of a spin's reply, which most spins have. */
export const NO_TAIL: SpinTail = { notice: undefined, isForced: false };
const FORCED: SpinTail = { notice: undefined, isForced: true };
const NO_BYTES = Buffer.alloc(0);

export function tailOfEntry({ kind }: Pick<LedgerEntry, 'kind'>, notice: BonusNotice | undefined): SpinTail {
  if (kind === 'forcedSpin') return FORCED;
  return notice === undefined ? NO_TAIL : { notice, isForced: false };
}

/** @param bytes undefined or empty if the spin has no tail */
export function readTail(bytes: Buffer | undefined): SpinTail {
  if (bytes === undefined || bytes.length === 0) return NO_TAIL;
  // The tail of a bonus notice is longer, so it can't be confused with the tail of a chosen outcome.
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
