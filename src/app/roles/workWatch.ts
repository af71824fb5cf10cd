/**
 * Looks every second for work that other processes may have left for a worker, and wakes the services that do
 * it. So these services need not poll themselves. Work created by this process is announced by events
 * (reactions.ts).
 */

import type { RecordedStatuses } from '../../engine/cells/playerBlocking.js';
import type { RaffleVoids } from '../../engine/raffles/raffleVoids.js';
import type { PartnerMover } from '../../engine/recovery/partnerMover.js';
import type { Job } from '../../platform/runtime/periodicService.js';
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
  readonly roundTimeouts: Pick<Job, 'wake'>;
  readonly mailer: Pick<Mailer, 'wake'>;
  readonly deliverer: Pick<Deliverer, 'wake'>;
  readonly publicLog: Pick<PublicLog, 'wake'>;
  readonly copies: Pick<LogCopies, 'wake'>;
}

export const WORK_EVERY_MS = 1000;

export function workWatch(options: WorkWatchOptions): (stopped: AbortSignal) => Promise<void> {
  const { sql, cells, moves, voids, playerStatuses, roundTimeouts, mailer, deliverer } = options;
  const { publicLog, copies } = options;
  /** State of the public log at the last check. */
  let log: string | undefined;
  return async (stopped) => {
    const work = await findWork(sql, cells());
    if (stopped.aborted) return;
    if (work.hasMoves) moves.wake();
    if (work.hasVoids) voids.wake();
    if (work.hasPlayerStatuses) playerStatuses.wake();
    if (work.hasExpiredRounds) roundTimeouts.wake();
    if (work.hasDueEmails) mailer.wake();
    // The deliverer is woken early and then determines the exact time of the next delivery itself.
    if (work.deliveryMs !== null && work.deliveryMs < WORK_EVERY_MS) deliverer.wake();
    if (work.isLogBehind || work.log !== log) publicLog.wake();
    if (work.log !== log) copies.wake();
    log = work.log;
  };
}
