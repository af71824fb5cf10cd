/** Carries out moves of partners out of this worker's cells, one after the other. */

import { IDLE } from '../../platform/runtime/periodicService.js';
import { type CellLease, FencedError } from '../cells/cells.store.js';
import { OwnedWork } from '../cells/ownedWork.js';
import { taskFailed } from '../processEvents.js';
import { OutrunError } from '../redis/scriptErrors.js';
import {
  abandonMove,
  clearAbandonedMove,
  finishPartnerMove,
  type MoveParts,
  movePartner,
} from './movePartner.js';
import { openMoves, type PartnerMove } from './partnerMoves.store.js';

const TURN_MS = 500;
/** Time after the switch, in ms, at which front ends no longer read the partner's data in its old cell. */
const REMOVE_AFTER_MS = 3000;
const TRIES_MAX = 10;
const BACKOFF_MIN_MS = 500;
const BACKOFF_MAX_MS = 5000;

export class PartnerMover extends OwnedWork {
  readonly name = 'partner moves';
  /** Switched moves of partners, with the time at which this process first saw each as switched. */
  readonly #switched = new Map<number, number>();

  constructor(private readonly parts: MoveParts) {
    super(
      { turnMs: TURN_MS, backoffMinMs: BACKOFF_MIN_MS, backoffMaxMs: BACKOFF_MAX_MS },
      taskFailed(parts.events, 'partner move'),
    );
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    const { sql } = this.parts;
    if (this.leases.size === 0) return IDLE;
    const moves = await openMoves(sql, [...this.leases.keys()]);
    if (moves.length === 0) return IDLE;
    for (const move of moves) {
      const lease = this.leases.get(move.fromCell);
      if (this.isStopped) return;
      if (lease === undefined || this.rests(move.moveId)) continue;
      try {
        await this.#carryOn(lease, move);
        this.forgetFailures(move.moveId);
      } catch (error) {
        await this.#fail(lease, move, error);
      }
    }
  }

  async #carryOn(lease: CellLease, move: PartnerMove): Promise<void> {
    const { moveId } = move;
    if (move.failure !== null) {
      await clearAbandonedMove(this.parts, move);
      return;
    }
    if (move.switchedAt === null) {
      await movePartner(this.parts, lease, move);
      return;
    }
    const seen = this.#switched.get(moveId) ?? performance.now();
    this.#switched.set(moveId, seen);
    if (performance.now() - seen < REMOVE_AFTER_MS) return;
    await finishPartnerMove(this.parts, lease, move);
    this.#switched.delete(moveId);
  }

  async #fail(lease: CellLease, move: PartnerMove, error: unknown): Promise<void> {
    const { events } = this.parts;
    const { moveId, partnerId, fromCell, toCell } = move;
    events.emit('TaskFailed', { task: 'partner move', error, cell: fromCell });
    const times = this.noteFailure(moveId);
    // After the switch or the cancellation of a move, its remaining steps are retried without a limit. A
    // worker that has lost the cell leaves the move to the cell's next owner.
    const isOutrun = error instanceof OutrunError || error instanceof FencedError;
    const isDecided = move.switchedAt !== null || move.failure !== null;
    if (isDecided || times < TRIES_MAX || isOutrun) return;
    const reason = error instanceof Error ? error.message : String(error);
    if (!(await abandonMove(this.parts, lease, move, reason))) return;
    this.forgetFailures(moveId);
    events.emit('PartnerMoveAbandoned', { partnerId, toCell, reason });
  }
}
