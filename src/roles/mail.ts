/** E-mail of a worker: what sends it, and the notice that only people get. */
import type { SettlementJob } from '../settlement/job.js';
import { OverdueNotice } from '../settlement/overdueNotice.js';
import { Mailer } from '../webhooks/mailer.js';
import type { RoleParts } from './parts.js';

const OVERDUE_EVERY_MS = 60_000;

export function openMail(
  { config, sql, store, events, world }: RoleParts,
  settlement: Pick<SettlementJob, 'overdue'>,
): { mailer: Mailer; overdueNotice: OverdueNotice } {
  const mailer = new Mailer(sql, {
    smtpUrl: config.SMTP_URL,
    from: config.SMTP_FROM,
    brand: config.BRAND,
    retryDelaysMs: config.webhookRetryDelaysMs,
    events,
  });
  const overdueNotice = new OverdueNotice(store.noticeOverdueSettlement, {
    everyMs: OVERDUE_EVERY_MS,
    recipient: config.OPERATOR_EMAIL,
    overdue: () => settlement.overdue,
    now: world.now,
    events,
  });
  return { mailer, overdueNotice };
}
