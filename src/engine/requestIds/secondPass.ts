/**
 * The second pass of a request that binds a requestId: Redis does not bind the id, and the ledger may. Spins, tickets and deals share it.
 *
 *   ledger ──has it──> the same request: replay; another one: conflict
 *     └── has it not ──> nothing else stands against it: the script once more; else: refused
 */
import type { EntryKind } from '../../domain/ledgerEntry.js';

/** What the ledger has of a requestId. */
export interface FoundRequest<Entry> {
  /** What the id is bound to; undefined: nothing. */
  readonly entry: Entry | undefined;
  /** As of which version of the cell's filters that is known. */
  readonly version: number;
}

export interface BoundRequest {
  readonly kind: EntryKind;
  readonly gameId: number;
  readonly playerId: string;
}

export interface AskedRequest {
  /** Of entries that such a request may have made. */
  readonly kinds: readonly EntryKind[];
  readonly gameId: number;
  readonly playerId: string;
  /** The game is the partner's and the wager is its: only then can it equal a request that was done. */
  readonly mayEqual: boolean;
  /** Nothing may be dealt for it. */
  readonly isDenied: boolean;
}

export type SecondPass<Entry> =
  | { readonly outcome: 'replay'; readonly entry: Entry }
  | { readonly outcome: 'conflict' | 'refused' }
  | { readonly outcome: 'again'; readonly clearedAt: number };

export function secondPass<Entry extends BoundRequest>(
  { entry, version }: FoundRequest<Entry>,
  { kinds, gameId, playerId, mayEqual, isDenied }: AskedRequest,
): SecondPass<Entry> {
  if (entry === undefined)
    return isDenied ? { outcome: 'refused' } : { outcome: 'again', clearedAt: version };
  const isSame =
    mayEqual && kinds.includes(entry.kind) && entry.gameId === gameId && entry.playerId === playerId;
  return isSame ? { outcome: 'replay', entry } : { outcome: 'conflict' };
}
