/** Renders spins and ledger entries for responses. */
import { entryTimeMs } from '../../domain/entryId.js';
import { jsonUsd, parseExactJson } from '../../domain/exactJson.js';
import type { Partner } from '../../domain/game.js';
import { type LedgerEntry, SENT_MEMBERS, type SentMember } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS, isShownAsSpin } from '../../domain/ledgerEntry.js';
import { microsToUsdText } from '../../domain/money.js';
import { NO_TAIL, type SpinTail, tailOfEntry } from '../../domain/spinTail.js';
import type { Store } from '../api.store.js';
import { communityBonus } from '../communal/views.js';
import { knownGame } from '../server/found.js';
import type { Services } from '../server/services.js';
import { FORCED, spinResponse } from './spinResponse.js';

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

/**
 * Renders the spins among the given entries as JSON, in the same order: each as its response was, with the
 * members of the history. The members are in the order of the schema, and those that may be absent come last.
 */
export async function spinTexts(
  services: Services,
  { partnerId }: Pick<Partner, 'partnerId'>,
  entries: readonly LedgerEntry[],
  hasPlayer: boolean,
): Promise<string[]> {
  const { spinIds, store } = services;
  const textOf = async (shown: ShownSpin): Promise<string> => {
    const { entry, tail, balanceMicros } = shown;
    const { id, gameId, outcomeCode, wagerMicros } = entry;
    const game = services.catalog.game(gameId) ?? (await knownGame(services.catalog, gameId));
    const bonus = tail.notice && JSON.stringify(communityBonus(spinIds, partnerId, tail.notice));
    const spinId = spinIds.encodeOne(id, partnerId);
    const fragment = game.fragments[outcomeCode]!;
    const response = spinResponse(spinId, fragment, balanceMicros, undefined, NO_TAIL, bonus);
    const textOf = (member: SentMember): string =>
      entry[member] === null ? '' : `,"${member}":${JSON.stringify(entry[member])}`;
    const player = hasPlayer ? textOf('playerId') : '';
    const forced = tail.isForced ? FORCED : '';
    const sent = SENT_MEMBERS.map((member) => (member === 'playerId' ? '' : textOf(member))).join('');
    return (
      `${response.toString('utf8', 0, response.length - 1)},"createdAt":"${new Date(entryTimeMs(id)).toISOString()}",` +
      `"gameId":${gameId},"wagerUsd":${microsToUsdText(wagerMicros)},` +
      `"balanceBeforeUsd":${microsToUsdText(shown.balanceBeforeMicros)},` +
      `"balanceAfterUsd":${microsToUsdText(balanceMicros)},"outcomeIndex":${shown.outcomeIndex}${player}${forced}${sent}}`
    );
  };
  return Promise.all((await shownSpins(store, entries)).map(textOf));
}

/** Returns the spins among the given entries as objects, in the same order ({@link spinTexts}). */
export async function spinRecords(
  services: Services,
  partner: Pick<Partner, 'partnerId'>,
  entries: readonly LedgerEntry[],
) {
  const texts = await spinTexts(services, partner, entries, false);
  return texts.map((text) => parseExactJson(text) as object);
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
