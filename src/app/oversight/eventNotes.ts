/**
 * Writes system events to the audit log: starts and stops, refused cells, volatile stores, refused operators.
 * A frequent event (caused by strangers or repeated attempts) is written at once the first time. After that,
 * one entry per minute, type and subject contains the number of events. No caller waits for an entry; a
 * failed write is retried later.
 */
import type { AuditAction } from '../../domain/significantEvents.js';
import { type EventEmitter, taskFailed } from '../../engine/processEvents.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import { writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';

const LOOK_EVERY_MS = 5000;
const TOLD_EVERY_MS = 60_000;
/**
 * Maximum number of different types and subjects that are counted separately. Further ones are counted
 * together.
 */
const SUBJECTS_MAX = 1000;
const OTHERS = 'others';
/** Maximum time that a stop of the process waits for the last entries, in ms. */
const STOP_TIMEOUT_MS = 5000;

export interface EventNote {
  readonly action: AuditAction;
  /** Subject of the event, such as `cell:3`. */
  readonly subject: string;
  /** Person or process that caused the event. If absent, the audit log says `worker`. */
  readonly actor?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

interface Counted {
  /** Newest event of this type and subject. */
  note: EventNote;
  /** Number of events of this type and subject since the newest audit log entry about them. */
  count: number;
  since: Date;
  /** Time of the newest audit log entry about this type and subject, as performance.now(). */
  writtenMs: number;
}

export class EventNotes extends PeriodicService {
  readonly name = 'significant event record';
  readonly stopTimeoutMs = STOP_TIMEOUT_MS;
  readonly #counted = new Map<string, Counted>();

  constructor(
    private readonly sql: Sql,
    private readonly options: {
      /** Host of this process, for the subject `process:<host>`. */
      readonly host: string;
      readonly version: string;
      readonly roles: string;
      readonly events: EventEmitter;
    },
  ) {
    super({ everyMs: LOOK_EVERY_MS }, taskFailed(options.events, 'significant event record'));
    this.#follow(options.events);
  }

  override async start(): Promise<void> {
    await this.#write(this.#ofProcess('service.start'));
    await super.start();
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#writeDue(true)
      .then(() => this.#write(this.#ofProcess('service.stop')))
      .catch((error: unknown) => this.onTurnFailed(error));
  }

  /** The first event of a type and subject is written at once. Never throws. */
  note(note: EventNote): void {
    let key = `${note.action} ${note.subject}`;
    let counted = this.#counted.get(key);
    if (counted === undefined && this.#counted.size >= SUBJECTS_MAX) {
      key = `${note.action} ${OTHERS}`;
      counted = this.#counted.get(key);
    }
    if (counted === undefined) {
      const subject = key.slice(note.action.length + 1);
      counted = {
        note: { ...note, subject },
        count: 0,
        since: new Date(),
        writtenMs: Number.NEGATIVE_INFINITY,
      };
      this.#counted.set(key, counted);
    } else counted.note = { ...note, subject: counted.note.subject };
    if (counted.count === 0) counted.since = new Date();
    counted.count++;
    if (isDue(counted)) this.hurry();
  }

  protected turn(): Promise<void> {
    return this.#writeDue(false);
  }

  async #writeDue(isAll: boolean): Promise<void> {
    for (const [key, counted] of this.#counted) {
      if (counted.count === 0) {
        if (isDue(counted)) this.#counted.delete(key);
      } else if (isAll || isDue(counted)) {
        const { note, count, since } = counted;
        await this.#write({ ...note, data: { ...note.data, count, since: since.toISOString() } });
        counted.count -= count;
        counted.since = new Date();
        counted.writtenMs = performance.now();
      }
    }
  }

  #write({ action, subject, actor = 'worker', data }: EventNote): Promise<void> {
    return this.sql.begin((tx) => writeAuditEntry(tx, { actor, action, subject, after: data }));
  }

  #ofProcess(action: 'service.start' | 'service.stop'): EventNote {
    const { host, version, roles } = this.options;
    return { action, subject: `process:${host}`, data: { version, roles, pid: process.pid } };
  }

  #follow(events: EventEmitter): void {
    events.on('CellRefused', ({ cell, reason }) =>
      this.note({ action: 'cell.refuse', subject: `cell:${cell}`, data: { reason } }),
    );
    events.on('ClockRefused', ({ cell, skewMs }) =>
      this.note({ action: 'clock.refuse', subject: `cell:${cell}`, data: { skewMs } }),
    );
    const volatile = (subject: string) => (changed: { readonly volatile: readonly string[] }) => {
      if (changed.volatile.length > 0)
        this.note({ action: 'store.volatile', subject, data: { settings: changed.volatile } });
    };
    events.on('DurabilityChanged', volatile('store:redis'));
    events.on('PostgresDurabilityChanged', volatile('store:postgres'));
    events.on('ReplicaDurabilityChanged', volatile('store:replica'));
  }
}

const isDue = ({ writtenMs }: Counted): boolean => performance.now() - writtenMs >= TOLD_EVERY_MS;
