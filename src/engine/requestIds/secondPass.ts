/**
 * The second pass of a request whose requestId Redis does not bind but the ledger may have. Spins, tickets
 * and deals of rounds share this code.
 *
 *   ledger ──has the id──> same request: replay; another request: conflict
 *     └── does not have it ──> nothing else forbids a deal: call the script once more; otherwise: refused
 */
import type { EntryKind } from '../../domain/ledgerEntry.js';

export interface FoundRequest<Entry> {
  /** Entry that the requestId is bound to; undefined if there is none. */
  readonly entry: Entry | undefined;
  /** Version of the cell's request-id filters for which the result of the look-up holds. */
  readonly version: number;
}

export interface BoundRequest {
  readonly kind: EntryKind;
  readonly gameId: number;
  readonly playerId: string;
}

export interface AskedRequest {
  /** Kinds of ledger entries that a spin, ticket or deal can make. */
  readonly kinds: readonly EntryKind[];
  readonly gameId: number;
  readonly playerId: string;
  /**
   * True if the game belongs to the partner and the wager is the game's wager. Otherwise the request can't be
   * a repetition of an earlier one.
   */
  readonly mayEqual: boolean;
  /** True if the request may only be answered by a replay. */
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
