/** Removes webhook deliveries and events after their retention time. */
import type { EventEmitter } from '../engine/processEvents.js';
import { PeriodicService } from '../platform/runtime/periodicService.js';
import type { Sql } from '../postgres/connection.js';
import { removeEndedDeliveries } from './webhooks.store.js';

const TURN_MS = 600_000;
const FIRST_AFTER_MS = 5000;

export class WebhookRetention extends PeriodicService {
  readonly name = 'webhook retention';

  /** @param days retention time of ended deliveries and events, in days */
  constructor(
    private readonly sql: Sql,
    private readonly days: number,
    private readonly events: EventEmitter,
  ) {
    super({ everyMs: TURN_MS, firstAfterMs: FIRST_AFTER_MS });
  }

  protected async turn(): Promise<void> {
    while (!this.isStopped && (await removeEndedDeliveries(this.sql, this.days)) > 0);
  }

  protected onTurnFailed(error: unknown): void {
    this.events.emit('TaskFailed', { task: 'webhook retention', error });
  }
}
