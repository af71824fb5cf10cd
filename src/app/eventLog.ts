/** Writes process events to the log (docs/operations.md, "The log"). */
import type { Logger } from 'pino';
import type { EventEmitter } from '../engine/processEvents.js';

/**
 * Minimum time between two log lines about a wrong clock, in ms. Every batch is refused while the clock is
 * wrong.
 */
const CLOCK_TOLD_EVERY_MS = 60_000;

/**
 * @param allowed volatile stores that the service uses by configuration, although they may lose acknowledged
 * data
 */
export function subscribeLog(
  events: EventEmitter,
  log: Logger,
  allowed: { readonly allowVolatileRedis: boolean; readonly allowVolatilePostgres: boolean },
): void {
  events.on('TaskFailed', ({ task, error, ...about }) =>
    log.warn({ err: error, ...about }, `${task} failed, will retry`),
  );
  events.on('FormatChanged', (changed) => log.warn(changed, 'upgrade finished, writing the new data format'));
  events.on('FormatUnreadable', ({ reason }) =>
    log.error({ reason }, 'stored data format is newer than this version supports, dealing stopped'),
  );
  events.on('KeysDiffer', (others) => log.warn(others, 'other processes encrypt with a different key'));
  events.on('KeysReplaced', () => log.warn('key replacement completed, all processes use the new key'));
  events.on('CatalogStale', ({ error }) =>
    log.warn({ err: error }, 'catalog refresh failed, using the cached catalog'),
  );
  events.on('CatalogRecovered', () => log.warn('catalog refresh recovered'));
  subscribeCellLog(events, log);
  events.on('WitnessChanged', ({ result, ...changed }) => {
    if (result === 'cosigned') log.warn(changed, 'witness cosigns the public log again');
    else log.warn({ ...changed, result }, 'witness did not cosign the public log, will retry');
  });
  events.on('LogHalted', ({ reason, isDealing }) => {
    if (isDealing) log.fatal({ reason }, 'public log halted, no records are appended');
    else log.fatal({ reason }, 'public log is older than its published copies, dealing stopped');
  });
  subscribeProgramLog(events, log);
  events.on('SpinsLost', (lost) => log.error(lost, 'acknowledged spins were lost'));
  events.on('RunWritten', (made) => log.debug(made, 'run of request ids written'));
  events.on('PartitionsMissing', () => log.error('ledger partition for tomorrow is missing, will retry'));
  events.on('PlayersCheckpointed', (made) => log.debug(made, 'player checkpoint completed'));
  events.on('SettlementReportMade', (report) => log.info(report, 'settlement report made'));
  events.on('SettlementFailed', ({ error, ...day }) =>
    log.error({ err: error, ...day }, 'settlement report failed, will retry'),
  );
  events.on('DeliveryAttempted', ({ result, seconds: _, ...attempt }) => {
    if (result === 'exhausted') log.warn(attempt, 'webhook delivery failed permanently');
    // The delivery history records each webhook attempt too. An unavailable receiver causes thousands of
    // failed attempts, so they are logged at debug level only.
    else if (result === 'failed') log.debug(attempt, 'webhook delivery attempt failed');
  });
  events.on('EmailAttempted', ({ result, ...attempt }) => {
    if (result === 'exhausted') log.warn(attempt, 'e-mail delivery failed permanently');
    else if (result === 'failed') log.debug(attempt, 'e-mail delivery attempt failed');
  });
  events.on('EmailsLeftUnsent', (left) => log.warn(left, 'e-mails are not sent because SMTP_URL is not set'));
  events.on('DurabilityChanged', ({ volatile }) => {
    if (volatile.length === 0) log.warn('Redis is durable again');
    else log.error({ volatile, isServed: allowed.allowVolatileRedis }, 'Redis may lose acknowledged writes');
  });
  events.on('PostgresDurabilityChanged', ({ volatile }) => {
    if (volatile.length === 0) log.warn('Postgres is durable again');
    else
      log.error({ volatile, isServed: allowed.allowVolatilePostgres }, 'Postgres may lose committed writes');
  });
  events.on('ReplicaDurabilityChanged', ({ volatile }) => {
    if (volatile.length === 0) log.warn('all replicas are durable again');
    else log.warn({ volatile }, 'a replica may lose acknowledged writes, so spins wait for Postgres');
  });
}

function subscribeProgramLog(events: EventEmitter, log: Logger): void {
  const differing = new Set<string>();
  events.on('ProgramChecked', ({ part, differing: count, differences, ...check }) => {
    if (count > 0) {
      differing.add(part);
      log.fatal(
        { part, ...check, differing: count, differences },
        'program files differ from the build manifest',
      );
    } else if (differing.delete(part))
      log.warn({ part, ...check }, 'program files match the build manifest again');
    else log.debug({ part, ...check }, 'program checked');
  });
}

function subscribeCellLog(events: EventEmitter, log: Logger): void {
  /**
   * Cells whose refusal has been logged. Each attempt to prepare such a cell is refused, but only the first
   * refusal is logged.
   */
  const refused = new Set<number>();
  events.on('CellRefused', ({ cell, reason }) => {
    if (!refused.has(cell)) log.fatal({ cell, reason }, 'cell refused');
    refused.add(cell);
  });
  events.on('CellAcquired', ({ lease: { cell } }) => {
    if (refused.delete(cell)) log.warn({ cell }, 'cell back in service');
  });
  events.on('StalledSessionsEnded', (ended) =>
    log.error(ended, 'ended a stalled transaction that blocked a cell'),
  );
  events.on('StoresRestored', (found) =>
    log.fatal(found, 'stores were restored to an older state, dealing stopped'),
  );
  events.on('OutsideCopyMissing', (found) =>
    log.fatal(found, 'position file or log copy is missing or unreadable, dealing stopped'),
  );
  events.on('OutsideCopyVanished', (gone) =>
    log.error(
      gone,
      gone.damage === undefined
        ? 'position file or log copy disappeared and is written again'
        : 'position file or log copy was damaged and is written again',
    ),
  );
  let clockReportedAt = Number.NEGATIVE_INFINITY;
  events.on('ClockRefused', (refusal) => {
    if (performance.now() - clockReportedAt < CLOCK_TOLD_EVERY_MS) return;
    clockReportedAt = performance.now();
    log.fatal(refusal, 'clock skew exceeds CLOCK_SKEW_MAX_S, dealing from the cell stopped');
  });
  events.on('PartnerMoved', (moved) => log.info(moved, 'partner moved'));
  events.on('PartnerMoveAbandoned', (move) => log.error(move, 'partner move abandoned'));
  events.on('CellsAdded', (added) => log.info(added, 'cells added'));
  events.on('CellLost', ({ cell }) => log.info({ cell }, 'cell released'));
  events.on('CellHalted', ({ cell, reason }) => log.fatal({ cell, reason }, 'cell halted'));
  events.on('RebuildStarted', ({ cell, reason, isRepair }) => {
    if (isRepair) log.error({ cell, reason }, 'failover to a replica, repairing the cell from the ledger');
    else log.error({ cell, reason }, 'Redis lost the data of a cell, rebuilding it from the ledger');
  });
  events.on('CellRebuilt', ({ isRepair, ...rebuilt }) =>
    log.error(rebuilt, isRepair ? 'cell repaired' : 'cell rebuilt'),
  );
}
