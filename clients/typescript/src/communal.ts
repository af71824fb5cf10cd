/**
 * Communal progressives of games: rules, progress, events and shares. Amounts are decimal strings, not
 * numbers.
 */
import type { Calls, Schemas } from './api.js';
import { byPage } from './pages.js';
import { namedPlayer } from './playerNames.js';

export class Communal {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  /**
   * Returns the rules of a game's communal progressive.
   *
   * @throws SpindleError KS-4602 or KS-4603 if no bonus may be shown to players
   */
  rules(gameId: number): Promise<Schemas['CommunalResponse']> {
    const params = { path: { id: gameId } };
    return this.#calls.read((api) => api.GET('/games/{id}/communal', { params }));
  }

  progress(gameId: number): Promise<Schemas['CommunalProgress']> {
    const params = { path: { id: gameId } };
    return this.#calls.read((api) => api.GET('/games/{id}/communal/progress', { params }));
  }

  /** Iterates over the events of a game's communal progressive, newest first. */
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

  /** Iterates over a player's shares of bonuses, newest first. */
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
