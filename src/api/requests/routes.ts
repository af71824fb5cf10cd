/** Handler of the look-up of a request by its requestId (docs/contract.md §15.8). */

import { ApiError, ERRORS } from '../../domain/errors.js';
import { jsonUsd } from '../../domain/exactJson.js';
import { isShownAsSpin } from '../../domain/ledgerEntry.js';
import { shownRecord } from '../blackjack/routes.js';
import { booked, partnerOf } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import { shownSpin } from '../spins/routes.js';
import * as contract from './contract.js';

/**
 * Returns the ids of the spins, tickets and deals that a requestId is bound to, newest first.
 *
 * @throws ApiError (KS-5002) if a store does not answer, or a bound entry is not committed in time
 */
async function boundEntries(services: Services, partnerId: number, requestId: string): Promise<bigint[]> {
  const { catalog, cells, requestIds, store } = services;
  // Redis is read first, so that an id that is released between the two reads is found by the second one.
  const bound = await cells.reads.bound(partnerId, requestId);
  if (bound !== undefined) await booked(cells, bound);
  const partner = catalog.partner(partnerId);
  if (partner === undefined) throw new ApiError(ERRORS.unavailable);
  await requestIds.refresh();
  const released = await requestIds.find(partner, requestId).catch((error: unknown) => {
    throw new ApiError(ERRORS.unavailable, { cause: error });
  });
  const tickets = await store.requests.tickets(partnerId, requestId);
  const ids = new Set([bound, released.entry?.id, ...tickets].filter((id) => id !== undefined));
  return [...ids].sort((a, b) => (a < b ? 1 : -1));
}

async function playsOf(services: Services, partnerId: number, requestId: string) {
  const { store } = services;
  const ids = await boundEntries(services, partnerId, requestId);
  const rounds = await store.rounds.ofDeals(ids);
  const entries = await Promise.all(ids.map((id) => store.ledgerEntries.find(id)));
  const spins = entries.filter((entry) => entry !== undefined).filter(isShownAsSpin);
  return {
    spins: await Promise.all(spins.map((entry) => shownSpin(services, { partnerId }, entry))),
    rounds: await Promise.all([...rounds.values()].map((record) => shownRecord(services, record))),
  };
}

async function adjustmentOf(services: Services, partnerId: number, requestId: string) {
  const { store, spinIds, cells } = services;
  let found = await store.requests.adjustment(partnerId, requestId);
  if (found?.entryId === null) {
    // The adjustment may have taken effect without being committed yet.
    const player = await cells.reads.player(partnerId, found.playerId);
    if (player !== undefined) await booked(cells, player.newestEntryId);
    found = await store.requests.adjustment(partnerId, requestId);
  }
  if (found === undefined) return null;
  const { amountMicros, entryId, ...adjustment } = found;
  const entry = entryId === null ? undefined : await store.ledgerEntries.find(entryId);
  return {
    ...adjustment,
    amountUsd: jsonUsd(amountMicros),
    adjustmentId: entryId === null ? null : spinIds.encodeOne(entryId, partnerId),
    balanceUsd: entry === undefined ? null : jsonUsd(BigInt(entry.balanceMicros)),
  };
}

export const requestRoutes = (services: Services): Route[] => [
  route(contract.findRequest, async ({ params, query: { requestId } }) => {
    const { partnerId } = await partnerOf(services.store, params.id);
    const [plays, adjustment, refused] = await Promise.all([
      playsOf(services, partnerId, requestId),
      adjustmentOf(services, partnerId, requestId),
      services.store.requests.refusedAdjustments(partnerId, requestId),
    ]);
    const refusedAdjustments = refused.map(({ amountMicros, ...each }) => ({
      ...each,
      amountUsd: jsonUsd(amountMicros),
    }));
    return { partnerId, requestId, ...plays, adjustment, refusedAdjustments };
  }),
];
