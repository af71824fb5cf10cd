/** Renders spins and ledger entries for responses. */
import { entryTimeMs } from '../../domain/entryId.js';
import { jsonUsd, parseExactJson } from '../../domain/exactJson.js';
import type { Partner } from '../../domain/game.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import { type SpinTail, tailOfEntry } from '../../domain/spinTail.js';
import type { Store } from '../api.store.js';
import { communityBonus } from '../communal/views.js';
import { knownGame } from '../server/found.js';
import type { Services } from '../server/services.js';
import { spinResponse } from './spinResponse.js';

export const isShownAsSpin = ({ kind }: LedgerEntry): boolean => ENTRY_KINDS[kind].history === 'spin';

/** The data of a committed spin from which all its representations (JSON, CSV, statement) are rendered. */
export interface ShownSpin {
  readonly entry: LedgerEntry;
  readonly tail: SpinTail;
  readonly balanceBeforeMicros: number;
  /**
   * Balance in the response of the spin, in micro-USD: after the wager, the payout and the player's share of
   * a bonus that the spin triggered.
   */
  readonly balanceMicros: number;
  /** Position of the outcome in the sequence of its game; null if a tester chose the outcome. */
  readonly outcomeIndex: number | null;
}

export const balanceBefore = ({ balanceMicros, creditMicros, wagerMicros }: LedgerEntry): number =>
  balanceMicros - creditMicros + wagerMicros;

/** Returns the spins among the given entries, in the same order. */
export async function shownSpins(store: Store, entries: readonly LedgerEntry[]): Promise<ShownSpin[]> {
  const shownOf = async (entry: LedgerEntry): Promise<ShownSpin> => {
    const notice = await store.communal.noticeOfSpin(entry.id);
    // The share of the player who triggered the bonus has a ledger entry of its own, but was part of the
    // spin's answer.
    const balanceMicros = entry.balanceMicros + (notice?.isTrigger === true ? notice.shareMicros : 0);
    const balanceBeforeMicros = balanceBefore(entry);
    const outcomeIndex = ENTRY_KINDS[entry.kind].advancesGameIndex ? entry.outcomeIndex : null;
    const tail = tailOfEntry(entry, notice);
    return { entry, tail, balanceBeforeMicros, balanceMicros, outcomeIndex };
  };
  return Promise.all(entries.filter(isShownAsSpin).map(shownOf));
}

/** Renders the spins among the given entries as their responses were, in the same order. */
export async function spinRecords(
  services: Services,
  { partnerId }: Pick<Partner, 'partnerId'>,
  entries: readonly LedgerEntry[],
) {
  const { spinIds, store } = services;
  const recordOf = async (shown: ShownSpin) => {
    const { entry, tail, balanceMicros } = shown;
    const game = await knownGame(services.catalog, entry.gameId);
    const spinId = spinIds.encodeOne(entry.id, partnerId);
    const fragment = game.fragments[entry.outcomeCode]!;
    const bonus = tail.notice && JSON.stringify(communityBonus(spinIds, partnerId, tail.notice));
    const response = spinResponse(spinId, fragment, balanceMicros, entry.requestId, tail, bonus);
    return {
      ...(parseExactJson(response.toString()) as object),
      createdAt: new Date(entryTimeMs(entry.id)).toISOString(),
      gameId: entry.gameId,
      wagerUsd: jsonUsd(BigInt(entry.wagerMicros)),
      balanceBeforeUsd: jsonUsd(BigInt(shown.balanceBeforeMicros)),
      balanceAfterUsd: jsonUsd(BigInt(balanceMicros)),
      outcomeIndex: shown.outcomeIndex,
    };
  };
  return Promise.all((await shownSpins(store, entries)).map(recordOf));
}

export function statementEntry({ spinIds }: Services, entry: LedgerEntry) {
  const isSpin = isShownAsSpin(entry);
  return {
    entryId: String(entry.id),
    kind: entry.kind,
    createdAt: new Date(entryTimeMs(entry.id)),
    gameId: entry.gameId === 0 ? null : entry.gameId,
    wagerUsd: jsonUsd(BigInt(entry.wagerMicros)),
    creditUsd: jsonUsd(BigInt(entry.creditMicros)),
    balanceUsd: jsonUsd(BigInt(entry.balanceMicros)),
    requestId: entry.requestId,
    spinId: isSpin ? spinIds.encodeOne(entry.id, entry.partnerId) : null,
  };
}
