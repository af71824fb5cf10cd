/** Counts process events as metrics. The spin path does not use events and counts its own metrics. */
import { TIERS_MAX } from '../../domain/communal.js';
import { type EventEmitter, STORE_OF_TASK } from '../../engine/processEvents.js';
import type { Metrics } from './metrics.js';

export function subscribeMetrics(events: EventEmitter, metrics: Metrics): void {
  events.on('TaskFailed', ({ task }) => metrics.storeErrors.inc({ store: STORE_OF_TASK[task] }));
  events.on('CatalogStale', () => metrics.storeErrors.inc({ store: 'postgres' }));
  events.on('ClockRefused', () => metrics.clockRefusals.inc());
  events.on('FlushCommitted', ({ seconds }) => metrics.flushSeconds.observe(seconds));
  events.on('LedgerCommitted', ({ entries, lagSeconds }) => {
    metrics.flushEntries.inc(entries);
    metrics.flushLagSeconds.observe(lagSeconds);
  });
  events.on('BlockMade', ({ outcomes, makeSeconds, totalSeconds }) => {
    metrics.blockOutcomes.inc(outcomes);
    metrics.blockPoolSeconds.inc(makeSeconds);
    metrics.blockMakeSeconds.observe(totalSeconds);
  });
  countMoves(events, metrics);
  countRefunds(events, metrics);
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
  countLostSpins(events, metrics);
  countEmails(events, metrics);
  countCommunalEvents(events, metrics);
  events.on('PostgresDurabilityChanged', ({ volatile }) =>
    metrics.postgresVolatile.set(volatile.length > 0 ? 1 : 0),
  );
  events.on('DurabilityChanged', ({ volatile }) => metrics.redisVolatile.set(volatile.length > 0 ? 1 : 0));
}

function countMoves(events: EventEmitter, metrics: Metrics): void {
  const counts = { moved: 0, given_up: 0 };
  let stopped = 0;
  metrics.counters(
    'spindle_partner_moves_total',
    'Partner moves that this process finished, by result: moved, given_up (abandoned)',
    () => Object.entries(counts).map(([result, value]) => ({ labels: { result }, value })),
  );
  metrics.counters(
    'spindle_partner_move_stopped_seconds_total',
    'Total time for which dealing was stopped for partners that moved, in seconds',
    () => [{ labels: {}, value: stopped }],
  );
  events.on('PartnerMoved', ({ stoppedSeconds }) => {
    counts.moved++;
    stopped += stoppedSeconds;
  });
  events.on('PartnerMoveAbandoned', () => counts.given_up++);
}

function countRefunds(events: EventEmitter, metrics: Metrics): void {
  const counts = { refunded: 0, failed: 0 };
  metrics.counters(
    'spindle_raffle_refunds_total',
    'Tickets of voided raffles that this process handled, by result: refunded, failed (the refund is impossible)',
    () => Object.entries(counts).map(([result, value]) => ({ labels: { result }, value })),
  );
  events.on('TicketRefunded', ({ result }) => counts[result]++);
}

/** Counts communal events with one time series per tier and status: at most twenty. */
function countCommunalEvents(events: EventEmitter, metrics: Metrics): void {
  const series = new Map<string, { labels: { tier: number; status: string }; value: number }>();
  for (let tier = 1; tier <= TIERS_MAX; tier++)
    for (const status of ['PAID', 'SKIPPED_BUDGET'])
      series.set(`${tier} ${status}`, { labels: { tier, status }, value: 0 });
  metrics.counters(
    'spindle_communal_events_total',
    'Events of communal progressives that this process committed, by tier level and status',
    () => [...series.values()],
  );
  events.on('CommunalEventsCommitted', ({ events: booked }) => {
    for (const { tierLevel, status } of booked) series.get(`${tierLevel} ${status}`)!.value++;
  });
}

function countLostSpins(events: EventEmitter, metrics: Metrics): void {
  let lost = 0;
  events.on('SpinsLost', ({ spins, notRemembered }) => {
    lost += spins + notRemembered;
  });
  metrics.counters(
    'spindle_lost_spins_total',
    'Spins answered by this process that a failover to a replica lost (table lost_spins)',
    () => [{ labels: {}, value: lost }],
  );
}

function countEmails(events: EventEmitter, metrics: Metrics): void {
  const counts = new Map(['sent', 'failed', 'exhausted', 'unsent'].map((result) => [result, 0]));
  const add = (result: string, emails: number): void => void counts.set(result, counts.get(result)! + emails);
  metrics.counters(
    'spindle_emails_total',
    'E-mails, by result: sent, failed (one attempt), exhausted (the last attempt), unsent (SMTP_URL is not set)',
    () => [...counts].map(([result, value]) => ({ labels: { result }, value })),
  );
  events.on('EmailAttempted', ({ result }) => add(result, 1));
  events.on('EmailsLeftUnsent', ({ emails }) => add('unsent', emails));
}
