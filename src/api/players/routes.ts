/** Players and their spins, read from Redis (now) and the ledger (what was booked). */
import { createHmac } from 'node:crypto';
import { entryTimeMs, firstIdAt } from '../../domain/entryId.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { jsonUsd, parseExactJson } from '../../domain/exactJson.js';
import type { Partner } from '../../domain/game.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import { type SpinTail, tailOfEntry } from '../../domain/spinTail.js';
import type { PlayerRecord } from '../../engine/cells/partnerReads.js';
import { communityBonus } from '../communal/views.js';
import { booked, knownGame, noSpin, playerOf } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import type { Store } from '../server/store.js';
import { getSpin } from '../spins/contract.js';
import { spinResponse } from '../spins/spinResponse.js';
import * as contract from './contract.js';

/** The internal id of a player: the same for good, and it tells nothing of the partner's own identifier. */
function userIdOf(key: Buffer, partnerId: number, playerId: string): string {
  return `usr_${createHmac('sha256', key).update(`${partnerId}:${playerId}`).digest('base64url').slice(0, 22)}`;
}

export const isShownAsSpin = ({ kind }: LedgerEntry): boolean => ENTRY_KINDS[kind].history === 'spin';

/** What a booked spin is to its reader, in whichever form it is shown. */
export interface ShownSpin {
  readonly entry: LedgerEntry;
  readonly tail: SpinTail;
  readonly balanceBeforeMicros: number;
  /** As it was answered: after wager, payout and the share of a bonus that it fired. */
  readonly balanceMicros: number;
  /** Its place in its game's sequence; null where a tester chose the outcome. */
  readonly outcomeIndex: number | null;
}

/** The player's balance before an entry. */
export const balanceBefore = ({ balanceMicros, creditMicros, wagerMicros }: LedgerEntry): number =>
  balanceMicros - creditMicros + wagerMicros;

/** The spins among some entries, in their order. */
export async function shownSpins(store: Store, entries: readonly LedgerEntry[]): Promise<ShownSpin[]> {
  const shownOf = async (entry: LedgerEntry): Promise<ShownSpin> => {
    const notice = await store.communal.noticeOfSpin(entry.id);
    // The share of who fired was credited by an entry of its own, and answered with the spin.
    const balanceMicros = entry.balanceMicros + (notice?.isTrigger === true ? notice.shareMicros : 0);
    const balanceBeforeMicros = balanceBefore(entry);
    const outcomeIndex = ENTRY_KINDS[entry.kind].advancesGameIndex ? entry.outcomeIndex : null;
    const tail = tailOfEntry(entry, notice);
    return { entry, tail, balanceBeforeMicros, balanceMicros, outcomeIndex };
  };
  return Promise.all(entries.filter(isShownAsSpin).map(shownOf));
}

/** The spins among some entries as their responses were, in their order. */
export async function spinRecords(
  services: Services,
  { partnerId }: Partner,
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

const playerResponse = (playerIdKey: Buffer, partner: Partner, playerId: string, player: PlayerRecord) => ({
  userId: userIdOf(playerIdKey, partner.partnerId, playerId),
  playerId,
  createdAt: new Date(player.createdAtMs).toISOString(),
  balanceUsd: jsonUsd(BigInt(player.balanceMicros)),
  status: player.status,
});

export const playerRoutes = (services: Services): Route[] => {
  const { store, cells } = services;
  return [
    route(contract.getPlayer, async ({ partner, params }) => {
      const playerId = params.playerId;
      return playerResponse(
        services.playerIdKey,
        partner,
        playerId,
        await playerOf(cells, partner.partnerId, playerId),
      );
    }),
    route(contract.listPlayerSpins, async ({ partner, params, query }) => {
      const playerId = params.playerId;
      const player = await playerOf(cells, partner.partnerId, playerId);
      const { page = 1, limit } = query;
      await booked(services.cells, player.newestEntryId);
      const newest = { id: player.newestEntryId, entryNumber: player.entries };
      const firstId = firstIdAt(player.createdAtMs);
      const of = { partnerId: partner.partnerId, playerId, newest, firstId };
      const { spins, total } = await store.history.spinPage(of, (page - 1) * limit, limit);
      return { spins: await spinRecords(services, partner, spins), page, limit, total };
    }),
    route(getSpin, async ({ partner, params }) => {
      const meant = services.spinIds.decode(params.spinId);
      if (meant === undefined || meant.partnerId !== partner.partnerId) throw new ApiError(ERRORS.notFound);
      await booked(services.cells, meant.entryId);
      const entry = await store.ledger.find(meant.entryId);
      if (entry === undefined || !isShownAsSpin(entry)) throw await noSpin(store, meant.entryId);
      const [record] = await spinRecords(services, partner, [entry]);
      return { ...record, playerId: entry.playerId };
    }),
  ];
};
