/** Opens a worker's scheduled notices to people and webhooks, and the service that sends its e-mails. */

import type { SettlementJob } from '../../books/settlement/job.js';
import { noticeOverdueSettlement } from '../../books/settlement/overdueNotice.store.js';
import { remindOfSunsets } from '../../engine/catalog/apiVersions.store.js';
import { notifyGameStatuses } from '../../engine/catalog/dealingSwitches.store.js';
import { type BackgroundTask, job } from '../../engine/processEvents.js';
import type { Job } from '../../platform/runtime/periodicService.js';
import { Mailer } from '../../webhooks/mailer.js';
import { noticeExpiringKeys } from '../../webhooks/notices.store.js';
import type { RoleParts } from './parts.js';

const CALENDAR_EVERY_MS = 300_000;
const OVERDUE_EVERY_MS = 60_000;
/** Time that a settlement must be overdue before the operator is notified by e-mail, in seconds. */
const OVERDUE_SECONDS = 86_400;

export function openNotices(
  { config, sql, events, world: { now } }: RoleParts,
  settlement: Pick<SettlementJob, 'overdue'>,
): { mailer: Mailer; notices: Job[] } {
  const mailer = new Mailer(sql, {
    smtpUrl: config.SMTP_URL,
    from: config.SMTP_FROM,
    brand: config.BRAND,
    retryDelaysMs: config.constants.webhookRetryDelaysMs,
    events,
  });
  const notice = (
    task: BackgroundTask,
    everyMs: number,
    record: (now: Date) => Promise<number>,
    name?: string,
  ): Job => {
    const turn = async (): Promise<void> => {
      const deliveries = await record(new Date(now()));
      if (deliveries > 0) events.emit('EventsRecorded', { deliveries });
    };
    // Due notices are recorded at the start, too, because the last check may have been long ago.
    return job(events, task, { everyMs, firstAfterMs: 0 }, turn, name);
  };
  const noticeOverdue = async (at: Date): Promise<number> => {
    const oldest = settlement.overdue;
    if (config.OPERATOR_EMAIL === undefined || oldest === undefined || oldest.seconds < OVERDUE_SECONDS)
      return 0;
    return noticeOverdueSettlement(sql, oldest.date, config.OPERATOR_EMAIL, at);
  };
  const noticeKeys = (at: Date): Promise<number> => noticeExpiringKeys(sql, at);
  const noticeSunsets = (at: Date): Promise<number> => remindOfSunsets(sql, at);
  // Several workers may run these jobs, because each notice is recorded only once.
  const notices = [
    notice('API key expiry check', CALENDAR_EVERY_MS, noticeKeys, 'API key expiry'),
    notice('game status notices', OVERDUE_EVERY_MS, () => notifyGameStatuses(sql)),
    notice('API sunset reminder', CALENDAR_EVERY_MS, noticeSunsets, 'API sunset reminders'),
    notice('overdue settlement notice', OVERDUE_EVERY_MS, noticeOverdue),
  ];
  return { mailer, notices };
}
