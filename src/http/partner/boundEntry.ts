/** What the ledger tells of a requestId that Redis binds no more. */
import type { ToldBonus } from '../../domain/communal.js';
import type { EntryKind } from '../../domain/ledgerEntry.js';

/** A spin, or round, as it was dealt. */
export interface BoundEntry {
  readonly kind: EntryKind;
  readonly gameId: number;
  readonly playerId: string;
  readonly spinId: string;
  readonly outcomeCode: number;
  /** Micro-USD after it. */
  readonly balanceMicros: number;
  /** What it told of a communal progressive. */
  readonly told: ToldBonus | undefined;
}
