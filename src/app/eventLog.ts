/** Writes process events to the log (docs/operations.md, "The log"). */
import type { Logger } from 'pino';
import type { EventEmitter } from '../engine/processEvents.js';

/**
 * Minimum time between two log lines about a wrong clock, in ms. Every batch is refused while the clock is
 * wrong.
 */
const CLOCK_TOLD_EVERY_MS = 60_000;

/** @param allowed volatile stores that are served from, although they may lose acknowledged data */
export function subscribeLog(
  events: EventEmitter,
  log: Logger,
  allowed: { readonly allowVolatileRedis: boolean; readonly allowVolatilePostgres: boolean },
): void {
  events.on('TaskFailed', ({ task, error, ...about }) =>
    log.warn({ err: error, ...about }, `${task} failed; will retry`),
  );
  events.on('FormatChanged', (changed) =>
    log.warn(changed, 'the upgrade is finished; a newer format is written'),
  );
  events.on('FormatUnreadable', ({ reason }) =>
    log.error({ reason }, 'this version does not read what is written; it deals nothing'),
  );
  events.on('KeysDiffer', (others) => log.warn(others, 'other processes seal with another key'));
  events.on('KeysReplaced', () => log.warn('keys are replaced: nothing is sealed with another key'));
  events.on('CatalogStale', ({ error }) =>
    log.warn({ err: error }, 'catalog cannot be read; using the last known state'),
  );
  events.on('CatalogRecovered', () => log.warn('catalog is read again'));
  subscribeCellLog(events, log);
  events.on('WitnessChanged', ({ result, ...changed }) => {
    if (result === 'cosigned') log.warn(changed, 'witness cosigns the public log again');
    else log.warn({ ...changed, result }, 'witness does not cosign the public log; will retry');
  });
  events.on('LogHalted', ({ reason, isDealing }) => {
    if (isDealing) log.fatal({ reason }, 'the public log is halted: nothing is appended');
    else log.fatal({ reason }, 'the public log is of an older state: nothing is dealt');
  });
  subscribeProgramLog(events, log);
  events.on('SpinsLost', (lost) => log.error(lost, 'acknowledged spins are lost'));
  events.on('RunWritten', (made) => log.debug(made, 'run of request ids written'));
  events.on('PartitionsMissing', () => log.error('the ledger has no partition for tomorrow; will retry'));
  events.on('PlayersCheckpointed', (made) => log.debug(made, 'player checkpoint completed'));
  events.on('SettlementReportMade', (report) => log.info(report, 'settlement report made'));
  events.on('SettlementFailed', ({ error, ...day }) =>
    log.error({ err: error, ...day }, 'settlement report failed; will retry'),
  );
  events.on('DeliveryAttempted', ({ result, seconds: _, ...attempt }) => {
    if (result === 'exhausted') log.warn(attempt, 'webhook delivery failed permanently');
    // The delivery history records each attempt too. An unavailable receiver causes thousands of failed
    // attempts, so they are logged at debug level only.
    else if (result === 'failed') log.debug(attempt, 'webhook delivery attempt failed');
  });
  events.on('EmailAttempted', ({ result, ...attempt }) => {
    if (result === 'exhausted') log.warn(attempt, 'e-mail failed permanently');
    else if (result === 'failed') log.debug(attempt, 'e-mail attempt failed');
  });
  events.on('EmailsLeftUnsent', (left) => log.warn(left, 'e-mails are not sent: SMTP_URL is not set'));
  events.on('DurabilityChanged', ({ volatile }) => {
    if (volatile.length === 0) log.warn('Redis is durable again');
    else log.error({ volatile, isServed: allowed.allowVolatileRedis }, 'Redis may lose acknowledged writes');
  });
  events.on('PostgresDurabilityChanged', ({ volatile }) => {
    if (volatile.length === 0) log.warn('Postgres is durable again');
    else
      log.error({ volatile, isServed: allowed.allowVolatilePostgres }, 'Postgres may lose what it commits');
  });
  events.on('ReplicaDurabilityChanged', ({ volatile }) => {
    if (volatile.length === 0) log.warn('every replica is durable again');
    else log.warn({ volatile }, 'a replica may lose acknowledged writes; spins wait for the ledger');
  });
}

function subscribeProgramLog(events: EventEmitter, log: Logger): void {
  const differing = new Set<string>();
  events.on('ProgramChecked', ({ part, differing: count, differences, ...check }) => {
    if (count > 0) {
      differing.add(part);
      log.fatal({ part, ...check, differing: count, differences }, 'the program is not as it was built');
    } else if (differing.delete(part)) log.warn({ part, ...check }, 'the program is as it was built again');
    else log.debug({ part, ...check }, 'program checked');
  });
}

function subscribeCellLog(events: EventEmitter, log: Logger): void {
  /**
   * Cells whose refusal has been logged. A cell is refused at every attempt, but only the first one is
   * logged.
   */
  const refused = new Set<number>();
  events.on('CellRefused', ({ cell, reason }) => {
    if (!refused.has(cell)) log.fatal({ cell, reason }, 'cell refused');
    refused.add(cell);
  });
  events.on('CellAcquired', ({ lease: { cell } }) => {
    if (refused.delete(cell)) log.warn({ cell }, 'cell back in service');
  });
  events.on('StalledSessionsEnded', (ended) => log.error(ended, 'a stalled transaction held a cell; ended'));
  events.on('StoresRestored', (found) => log.fatal(found, 'the stores were restored: nothing is dealt'));
  events.on('OutsideCopyMissing', (found) =>
    log.fatal(found, 'a copy outside both stores is missing: nothing is dealt'),
  );
  events.on('OutsideCopyVanished', (gone) =>
    log.error(gone, 'a copy outside both stores has vanished; it is written again'),
  );
  let clockReportedAt = Number.NEGATIVE_INFINITY;
  events.on('ClockRefused', (refusal) => {
    if (performance.now() - clockReportedAt < CLOCK_TOLD_EVERY_MS) return;
    clockReportedAt = performance.now();
    log.fatal(refusal, 'clocks differ: the cell is not dealt from');
  });
  events.on('PartnerMoved', (moved) => log.info(moved, 'partner moved'));
  events.on('PartnerMoveAbandoned', (move) => log.error(move, 'partner move given up'));
  events.on('CellsAdded', (added) => log.info(added, 'cells added'));
  events.on('CellLost', ({ cell }) => log.info({ cell }, 'cell released'));
  events.on('CellHalted', ({ cell, reason }) => log.fatal({ cell, reason }, 'cell halted'));
  events.on('RebuildStarted', ({ cell, reason, isRepair }) => {
    if (isRepair) log.error({ cell, reason }, 'a replica has taken over; repairing the cell from the ledger');
    else log.error({ cell, reason }, 'Redis lost the data of a cell; rebuilding it from the ledger');
  });
  events.on('CellRebuilt', ({ isRepair, ...rebuilt }) =>
    log.error(rebuilt, isRepair ? 'cell repaired' : 'cell rebuilt'),
  );
}
