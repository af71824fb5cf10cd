/**
 * Blocks and unblocks players. A change is recorded in Postgres, together with the intent to carry it out,
 * and then written to Redis, where spins see it.
 *
 *   change and intent on record (Postgres) ──script (Redis)──> in force ──> intent removed
 *     │ the player does not exist
 *     └──> withdrawn
 *
 * The process that records a change tries to carry it out at once. If it can't, the worker that owns the
 * player's cell does so (RecordedStatuses), so a recorded change always comes into force.
 *
 * Each change has a number, so that a late call can't undo a newer change. A rebuild or a move of the cell
 * writes the newest recorded status, too.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { IDLE } from '../../platform/runtime/periodicService.js';
import type { EngineStore } from '../engine.store.js';
import { type EventEmitter, taskFailed } from '../processEvents.js';
import { SPIN_STATUS } from '../redis/statuses.js';
import type { CellClient } from './cellClient.js';
import { OwnedWork } from './ownedWork.js';
import type { PlayerStatusChange, PlayerStatusOnRecord } from './playerStatuses.store.js';
import { SET_PLAYER_STATUS } from './setPlayerStatus.js';

/** `recorded`: the change is on record, and the owner of the cell will carry it out. */
export type Blocked = 'done' | 'recorded' | 'unknownPlayer';

const POLL_MS = 50;

export class PlayerBlocking {
  constructor(
    private readonly options: {
      readonly store: Pick<EngineStore, 'playerStatuses'>;
      readonly cells: Pick<CellClient, 'execute'>;
      /** Maximum time to write a recorded status to Redis, including retries, in ms. */
      readonly deadlineMs: number;
    },
  ) {}

  /**
   * @returns `unknownPlayer` if the player does not exist; the change is then withdrawn
   * @throws the error of Postgres if the change was not recorded
   */
  async change(actor: string, wanted: PlayerStatusChange): Promise<Blocked> {
    return this.#carryOut(actor, await this.options.store.playerStatuses.record(actor, wanted)).catch(
      () => 'recorded' as const,
    );
  }

  /**
   * Carries out a recorded change, or the newest change of the player.
   * @throws Error if the change is not in force within the deadline
   */
  async finish(change: PlayerStatusOnRecord): Promise<void> {
    const { partnerId, playerId } = change;
    if ((await this.#carryOut('worker', change)) === 'recorded')
      throw new Error(`The status of player ${playerId} of partner ${partnerId} is not in force yet`);
  }

  async #carryOut(actor: string, recorded: PlayerStatusOnRecord): Promise<Blocked> {
    const { store, cells, deadlineMs } = this.options;
    const { playerStatuses } = store;
    const deadline = performance.now() + deadlineMs;
    let change = recorded;
    for (;;) {
      const outcome = await cells.execute(SET_PLAYER_STATUS, { ...change, waitsForLedger: false, deadline });
      if (outcome.kind === 'reply') {
        if (outcome.reply.status === SPIN_STATUS.playerUnknown) {
          await playerStatuses.withdraw(actor, change, 'the player does not exist');
          return 'unknownPlayer';
        }
        // If this write fails, the owner of the cell carries out the same change again, which changes
        // nothing.
        await playerStatuses.carriedOut(change).catch(() => {});
        return 'done';
      }
      if (outcome.kind !== 'epochMoved' || performance.now() > deadline) return 'recorded';
      await pause(POLL_MS);
      // The cell has another epoch now, and another request may have recorded a change in the meantime.
      change = (await playerStatuses.newest(change)) ?? change;
    }
  }
}

const TURN_MS = 250;
/** Maximum number of changes of a cell in one turn of this task. */
const CHANGES_MAX = 256;
/** Back-off of a cell after a failed change, in ms. */
const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 500;

/** Carries out recorded changes of players in the cells that this worker owns. */
export class RecordedStatuses extends OwnedWork {
  readonly name = 'player statuses';

  constructor(
    private readonly options: {
      readonly store: Pick<EngineStore, 'playerStatuses'>;
      readonly blocking: Pick<PlayerBlocking, 'finish'>;
      readonly events: EventEmitter;
    },
  ) {
    super(
      { turnMs: TURN_MS, backoffMinMs: BACKOFF_MIN_MS, backoffMaxMs: BACKOFF_MAX_MS },
      taskFailed(options.events, 'player statuses'),
    );
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    const cells = [...this.leases.keys()];
    if (cells.length === 0) return IDLE;
    const changes = await this.options.store.playerStatuses.intents(cells, CHANGES_MAX);
    this.keepFailuresOf(new Set(changes.map(({ cell }) => cell)));
    if (changes.length === 0) return IDLE;
    const inTurn = cells.map((cell) =>
      this.#finishAll(
        cell,
        changes.filter((change) => change.cell === cell),
      ),
    );
    await Promise.all(inTurn);
  }

  async #finishAll(cell: number, changes: readonly PlayerStatusOnRecord[]): Promise<void> {
    const [first, ...others] = changes;
    if (first === undefined || this.isStopped || this.rests(cell)) return;
    try {
      // The first change is tried alone, so that a cell that can't be reached has one call in progress.
      await this.options.blocking.finish(first);
      await Promise.all(others.map((change) => this.options.blocking.finish(change)));
      this.forgetFailures(cell);
      if (changes.length === CHANGES_MAX) this.hurry();
    } catch (error) {
      if (this.isStopped) return;
      // A cell that can't be reached is reported by its own parts, so only the first failure is reported.
      if (this.noteFailure(cell) === 1)
        this.options.events.emit('TaskFailed', { task: 'player statuses', error, cell });
    }
  }
}
