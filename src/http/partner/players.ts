/** Players and their spins, read from Redis (now) and the ledger (what was booked). */
import { createHmac } from 'node:crypto';
import { entryTimeMs, firstIdAt } from '../../domain/entryId.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { jsonUsd, parseExactJson } from '../../domain/exactJson.js';
import type { Game, Partner } from '../../domain/game.js';
import { ENTRY_KINDS } from '../../domain/ledgerEntry.js';
import { PATH, Page, PlayerResponse, PlayerSpins, SpinRecord } from '../../domain/requests.js';
import type { SpinIds } from '../../domain/spinId.js';
import type { ShareOfEvent, Told } from '../../postgres/communal.js';
import type { LedgerEntry } from '../../postgres/ledger.js';
import type { Store } from '../../postgres/store.js';
import type { RedisNodes } from '../../redis/nodes.js';
import type { PlayerRecord } from '../../redis/records.js';
import { communityBonus } from '../communalViews.js';
import { cursorOf, type Route, summed } from '../route.js';
import { knownGame } from './games.js';
import { spinResponse } from './spinResponse.js';

export interface PlayerServices {
  readonly store: Store;
  readonly nodes: Pick<RedisNodes, 'cell'>;
  readonly spinIds: SpinIds;
  /** Key of the user ids, 32 bytes. */
  readonly playerIdKey: Buffer;
  game(gameId: number): Game | undefined;
  /** Reads what changed; a game may have been registered a moment ago. */
  refresh(): Promise<void>;
  /** True once the ledger of a cell has come to an entry; false where it has not within the milliseconds. */
  cameTo(cell: number, entryId: bigint, timeoutMs: number): Promise<boolean>;
}

/** How long an entry that Redis has acknowledged is waited for in the ledger. */
const BOOKED_WITHIN_MS = 3000;

/** The internal id of a player: the same for good, and it tells nothing of the partner's own identifier. */
function userIdOf(key: Buffer, partnerId: number, playerId: string): string {
  return `usr_${createHmac('sha256', key).update(`${partnerId}:${playerId}`).digest('base64url').slice(0, 22)}`;
}

/** Waits until the ledger of a cell has come to an entry. @throws ApiError (KS-5002) where it does not. */
export async function booked(services: PlayerServices, cell: number, entryId: bigint): Promise<void> {
  if (!(await services.cameTo(cell, entryId, BOOKED_WITHIN_MS))) throw new ApiError(ERRORS.unavailable);
}

const ENTRY_NUMBER = /^[1-9]\d{0,8}$/;

export const isShownAsSpin = ({ kind }: LedgerEntry): boolean => ENTRY_KINDS[kind].history === 'spin';

/** A booked spin as its response was. @param told what it told of a communal progressive */
async function spinRecord(
  services: PlayerServices,
  partner: Partner,
  entry: LedgerEntry,
  told: Told | undefined,
): Promise<object> {
  const game = await knownGame(services, entry.gameId);
  const spinId = services.spinIds.encodeOne(entry.id, partner.partnerId);
  const fragment = game.fragments[entry.outcomeCode]!;
  const { partnerId } = partner;
  const bonus = told && JSON.stringify(communityBonus(services.spinIds, partnerId, told));
  // The share of who fired was credited by an entry of its own, and answered with the spin.
  const balanceMicros = entry.balanceMicros + (told?.isTrigger === true ? told.shareMicros : 0);
  const isForced = entry.kind === 'forcedSpin';
  const response = spinResponse(spinId, fragment, balanceMicros, entry.requestId, bonus, isForced);
  return {
    ...(parseExactJson(response.toString()) as object),
    createdAt: new Date(entryTimeMs(entry.id)).toISOString(),
    gameId: entry.gameId,
  };
}

/** A share of a communal progressive, which is an entry of its own in a player's history. */
const shareRecord = (
  { spinIds }: PlayerServices,
  { partnerId }: Partner,
  { id, gameId, balanceMicros }: LedgerEntry,
  share: ShareOfEvent,
) => ({
  type: 'communityBonus',
  createdAt: new Date(entryTimeMs(id)).toISOString(),
  gameId,
  balance: { balanceUsd: jsonUsd(BigInt(balanceMicros)) },
  communityBonus: communityBonus(spinIds, partnerId, share),
  toldBySpinId: share.toldBy === null ? null : spinIds.encodeOne(share.toldBy, partnerId),
});

