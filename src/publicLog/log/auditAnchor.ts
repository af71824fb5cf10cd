/** Has the public log say each day what the audit log's newest entry is. Any number of workers may: one of them does. */
import { dayOf, startOf } from '../../domain/days.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import { nextMoment } from '../../platform/runtime/cron.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { noteAuditHead } from './publicLog.store.js';

const TURN_MS = 600_000;

export interface AuditAnchorOptions {
  readonly sql: Sql;
  /** Five fields, UTC: from its first moment of a day on the record of the day is due. */
  readonly cron: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly events: EventEmitter;
}

/** The UTC day whose record is due at a moment; undefined: that of the day is not due yet. A day without a moment begins with its record. */
export function anchorDay(cron: string, nowMs: number): string | undefined {
  const day = dayOf(nowMs);
  const firstMs = nextMoment(cron, startOf(day) - 1);
  return dayOf(firstMs) === day && nowMs < firstMs ? undefined : day;
}

export class AuditAnchors extends PeriodicService {
  readonly name = 'audit anchor';
  readonly #options: AuditAnchorOptions;

  constructor(options: AuditAnchorOptions) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
    this.#options = options;
  }

  protected async turn(): Promise<void> {
    const { sql, cron, now } = this.#options;
    const day = anchorDay(cron, now());
    // The log looks for what waits each two seconds.
    if (day !== undefined) await noteAuditHead(sql, day);
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'audit anchor', error });
  }
}
