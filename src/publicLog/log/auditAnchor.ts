/**
 * Records the head of the audit log in the public log once a day. Every worker runs the task, but the record
 * of a day is written only once.
 */
import { dayOf, startOf } from '../../domain/days.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import { nextMoment } from '../../platform/runtime/cron.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { noteAuditHead } from './publicLog.store.js';

const TURN_MS = 600_000;

export interface AuditAnchorOptions {
  readonly sql: Sql;
  /** Cron expression with five fields, UTC. The record of a day is due from the day's first matching time. */
  readonly cron: string;
  /** Returns the current time in ms since the epoch. */
  readonly now: () => number;
  readonly events: EventEmitter;
}

/**
 * Returns the UTC day whose record is due, or undefined if today's record is not due yet. On a day without a
 * matching cron time the record is due from midnight.
 */
export function anchorDay(cron: string, nowMs: number): string | undefined {
  const day = dayOf(nowMs);
  const firstMs = nextMoment(cron, startOf(day) - 1);
  return dayOf(firstMs) === day && nowMs < firstMs ? undefined : day;
}

export class AuditAnchors extends PeriodicService {
  readonly name = 'audit anchor';

  constructor(private readonly options: AuditAnchorOptions) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
  }

  protected async turn(): Promise<void> {
    const { sql, cron, now } = this.options;
    const day = anchorDay(cron, now());
    // The public log polls for waiting records every two seconds, so there is no need to wake it here.
    if (day !== undefined) await noteAuditHead(sql, day);
  }

  protected onTurnFailed(error: unknown): void {
    this.options.events.emit('TaskFailed', { task: 'audit anchor', error });
  }
}