const playerResponse = (playerIdKey: Buffer, partner: Partner, playerId: string, player: PlayerRecord) => ({
  userId: userIdOf(playerIdKey, partner.partnerId, playerId),
  playerId,
  createdAt: new Date(player.createdAtMs).toISOString(),
  balanceUsd: jsonUsd(BigInt(player.balanceMicros)),
  status: player.status,
});

/** Entries of a player's history: spins as their responses were, and shares. */
export async function historyRecords(
  services: PlayerServices,
  partner: Partner,
  entries: readonly LedgerEntry[],
) {
  const { store } = services;
  const idsOf = (shown: 'spin' | 'share') =>
    entries.filter(({ kind }) => ENTRY_KINDS[kind].history === shown).map(({ id }) => id);
  const [told, shares] = await Promise.all([
    store.toldBySpins(idsOf('spin')),
    store.sharesOfEvents(idsOf('share')),
  ]);
  const records = entries.map((entry) => {
    const share = shares.get(entry.id);
    if (share !== undefined) return shareRecord(services, partner, entry, share);
    return isShownAsSpin(entry) ? spinRecord(services, partner, entry, told.get(entry.id)) : [];
  });
  return (await Promise.all(records)).flat();
}

export const playerRoutes = (services: PlayerServices): Route[] => {
  const { store, nodes } = services;
  const found = async (partner: Partner, playerId: string) => {
    const player = await nodes.cell(partner.cell).findPlayer(partner.partnerId, playerId);
    if (player === undefined) throw new ApiError(ERRORS.playerNotFound);
    return player;
  };
  return [
    {
      method: 'get',
      path: '/players/{playerId}',
      params: { playerId: PATH.playerId },
      operationId: 'getPlayer',
      tag: 'Players',
      summary: 'A player, by the identifier that its spins carry',
      scope: 'partner',
      status: 200,
      ...summed(PlayerResponse),
      errors: [ERRORS.playerNotFound],
      failure: ERRORS.playerResolutionFailed,
      async handle({ partner, params }) {
        const playerId = params.playerId!;
        return playerResponse(services.playerIdKey, partner, playerId, await found(partner, playerId));
      },
    },
    {
      method: 'get',
      path: '/players/{playerId}/spins',
      params: { playerId: PATH.playerId },
      operationId: 'listPlayerSpins',
      tag: 'Spins',
      summary: 'The spins of a player and its shares of communal progressives, newest first',
      scope: 'partner',
      query: Page,
      status: 200,
      ...summed(PlayerSpins),
      errors: [ERRORS.playerNotFound],
      failure: ERRORS.playerResolutionFailed,
      async handle({ partner, params, query, words }) {
        const playerId = params.playerId!;
        const cursor = cursorOf(words, ENTRY_NUMBER);
        const player = await found(partner, playerId);
        const page = query.page ?? 1;
        const limit = query.limit!;
        // Entry 1 is the opening; every other one is a spin or a share.
        const total = player.entries - 1;
        const newestNumber =
          cursor === undefined ? player.entries : Math.min(player.entries, Number(cursor) - 1);
        const fromNumber = newestNumber - (page - 1) * limit;
        if (fromNumber <= 1) return { spins: [], page, limit, total, nextCursor: null };
        await booked(services, partner.cell, player.newestEntryId);
        const newest = { id: player.newestEntryId, entryNumber: player.entries };
        const firstId = firstIdAt(player.createdAtMs);
        const of = { partnerId: partner.partnerId, playerId, newest, firstId };
        const entries = await store.entriesDown(of, fromNumber, limit);
        const spins = await historyRecords(services, partner, entries);
        const nextCursor = fromNumber - limit > 1 ? String(fromNumber - limit + 1) : null;
        return { spins, page, limit, total, nextCursor };
      },
    },
    {
      method: 'get',
      path: '/spins/{spinId}',
      params: { spinId: PATH.spinId },
      operationId: 'getSpin',
      tag: 'Spins',
      summary: 'A spin, as it was answered',
      scope: 'partner',
      status: 200,
      ...summed(SpinRecord),
      errors: [ERRORS.notFound],
      failure: ERRORS.internal,
      async handle({ partner, params }) {
        const meant = services.spinIds.decode(params.spinId!);
        if (meant === undefined || meant.partnerId !== partner.partnerId) throw new ApiError(ERRORS.notFound);
        await booked(services, partner.cell, meant.entryId);
        const entry = await store.findEntry(meant.entryId);
        if (entry === undefined || !isShownAsSpin(entry)) throw new ApiError(ERRORS.notFound);
        const [record] = await historyRecords(services, partner, [entry]);
        return { ...record, playerId: entry.playerId };
      },
    },
  ];
};
