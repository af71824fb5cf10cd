/** Carries out the moves of partners out of the cells that this worker owns, one after the other. */
import { type CellLease, FencedError } from '../postgres/cells.js';
import { openMoves, type PartnerMove } from '../postgres/partnerMoves.js';
import { OutrunError } from '../redis/scriptErrors.js';
import { IDLE, PeriodicService, WOKEN_MS } from '../runtime/periodicService.js';
import {
  clearGivenUpMove,
  finishPartnerMove,
  giveUpMove,
  type MoveParts,
  movePartner,
} from './partnerMove.js';

const TURN_MS = 500;
/** After so long no front end reads the partner in its old cell any more. */
const REMOVE_AFTER_MS = 3000;
const TRIES_MAX = 10;
const REST_MIN_MS = 500;
const REST_MAX_MS = 5000;

export class PartnerMoves extends PeriodicService {
  readonly name = 'partner moves';
  readonly #parts: MoveParts;
  readonly #leases = new Map<number, CellLease>();
  /** By move: how often it failed, and when it is tried again (performance.now()). */
  readonly #failed = new Map<number, { times: number; notBefore: number }>();
  /** Moves that were switched, and when this process saw it first. */
  readonly #switched = new Map<number, number>();

  constructor(parts: MoveParts) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS, idleMs: WOKEN_MS });
    this.#parts = parts;
  }

  own(lease: CellLease): void {
    this.#leases.set(lease.cell, lease);
  }

  disown(cell: number): void {
    this.#leases.delete(cell);
  }

  /** Looks for moves now: there may be some. */
  wake(): void {
    this.hurry();
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    const { sql } = this.#parts;
    if (this.#leases.size === 0) return IDLE;
    const moves = await openMoves(sql, [...this.#leases.keys()]);
    if (moves.length === 0) return IDLE;
    for (const move of moves) {
      const lease = this.#leases.get(move.fromCell);
      if (this.isStopped) return;
      if (lease === undefined || (this.#failed.get(move.moveId)?.notBefore ?? 0) > performance.now())
        continue;
      try {
        await this.#carryOn(lease, move);
        this.#failed.delete(move.moveId);
      } catch (error) {
        await this.#fail(lease, move, error);
      }
    }
  }

  async #carryOn(lease: CellLease, move: PartnerMove): Promise<void> {
    const { moveId } = move;
    if (move.failure !== null) {
      await clearGivenUpMove(this.#parts, move);
      return;
    }
    if (move.switchedAt === null) {
      await movePartner(this.#parts, lease, move);
      return;
    }
    const seen = this.#switched.get(moveId) ?? performance.now();
    this.#switched.set(moveId, seen);
    if (performance.now() - seen < REMOVE_AFTER_MS) return;
    await finishPartnerMove(this.#parts, lease, move);
    this.#switched.delete(moveId);
  }

  async #fail(lease: CellLease, move: PartnerMove, error: unknown): Promise<void> {
    const { events } = this.#parts;
    const { moveId, partnerId, fromCell, toCell } = move;
    events.emit('TaskFailed', { task: 'partner move', error, cell: fromCell });
    const times = (this.#failed.get(moveId)?.times ?? 0) + 1;
    const restMs = Math.min(REST_MAX_MS, REST_MIN_MS * 2 ** (times - 1));
    this.#failed.set(moveId, { times, notBefore: performance.now() + restMs });
    // What was switched or given up is finished, however long that takes; and an owner that was outrun leaves it to the next one.
    const isOutrun = error instanceof OutrunError || error instanceof FencedError;
    const isDecided = move.switchedAt !== null || move.failure !== null;
    if (isDecided || times < TRIES_MAX || isOutrun) return;
    const reason = error instanceof Error ? error.message : String(error);
    if (!(await giveUpMove(this.#parts, lease, move, reason))) return;
    this.#failed.delete(moveId);
    events.emit('PartnerMoveGivenUp', { partnerId, toCell, reason });
  }

  protected onTurnFailed(error: unknown): void {
    this.#parts.events.emit('TaskFailed', { task: 'partner move', error });
  }
}
