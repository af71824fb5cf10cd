/** Has the public log say each day what the audit log's newest entry is. Any number of workers may: one of them does. */
import type { EventEmitter } from '../events.js';
import type { Sql } from '../postgres/client.js';
import { noteAuditHead } from '../postgres/publicLog.js';
import { PeriodicService } from '../runtime/periodicService.js';

const TURN_MS = 600_000;
/** From this minute of a UTC day on: the settlement job of the day before has had its time. */
const FROM_MINUTE = 3 * 60 + 30;
const MINUTE_MS = 60_000;

export interface AuditAnchorOptions {
  readonly sql: Sql;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly events: EventEmitter;
}

/** The UTC day whose record is due at a moment; undefined: that of the day is not due yet. */
function anchorDay(nowMs: number): string | undefined {
  const now = new Date(nowMs - FROM_MINUTE * MINUTE_MS);
  const day = now.toISOString().slice(0, 10);
  return new Date(nowMs).toISOString().startsWith(day) ? day : undefined;
}

export class AuditAnchors extends PeriodicService {
  readonly name = 'audit anchor';
  readonly #options: AuditAnchorOptions;

  constructor(options: AuditAnchorOptions) {
    super({ everyMs: TURN_MS, firstAfterMs: TURN_MS });
    this.#options = options;
  }

  protected async turn(): Promise<void> {
    const { sql, now } = this.#options;
    const day = anchorDay(now());
    // The log looks for what waits each two seconds.
    if (day !== undefined) await noteAuditHead(sql, day);
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'audit anchor', error });
  }
}
