/** Handler of the operators' search over partners, games, players, spins, rounds and keys. */
import { isShownAsSpin } from '../../domain/ledgerEntry.js';
import { booked } from '../server/found.js';
import { type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import * as contract from './contract.js';

const PLAYERS_FOUND_MAX = 10;

/**
 * Returns the partners that have a player with exactly this name.
 *
 * @param text name of the player, or `slug/player` to search one partner only
 */
async function playersCalled({ store, cells }: Services, text: string) {
  const slash = text.indexOf('/');
  const slug = slash > 0 ? text.slice(0, slash) : undefined;
  const playerId = text.slice(slash + 1);
  if (playerId === '') return [];
  const asked = await store.searchReads.partnersToAsk(slug);
  // If a cell is unavailable, only the players of that cell are missing from the result.
  const found = await Promise.all(
    asked.map(async (partnerId) => {
      const player = await cells.reads.player(partnerId, playerId).catch(() => undefined);
      return player === undefined ? [] : [{ partnerId, playerId }];
    }),
  );
  return found.flat().slice(0, PLAYERS_FOUND_MAX);
}

async function playsOf({ store, spinIds, cells }: Services, id: string) {
  const named = spinIds.decode(id);
  if (named === undefined || (await store.partners.find(named.partnerId)) === undefined) return [];
  const { partnerId, entryId } = named;
  // If a cell is unavailable, the search still finds everything that is committed.
  await booked(cells, entryId).catch(() => undefined);
  const round = await store.rounds.find(entryId);
  if (round?.partnerId === partnerId) return [{ partnerId, kind: 'round', id }];
  const entry = await store.ledgerEntries.find(entryId);
  return entry?.partnerId === partnerId && isShownAsSpin(entry) ? [{ partnerId, kind: 'spin', id }] : [];
}

const search = (services: Services): Route =>
  route(contract.search, async ({ query }) => {
    const text = query.q.trim();
    if (text === '') return { partners: [], games: [], players: [], plays: [], keys: [], operators: [] };
    const [names, players, plays] = await Promise.all([
      services.store.searchReads.byName(text),
      playersCalled(services, text),
      playsOf(services, text),
    ]);
    return { ...names, players, plays };
  });

export const searchRoutes = (services: Services): Route[] => [search(services)];
