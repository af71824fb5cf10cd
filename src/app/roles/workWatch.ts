/**
 * Looks every second for work that other processes may have left for a worker, and wakes the services that do
 * it. So these services need not poll themselves. Work created by this process is announced by events
 * (reactions.ts).
 */

import type { RoundTimeouts } from '../../engine/blackjack/roundTimeouts.js';
import type { RecordedStatuses } from '../../engine/cells/playerBlocking.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { RaffleVoids } from '../../engine/raffles/raffleVoids.js';
import type { PartnerMover } from '../../engine/recovery/partnerMover.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import type { LogCopies } from '../../publicLog/log/logCopies.js';
import type { PublicLog } from '../../publicLog/log/logWriter.js';
import type { Deliverer } from '../../webhooks/deliverer.js';
import type { Mailer } from '../../webhooks/mailer.js';
import { findWork } from './work.store.js';

export interface WorkWatchOptions {
  readonly sql: Sql;
  /** Returns the cells that this process owns now. */
  readonly cells: () => readonly number[];
  readonly moves: Pick<PartnerMover, 'wake'>;
  readonly voids: Pick<RaffleVoids, 'wake'>;
  readonly playerStatuses: Pick<RecordedStatuses, 'wake'>;
  readonly roundTimeouts: Pick<RoundTimeouts, 'wake'>;
  readonly mailer: Pick<Mailer, 'wake'>;
  readonly deliverer: Pick<Deliverer, 'wake'>;
  readonly publicLog: Pick<PublicLog, 'wake'>;
  readonly copies: Pick<LogCopies, 'wake'>;
  readonly events: EventEmitter;
}

const EVERY_MS = 1000;

export class WorkWatch extends PeriodicService {
  readonly name = 'work discovery';
  readonly #options: WorkWatchOptions;
  /** State of the public log at the last check. */
  #log: string | undefined;

  constructor(options: WorkWatchOptions) {
    super({ everyMs: EVERY_MS, firstAfterMs: EVERY_MS });
    this.#options = options;
  }

  protected async turn(): Promise<void> {
    const { sql, cells, moves, voids, playerStatuses, roundTimeouts, mailer, deliverer } = this.#options;
    const { publicLog, copies } = this.#options;
    const work = await findWork(sql, cells());
    if (this.isStopped) return;
    if (work.hasMoves) moves.wake();
    if (work.hasVoids) voids.wake();
    if (work.hasPlayerStatuses) playerStatuses.wake();
    if (work.hasExpiredRounds) roundTimeouts.wake();
    if (work.hasDueEmails) mailer.wake();
    // The deliverer is woken early and then determines the exact time of the next delivery itself.
    if (work.deliveryMs !== null && work.deliveryMs < EVERY_MS) deliverer.wake();
    if (work.isLogBehind || work.log !== this.#log) publicLog.wake();
    if (work.log !== this.#log) copies.wake();
    this.#log = work.log;
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'work discovery', error });
  }
}
