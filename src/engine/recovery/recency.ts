/**
 * Collects the recent players of a cell's communal progressives during a rebuild, from the checkpoint and
 * from later ledger entries.
 */
import { RECENCY_MAX } from '../../domain/communal.js';
import type { RecoveredPot } from '../communal/communalRecovery.store.js';

export interface RecentSpin {
  readonly playerId: string;
  readonly spinId: bigint;
}

/** Number of collected players at which a game's list is reduced to the most recent ones. */
const PLAYERS_MAX = 20 * RECENCY_MAX;

export class Recency {
  readonly #games = new Map<number, { readonly fromId: bigint; players: Map<string, bigint> }>();

  constructor(pots: readonly Pick<RecoveredPot, 'gameId' | 'recent' | 'recencyFrom'>[]) {
    for (const { gameId, recent, recencyFrom } of pots) {
      if (recencyFrom === undefined) continue;
      const players = new Map(recent.map(({ playerId, spinId }) => [playerId, spinId]));
      this.#games.set(gameId, { fromId: recencyFrom, players });
    }
  }

  remembers(gameId: number): boolean {
    return this.#games.has(gameId);
  }

  /** Adds a spin of a game that has a recency set. Spins may come in any order. */
  spun(gameId: number, playerId: string, spinId: bigint): void {
    const game = this.#games.get(gameId)!;
    if (spinId <= game.fromId || spinId <= (game.players.get(playerId) ?? 0n)) return;
    game.players.set(playerId, spinId);
    if (game.players.size > PLAYERS_MAX)
      game.players = new Map(newest(game.players).map((each) => [each.playerId, each.spinId]));
  }

  /** Returns the recent players of a game, most recent first, up to RECENCY_MAX. */
  of(gameId: number): RecentSpin[] {
    return newest(this.#games.get(gameId)?.players ?? new Map());
  }
}

const newest = (players: ReadonlyMap<string, bigint>): RecentSpin[] =>
  [...players]
    .map(([playerId, spinId]) => ({ playerId, spinId }))
    .sort((a, b) => (a.spinId < b.spinId ? 1 : -1))
    .slice(0, RECENCY_MAX);
