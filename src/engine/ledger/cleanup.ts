/** Periodically removes data that no script needs any more from the cells that this worker owns. */

import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { type EventEmitter, taskFailed } from '../processEvents.js';
import type { RedisNodes } from '../redis/nodes.js';

const TURN_MS = 60_000;
/**
 * Retention of the reply to a front end's last batch, in ms. A front end that sent no batch for this long has
 * stopped, so its reply is removed.
 */
const OPERATION_KEPT_MS = 3_600_000;

export class Cleanup extends PeriodicService {
  readonly name = 'cleanup';

  constructor(
    private readonly nodes: RedisNodes,
    private readonly cells: () => readonly number[],
    events: EventEmitter,
  ) {
    super({ everyMs: TURN_MS }, taskFailed(events, 'cleanup'));
  }

  /**
   * The stop does not wait for a cleanup in progress, because an interruption after any of its commands does
   * no harm.
   */
  override async stop(): Promise<void> {
    void super.stop();
  }

  /** Starts the cleanup of a cell that this worker has just taken over, without waiting for it. */
  cleanSoon(cell: number): void {
    this.clean(cell).catch((error: unknown) => this.onTurnFailed(error));
  }

  protected async turn(): Promise<void> {
    await Promise.all(this.cells().map((cell) => this.clean(cell)));
  }

  /** Removes the stored replies of front ends that have stopped. */
  async clean(cell: number): Promise<void> {
    const store = this.nodes.cell(cell);
    const nowMs = await store.node.timeMs();
    await store.forgetOperationsBefore(nowMs - OPERATION_KEPT_MS);
  }
}
