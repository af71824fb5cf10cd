/** Communal progressives: what a game's bonus pays, how far it is, what fired. Their amounts are decimal strings, not numbers. */
import type { Calls, Schemas } from './api.js';
import { byPage } from './pages.js';
import { namedPlayer } from './playerNames.js';

export class Communal {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /** @throws SpindleError KS-4602 and KS-4603: show no bonus */
  rules(gameId: number): Promise<Schemas['CommunalResponse']> {
    const params = { path: { id: gameId } };
    return this.#calls.read((api) => api.GET('/games/{id}/communal', { params }));
  }

  progress(gameId: number): Promise<Schemas['CommunalProgress']> {
    const params = { path: { id: gameId } };
    return this.#calls.read((api) => api.GET('/games/{id}/communal/progress', { params }));
  }

  /** What fired, the newest first. */
  events(gameId: number): AsyncGenerator<Schemas['CommunalEvent'], void, undefined> {
    return byPage(
      async (query) => {
        const params = { path: { id: gameId }, query };
        const page = await this.#calls.read((api) => api.GET('/games/{id}/communal/events', { params }));
        return { items: page.events, total: page.total };
      },
      ({ eventId }) => eventId,
    );
  }

  /** A player's shares, the newest first. */
  bonuses(playerId: string): AsyncGenerator<Schemas['PlayerBonus'], void, undefined> {
    const { inPath: path, inQuery } = namedPlayer(playerId);
    return byPage(
      async (asked) => {
        const query = { ...asked, ...inQuery };
        const page = await this.#calls.read((api) =>
          api.GET('/players/{playerId}/community-bonuses', { params: { path, query } }),
        );
        return { items: page.bonuses, total: page.total };
      },
      ({ eventId }) => eventId,
    );
  }
}
