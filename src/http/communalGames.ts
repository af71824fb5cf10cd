/** Finds the communal progressive of a game, for both APIs. */
import type { PotRecord } from '../domain/communal.js';
import { ApiError, ERRORS } from '../domain/errors.js';
import type { Store } from '../postgres/store.js';
import type { Services } from './services.js';

/**
 * The pot of a game as it is now.
 * @throws ApiError KS-4601 where none is configured, KS-5002 where Redis does not have it for the moment.
 */
export async function potOf(services: Services, gameId: number, partnerId: number): Promise<PotRecord> {
  const pot = await services.cells.reads.pot(partnerId, gameId);
  if (pot !== undefined) return pot;
  const isOnRecord = await services.store.hasCommunal(gameId);
  throw new ApiError(isOnRecord ? ERRORS.unavailable : ERRORS.progressiveNotConfigured);
}

/** @throws ApiError KS-4601 where none is configured. */
export async function assertPot(store: Store, gameId: number): Promise<void> {
  if (!(await store.hasCommunal(gameId))) throw new ApiError(ERRORS.progressiveNotConfigured);
}
