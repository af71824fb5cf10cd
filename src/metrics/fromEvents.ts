/** Counts what happens. The spin path does not go through events: it counts by itself. */
import type { BackgroundTask, EventEmitter } from '../events.js';
import type { Metrics } from './metrics.js';

/** Which store held up a task, as `spindle_store_errors_total` calls it. */
const STORE_OF_TASK: Readonly<Record<BackgroundTask, string>> = {
  flush: 'ledger',
  'cell lease renewal': 'ledger',
  'cell preparation': 'ledger',
  'block replenishment': 'blocks',
  cleanup: 'redis',
  'player checkpoint': 'postgres',
  'day completeness check': 'redis',
  'webhook delivery': 'postgres',
  'API key expiry check': 'postgres',
  'API sunset reminder': 'postgres',
};

export function subscribeMetrics(events: EventEmitter, metrics: Metrics): void {
  events.on('TaskFailed', ({ task }) => metrics.storeErrors.inc({ store: STORE_OF_TASK[task] }));
  events.on('CatalogStale', () => metrics.storeErrors.inc({ store: 'postgres' }));
  events.on('LedgerCommitted', ({ entries, seconds, lagSeconds }) => {
    metrics.flushEntries.inc(entries);
    metrics.flushSeconds.observe(seconds);
    metrics.flushLagSeconds.observe(lagSeconds);
  });
  events.on('BlockMade', ({ outcomes, makeSeconds, totalSeconds }) => {
    metrics.blockOutcomes.inc(outcomes);
    metrics.blockPoolSeconds.inc(makeSeconds);
    metrics.blockMakeSeconds.observe(totalSeconds);
  });
  events.on('RebuildStarted', () => metrics.recoveriesUnderWay.inc());
  events.on('RebuildFailed', () => metrics.recoveriesUnderWay.dec());
  events.on('CellRebuilt', ({ voided, seconds }) => {
    metrics.recoveriesUnderWay.dec();
    metrics.recoverySeconds.observe(seconds);
    metrics.outcomesVoided.inc(voided);
  });
  events.on('SettlementReportMade', ({ status }) => metrics.settlementReports.inc({ status }));
  events.on('SettlementFailed', () => metrics.settlementFaults.inc());
  events.on('DeliveryAttempted', ({ result, seconds }) => {
    metrics.webhookAttempts.inc({ result });
    metrics.webhookAttemptSeconds.observe(seconds);
  });
  events.on('DurabilityChanged', ({ volatile }) => metrics.redisVolatile.set(volatile.length > 0 ? 1 : 0));
}
