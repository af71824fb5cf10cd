/**
 * Looks up the records that a request names in its path or body, and throws the matching error if a record
 * does not exist.
 */
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

/** Maximum wait for the commit of an entry that Redis has acknowledged, in ms. */
export const BOOKED_WITHIN_MS = 3000;

/** Returns undefined if the text is not a valid id. */
export function pathId(text: string): number | undefined {
  return /^[1-9]\d{0,9}$/.test(text) && Number(text) <= ID_MAX ? Number(text) : undefined;
}

export async function partnerOf(store: Pick<Store, 'partners'>, id: string): Promise<PartnerRow> {
  const partnerId = pathId(id);
  const partner = partnerId === undefined ? undefined : await store.partners.find(partnerId);
  if (partner === undefined) throw new ApiError(ERRORS.partnerNotFound);
  return partner;
}

export async function activePartnerOf(store: Pick<Store, 'partners'>, id: string): Promise<PartnerRow> {
  const partner = await partnerOf(store, id);
  if (!partner.isActive) throw new ApiError(ERRORS.partnerIsDeactivated);
  return partner;
}

/** Returns the database row of a game, regardless of its partner. */
export async function gameRowOf(store: Pick<Store, 'games'>, id: string): Promise<GameRow> {
  const gameId = pathId(id);
  const row = gameId === undefined ? undefined : await store.games.find(gameId);
  if (row === undefined) throw new ApiError(ERRORS.gameNotFound);
  return row;
}

/**
 * Returns a game that exists in the database. Refreshes the catalog if this process has not loaded the game
 * yet.
 */
export async function knownGame(catalog: Catalog, gameId: number): Promise<Game> {
  const known = catalog.game(gameId);
  if (known !== undefined) return known;
  await catalog.refresh();
  const game = catalog.game(gameId);
  if (game === undefined) throw new Error(`game ${gameId} is in the database but not in the catalog`);
  return game;
}

/**
 * Returns undefined if the partner has no game with this id.
 * @throws ApiError (KS-5002) if the catalog cannot be refreshed
 */
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

export async function playerOf({ reads }: Cells, partnerId: number, playerId: string) {
  const player = await reads.player(partnerId, playerId);
  if (player === undefined) throw new ApiError(ERRORS.playerNotFound);
  return player;
}

/**
 * Waits until an entry is committed in the cell that created it. This may not be the partner's cell in the
 * catalog: the partner may have moved since, or this process may not have learned of the move yet.
 *
 * @throws ApiError (KS-5002) if the entry is not committed in time
 */
export async function booked({ confirmations }: Cells, entryId: bigint): Promise<void> {
  if (!(await confirmations.cameTo(entryCell(entryId), entryId, BOOKED_WITHIN_MS)))
    throw new ApiError(ERRORS.unavailable);
}

/**
 * Returns the error for a spin that is not in the ledger. The error says whether the day of the spin was
 * dropped.
 */
export async function noSpin({ ledgerDays }: Pick<Store, 'ledgerDays'>, entryId: bigint): Promise<ApiError> {
  return new ApiError(ERRORS.notFound, (await isDropped(ledgerDays, entryId)) ? { details: [ARCHIVED] } : {});
}

/** Error detail for an entry whose day was archived and dropped. */
const ARCHIVED: Fault = {
  path: '',
  message: 'The day of the spin is archived and no longer available here',
  reason: 'ARCHIVED',
};

export async function isDropped(ledgerDays: Store['ledgerDays'], entryId: bigint): Promise<boolean> {
  const keptFrom = await ledgerDays.keptFrom();
  return keptFrom !== undefined && entryTimeMs(entryId) < keptFrom.getTime();
}

/**
 * @throws ApiError KS-4601 if the game has no communal progressive, KS-5002 if Redis does not have the pot at
 * the moment
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

/** Checks that a game has a communal progressive. */
export async function assertPot(store: Pick<Store, 'communal'>, gameId: number): Promise<void> {
  if (!(await store.communal.isConfigured(gameId))) throw new ApiError(ERRORS.progressiveNotConfigured);
}
