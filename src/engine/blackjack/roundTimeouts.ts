/**
 * Plays out the rounds whose time is over, in the cells that this worker owns. Two workers that both believe they own a cell, or a
 * player who acts at that moment, do no harm: a step is booked only where it is the round's next (roundPlay.ts).
 */
import type { Game } from '../../domain/game.js';
import type { RoundRecord } from '../../domain/games/round.js';
import { IDLE, PeriodicService, WOKEN_MS } from '../../platform/runtime/periodicService.js';
import type { EventEmitter } from '../processEvents.js';
import type { PlaceOfPartner, RoundPlay } from './roundPlay.js';

export interface RoundTimeoutsOptions {
  readonly rounds: Pick<RoundPlay, 'end'>;
  /** The cells that this process writes now. */
  readonly cells: () => readonly number[];
  /** Open rounds of these cells whose time is over. */
  readonly expired: (
    cells: readonly number[],
    limit: number,
  ) => Promise<readonly (RoundRecord & PlaceOfPartner)[]>;
  readonly game: (gameId: number) => Game | undefined;
  readonly events: EventEmitter;
}

const TURN_MS = 500;
/** Ended in one turn: they are booked before the next one reads what is still open. */
const ROUNDS_MAX = 200;

export class RoundTimeouts extends PeriodicService {
  readonly name = 'round timeouts';
  readonly #options: RoundTimeoutsOptions;

  constructor(options: RoundTimeoutsOptions) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS, idleMs: WOKEN_MS });
    this.#options = options;
  }

  /** Looks for rounds whose time is over now: there may be some. */
  wake(): void {
    this.hurry();
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    const { cells, expired } = this.#options;
    const owned = cells();
    if (owned.length === 0) return IDLE;
    const records = await expired(owned, ROUNDS_MAX);
    if (records.length === 0) return IDLE;
    await Promise.all(records.map((record) => this.#end(record)));
  }

  async #end(record: RoundRecord & PlaceOfPartner): Promise<void> {
    const { rounds, game } = this.#options;
    const table = game(record.gameId)?.table;
    // Made a moment ago, elsewhere: the catalog learns of it before the next turn.
    if (table === undefined) return;
    const ended = await rounds.end(table, record, record, 'timeout');
    if (ended === 'overflow')
      throw new Error(`Round ${record.entryIds[0]} would pass the bound of a balance`);
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'round timeout', error });
  }
}
