/** Follows the outcome indices of each game, each of which must be dealt or voided exactly once. */
import type { Facts } from './auditReads.store.js';
import { type CheckedEntry, isDealt, type LedgerCheck } from './ledgerCheck.js';
import type { Findings } from './report.js';

/** Largest outcome index, because an index has 48 bits in Redis. */
const MAX_INDEX = 2 ** 48;
export const isIndex = (index: number): boolean => index >= 0 && index <= MAX_INDEX;

interface Game {
  readonly gameId: number;
  readonly partnerId: number;
  /** The index that must be dealt or voided next. */
  next: number;
  readonly voids: { readonly fromIndex: number; readonly toIndex: number; readonly sealedTo: number }[];
  /** Position in `voids` of the first one that is still ahead. */
  voidAt: number;
}

export class IndexCheck implements LedgerCheck {
  readonly #games = new Map<number, Game>();
  #dealt = 0;

  constructor(
    private readonly facts: Pick<Facts, 'games' | 'voids' | 'progress' | 'boundary'>,
    private readonly findings: Findings,
  ) {
    for (const { gameId, partnerId } of facts.games)
      this.#games.set(gameId, { gameId, partnerId, next: 0, voids: [], voidAt: 0 });
    for (const range of facts.voids) this.#games.get(range.gameId)?.voids.push(range);
    for (const [gameId, game] of this.#games) {
      game.next = facts.boundary.games.get(gameId) ?? 0;
      while (game.voidAt < game.voids.length && game.voids[game.voidAt]!.fromIndex < game.next) game.voidAt++;
    }
  }

  /** Returns the index that the game must deal or void next, so far in the ledger. */
  nextOf(gameId: number): number {
    return this.#games.get(gameId)?.next ?? 0;
  }

  row(entry: CheckedEntry): void {
    const { kind, index } = entry;
    if (kind === 'forcedSpin' && index !== 0)
      this.findings.found('indices', 'a forced spin must not have an index', entry.place, 0, index);
    if (!isDealt(kind)) return;
    this.#dealt++;
    const game = this.#games.get(entry.gameId);
    if (game === undefined) return;
    if (isIndex(index)) this.#advance(entry, game);
    else this.findings.found('indices', 'the index is out of range', entry.place, game.next, index);
  }

  #advance({ index, place }: CheckedEntry, game: Game): void {
    this.#passVoids(game, index);
    if (index >= game.next) {
      if (index > game.next) this.#gap(game, index);
      game.next = index + 1;
      return;
    }
    const isVoided = game.voids.some(({ fromIndex, toIndex }) => fromIndex <= index && index < toIndex);
    const problem = isVoided ? 'the index was dealt although it is voided' : 'the index was already dealt';
    this.findings.found('indices', problem, place, game.next, index);
  }

  /** Skips the voids that begin at or before an index. */
  #passVoids(game: Game, index: number): void {
    for (; game.voidAt < game.voids.length; game.voidAt++) {
      const { fromIndex, toIndex } = game.voids[game.voidAt]!;
      if (fromIndex > index) return;
      if (fromIndex > game.next) this.#gap(game, fromIndex);
      else if (fromIndex < game.next) {
        this.findings.found(
          'indices',
          'a void covers indices that are already dealt or voided',
          { game: game.gameId, partner: game.partnerId, voidFrom: fromIndex, voidTo: toIndex },
          `from ${game.next}`,
          `from ${fromIndex}`,
        );
      }
      game.next = Math.max(game.next, toIndex);
    }
  }

  #gap({ gameId, partnerId, next }: Game, index: number): void {
    const at = { game: gameId, partner: partnerId, index: next, upTo: index - 1 };
    this.findings.found('indices', 'indices were neither dealt nor voided', at, next, index);
  }

  end(): void {
    let voided = 0;
    for (const game of this.#games.values()) {
      this.#passVoids(game, Number.POSITIVE_INFINITY);
      for (const { fromIndex, sealedTo } of game.voids) voided += sealedTo - fromIndex;
      const booked = this.facts.progress.get(game.gameId) ?? 0;
      if (booked === game.next) continue;
      const problem = 'game_progress.next_index is not the index after the last dealt or voided outcome';
      const at = { game: game.gameId, partner: game.partnerId };
      this.findings.found('indices', problem, at, game.next, booked);
    }
    this.findings.looked('indices', 'outcomes dealt', this.#dealt);
    this.findings.looked('indices', 'outcomes voided', voided);
  }
}
