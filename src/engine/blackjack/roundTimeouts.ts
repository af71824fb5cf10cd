/**
 * Plays out expired rounds in the cells that this worker owns. If two workers believe that they own a cell,
 * or a player acts at the same moment, no harm is done: a step is made only if it is the round's next step
 * (roundPlay.ts).
 */
import type { Game } from '../../domain/game.js';
import type { RoundRecord } from '../../domain/games/round.js';
import { IDLE, PeriodicService, WOKEN_MS } from '../../platform/runtime/periodicService.js';
import type { EventEmitter } from '../processEvents.js';
import type { PlaceOfPartner, RoundPlay } from './roundPlay.js';

const TURN_MS = 500;
/**
 * Maximum number of rounds that are ended in one turn of this task. These rounds are committed before the
 * next turn reads the open rounds.
 */
const ROUNDS_MAX = 200;

export class RoundTimeouts extends PeriodicService {
  readonly name = 'round timeouts';

  constructor(
    private readonly options: {
      readonly rounds: Pick<RoundPlay, 'end'>;
      readonly cells: () => readonly number[];
      readonly expired: (
        cells: readonly number[],
        limit: number,
      ) => Promise<readonly (RoundRecord & PlaceOfPartner)[]>;
      readonly game: (gameId: number) => Game | undefined;
      readonly events: EventEmitter;
    },
  ) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS, idleMs: WOKEN_MS });
  }

  wake(): void {
    this.hurry();
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    const { cells, expired } = this.options;
    const owned = cells();
    if (owned.length === 0) return IDLE;
    const records = await expired(owned, ROUNDS_MAX);
    if (records.length === 0) return IDLE;
    await Promise.all(records.map((record) => this.#end(record)));
  }

  async #end(record: RoundRecord & PlaceOfPartner): Promise<void> {
    const { rounds, game } = this.options;
    const table = game(record.gameId)?.table;
    // Another process created the table a moment ago. The catalog will have the table before the next turn of
    // this task.
    if (table === undefined) return;
    const ended = await rounds.end(table, record, record, 'timeout');
    if (ended === 'overflow')
      throw new Error(`The payout of round ${record.entryIds[0]} would exceed the maximum balance`);
  }

  protected onTurnFailed(error: unknown): void {
    this.options.events.emit('TaskFailed', { task: 'round timeout', error });
  }
}
