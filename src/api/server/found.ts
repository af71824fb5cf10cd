/** What requests name: found, or refused with the error of its kind. */
import type { PotRecord } from '../../domain/communal.js';
import { entryCell, entryTimeMs } from '../../domain/entryId.js';
import { ApiError, ERRORS, type Fault } from '../../domain/errors.js';
import type { Game, Partner } from '../../domain/game.js';
import { ID_MAX } from '../../domain/schema.js';
import type { GameRow } from '../../engine/catalog/games.store.js';
import type { PartnerRow } from '../../engine/catalog/partners.store.js';
import type { Services } from './services.js';

type Store = Services['store'];
type Catalog = Pick<Services['catalog'], 'game' | 'refresh'>;
type Cells = Pick<Services['cells'], 'reads' | 'confirmations'>;

/** How long an entry that Redis has acknowledged is waited for in the ledger. */
export const BOOKED_WITHIN_MS = 3000;

/** A number in a path that names a record; undefined where it can name none. */
export function pathId(text: string): number | undefined {
  return /^[1-9]\d{0,9}$/.test(text) && Number(text) <= ID_MAX ? Number(text) : undefined;
}

/** @param id of a path. @throws ApiError (KS-4209) */
export async function partnerOf(store: Pick<Store, 'partners'>, id: string): Promise<PartnerRow> {
  const partnerId = pathId(id);
  const partner = partnerId === undefined ? undefined : await store.partners.find(partnerId);
  if (partner === undefined) throw new ApiError(ERRORS.partnerNotFound);
  return partner;
}

/** @throws ApiError: KS-4209; KS-4210 for one that is deactivated */
export async function activePartnerOf(store: Pick<Store, 'partners'>, id: string): Promise<PartnerRow> {
  const partner = await partnerOf(store, id);
  if (!partner.isActive) throw new ApiError(ERRORS.partnerIsDeactivated);
  return partner;
}

/** A game, whoever's it is, as it is on record. @param id of a path. @throws ApiError (KS-4201) */
export async function gameRowOf(store: Pick<Store, 'games'>, id: string): Promise<GameRow> {
  const gameId = pathId(id);
  const row = gameId === undefined ? undefined : await store.games.find(gameId);
  if (row === undefined) throw new ApiError(ERRORS.gameNotFound);
  return row;
}

/** A game that is in the database, and that this process may not have heard of yet. */
export async function knownGame(catalog: Catalog, gameId: number): Promise<Game> {
  const known = catalog.game(gameId);
  if (known !== undefined) return known;
  await catalog.refresh();
  const game = catalog.game(gameId);
  if (game === undefined) throw new Error(`Game ${gameId} is in the database and not in the catalog`);
  return game;
}

/** A game of the partner; undefined: it has none of this id. @throws ApiError (KS-5002) where that can't be known now */
export async function ownGame(
  catalog: Catalog,
  gameId: number,
  { partnerId }: Partner,
): Promise<Game | undefined> {
  let game = catalog.game(gameId);
  if (game === undefined) {
    await catalog.refresh().catch(() => {
      throw new ApiError(ERRORS.unavailable);
    });
    game = catalog.game(gameId);
  }
  return game?.partnerId === partnerId ? game : undefined;
}

/** A player as of its last spin. @throws ApiError (KS-4204) */
export async function playerOf({ reads }: Cells, partnerId: number, playerId: string) {
  const player = await reads.player(partnerId, playerId);
  if (player === undefined) throw new ApiError(ERRORS.playerNotFound);
  return player;
}

/**
 * Waits until the ledger has come to an entry, in the cell that made it: its partner may live in another one by now, or live there before
 * this process knows of it.
 * @throws ApiError (KS-5002) where it does not.
 */
export async function booked({ confirmations }: Cells, entryId: bigint): Promise<void> {
  if (!(await confirmations.cameTo(entryCell(entryId), entryId, BOOKED_WITHIN_MS)))
    throw new ApiError(ERRORS.unavailable);
}

/** Why the ledger has no such spin: its day may have been dropped. @param entryId of the spin that was asked for */
export async function noSpin({ ledgerDays }: Pick<Store, 'ledgerDays'>, entryId: bigint): Promise<ApiError> {
  return new ApiError(ERRORS.notFound, (await isDropped(ledgerDays, entryId)) ? { details: [ARCHIVED] } : {});
}

/** What stands in the details of an answer about a day that was dropped. */
const ARCHIVED: Fault = {
  path: '',
  message: 'The day of the spin is archived, and no longer kept here',
  reason: 'ARCHIVED',
};

/** Whether the time of an entry lies in a day that was dropped. */
export async function isDropped(ledgerDays: Store['ledgerDays'], entryId: bigint): Promise<boolean> {
  const keptFrom = await ledgerDays.keptFrom();
  return keptFrom !== undefined && entryTimeMs(entryId) < keptFrom.getTime();
}

/**
 * The pot of a game as it is now.
 * @throws ApiError KS-4601 where none is configured, KS-5002 where Redis does not have it for the moment.
 */
export async function potOf(
  { cells, store }: Pick<Services, 'cells' | 'store'>,
  gameId: number,
  partnerId: number,
): Promise<PotRecord> {
  const pot = await cells.reads.pot(partnerId, gameId);
  if (pot !== undefined) return pot;
  const isOnRecord = await store.communal.isConfigured(gameId);
  throw new ApiError(isOnRecord ? ERRORS.unavailable : ERRORS.progressiveNotConfigured);
}

/** @throws ApiError KS-4601 where none is configured. */
export async function assertPot(store: Pick<Store, 'communal'>, gameId: number): Promise<void> {
  if (!(await store.communal.isConfigured(gameId))) throw new ApiError(ERRORS.progressiveNotConfigured);
}
