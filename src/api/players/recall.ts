/**
 * Lists a player's last games as the player saw them: spins, tickets, rounds and shares of bonuses
 * (docs/contract.md §11).
 */

import { entryTimeMs } from '../../domain/entryId.js';
import { jsonUsd } from '../../domain/exactJson.js';
import type { Partner } from '../../domain/game.js';
import { actionsOf, type RoundRecord, viewRound } from '../../domain/games/round.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { isShownAsSpin } from '../../domain/ledgerEntry.js';
import { adjustmentRecord } from '../adjustments/routes.js';
import { tableOf } from '../blackjack/routes.js';
import { eventIdOf } from '../communal/views.js';
import { booked, knownGame, playerOf } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import { balanceBefore, spinRecords } from '../spins/records.js';
import * as contract from './contract.js';
import type { RecalledShare } from './recall.store.js';

/**
 * Limits of a recall: ledger entries per read, and reads per request. A game has few entries, but many
 * adjustments may lie between two games.
 */
const WALK_ENTRIES = 128;
const WALKS_MAX = 32;

interface Found {
  /** First ledger entry of each game, newest game first. */
  readonly starts: readonly LedgerEntry[];
  readonly shares: ReadonlyMap<bigint, RecalledShare>;
  /** Entries of adjustments that are newer than the oldest game, newest first; at most as many as games. */
  readonly adjustments: readonly LedgerEntry[];
}

/**
 * Finds the newest games of a player by their first ledger entries, and the adjustments since then.
 *
 * @param newestId newest committed entry of the player
 */
async function newestGames(
  { store }: Services,
  player: { readonly partnerId: number; readonly playerId: string },
  newestId: bigint,
  limit: number,
): Promise<Found> {
  const starts: LedgerEntry[] = [];
  const shares = new Map<bigint, RecalledShare>();
  const adjustments: LedgerEntry[] = [];
  let fromId = newestId;
  for (let walks = 0; walks < WALKS_MAX && fromId > 0n && starts.length < limit; walks++) {
    const entries = await store.spinHistory.entriesFrom(player, fromId, WALK_ENTRIES);
    const shareIds = entries.filter(({ kind }) => kind === 'communalShare').map(({ id }) => id);
    for (const [id, share] of await store.recall.shares(shareIds)) shares.set(id, share);
    // The spin that triggered the bonus already contains the share of its own player.
    const isStart = (entry: LedgerEntry): boolean =>
      isShownAsSpin(entry) || entry.kind === 'roundDeal' || shares.get(entry.id)?.isTrigger === false;
    starts.push(...entries.filter(isStart));
    adjustments.push(...entries.filter(({ kind }) => kind === 'adjustment'));
    fromId = entries.at(-1)?.previousId ?? 0n;
  }
  const oldest = starts[limit - 1]?.id ?? 0n;
  return {
    starts: starts.slice(0, limit),
    shares,
    adjustments: adjustments.filter(({ id }) => id > oldest).slice(0, limit),
  };
}

async function recalledSpins(services: Services, partner: Partner, starts: readonly LedgerEntry[]) {
  const spins = starts.filter(isShownAsSpin);
  const records = await spinRecords(services, partner, spins);
  const recalled = await Promise.all(
    spins.map(async (entry, place) => {
      const { kind } = await knownGame(services.catalog, entry.gameId);
      return {
        kind: kind.gameType === 'raffle' ? 'ticket' : 'spin',
        ...records[place]!,
        payoutUsd: jsonUsd(BigInt(entry.creditMicros)),
      };
    }),
  );
  return new Map(spins.map((entry, place) => [entry.id, recalled[place]!]));
}

async function recalledRound(services: Services, record: RoundRecord) {
  const { spinIds, blackjack } = services;
  const { gameId, shoeIndex, partnerId, entryIds, wagersMicros, balancesMicros } = record;
  const table = await tableOf(services, gameId);
  const seed = await blackjack.shoes.seedOf(gameId, shoeIndex);
  const view = viewRound(table, record, seed, spinIds.encodeOne(entryIds[0]!, partnerId));
  // The entry of the deal itself pays a natural blackjack.
  const paidAtDeal = entryIds.length === 1 ? (record.payoutMicros ?? 0) : 0;
  const { roundId, status, phase, hands, dealer, insurance, autoCompleted } = view;
  return {
    kind: 'round',
    roundId,
    gameId,
    outcomeIndex: shoeIndex,
    presentation: {
      type: 'blackjack',
      status,
      phase,
      hands,
      dealer,
      insurance,
      actions: actionsOf(record),
      autoCompleted: autoCompleted ?? false,
    },
    wagerUsd: view.wageredUsd,
    payoutUsd: view.payoutUsd,
    balanceBeforeUsd: jsonUsd(BigInt(balancesMicros[0]! - paidAtDeal + wagersMicros[0]!)),
    balanceAfterUsd: jsonUsd(BigInt(balancesMicros.at(-1)!)),
    createdAt: timeOf(entryIds[0]!),
    endedAt: status === 'OPEN' ? null : timeOf(entryIds.at(-1)!),
    ...('requestId' in view ? { requestId: view.requestId } : {}),
  };
}

const timeOf = (entryId: bigint): string => new Date(entryTimeMs(entryId)).toISOString();

function recalledShare({ spinIds }: Services, entry: LedgerEntry, share: RecalledShare) {
  const { partnerId, creditMicros } = entry;
  const { tierName, tierLevel, notifiedBy } = share;
  return {
    kind: 'share',
    eventId: eventIdOf(spinIds, share.eventId, partnerId),
    gameId: entry.gameId,
    presentation: {
      type: 'communityBonus',
      tierName,
      tierLevel,
      toldBySpinId: notifiedBy === null ? null : spinIds.encodeOne(notifiedBy, partnerId),
    },
    wagerUsd: 0,
    payoutUsd: jsonUsd(BigInt(creditMicros)),
    balanceBeforeUsd: jsonUsd(BigInt(balanceBefore(entry))),
    balanceAfterUsd: jsonUsd(BigInt(entry.balanceMicros)),
    createdAt: timeOf(entry.id),
  };
}

async function recall(services: Services, partner: Partner, playerId: string, limit: number) {
  const { store, cells } = services;
  const { partnerId } = partner;
  const { newestEntryId } = await playerOf(cells, partnerId, playerId);
  await booked(cells, newestEntryId);
  const found = await newestGames(services, { partnerId, playerId }, newestEntryId, limit);
  const { starts, shares } = found;
  const dealIds = starts.filter(({ kind }) => kind === 'roundDeal').map(({ id }) => id);
  const [names, spins, rounds, adjustments] = await Promise.all([
    store.recall.displayNames([...new Set(starts.map(({ gameId }) => gameId))]),
    recalledSpins(services, partner, starts),
    store.rounds.ofDeals(dealIds),
    store.adjustments.ofEntries(partnerId, found.adjustments),
  ]);
  const games = await Promise.all(
    starts.map(async (entry) => {
      const share = shares.get(entry.id);
      const round = rounds.get(entry.id);
      const game =
        share !== undefined
          ? recalledShare(services, entry, share)
          : round !== undefined
            ? await recalledRound(services, round)
            : spins.get(entry.id)!;
      return { ...game, displayName: names.get(entry.gameId)! };
    }),
  );
  return { games, adjustments: adjustments.map((adjustment) => adjustmentRecord(services, adjustment)) };
}

export const recallRoutes = (services: Services): Route[] => [
  route(contract.recallGames, ({ partner, params, query }) =>
    recall(services, partner, params.playerId, query.limit),
  ),
];
