/**
 * Looks every second for what there is to do of all that other processes may leave to a worker, and wakes whoever does it: so that
 * each need not look by itself. What this process makes it hears of at once, by events (reactions.ts).
 */

import type { RoundTimeouts } from '../../engine/blackjack/roundTimeouts.js';
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
  /** The cells that this process writes now. */
  readonly cells: () => readonly number[];
  readonly moves: Pick<PartnerMover, 'wake'>;
  readonly voids: Pick<RaffleVoids, 'wake'>;
  readonly roundTimeouts: Pick<RoundTimeouts, 'wake'>;
  readonly mailer: Pick<Mailer, 'wake'>;
  readonly deliverer: Pick<Deliverer, 'wake'>;
  readonly publicLog: Pick<PublicLog, 'wake'>;
  readonly copies: Pick<LogCopies, 'wake'>;
  readonly events: EventEmitter;
}

const EVERY_MS = 1000;

export class WorkWatch extends PeriodicService {
  readonly name = 'look for work';
  readonly #options: WorkWatchOptions;
  /** The public log at the last look. */
  #log: string | undefined;

  constructor(options: WorkWatchOptions) {
    super({ everyMs: EVERY_MS, firstAfterMs: EVERY_MS });
    this.#options = options;
  }

  protected async turn(): Promise<void> {
    const { sql, cells, moves, voids, roundTimeouts, mailer, deliverer, publicLog, copies } = this.#options;
    const work = await findWork(sql, cells());
    if (this.isStopped) return;
    if (work.hasMoves) moves.wake();
    if (work.hasVoids) voids.wake();
    if (work.hasExpiredRounds) roundTimeouts.wake();
    if (work.hasDueEmails) mailer.wake();
    // Its own look tells when, to the millisecond.
    if (work.deliveryMs !== null && work.deliveryMs < EVERY_MS) deliverer.wake();
    if (work.isLogBehind || work.log !== this.#log) publicLog.wake();
    if (work.log !== this.#log) copies.wake();
    this.#log = work.log;
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.events.emit('TaskFailed', { task: 'look for work', error });
  }
}
