/** Opens a worker's scheduled notices to people and webhooks, and the service that sends its e-mails. */

import type { SettlementJob } from '../../books/settlement/job.js';
import { noticeOverdueSettlement } from '../../books/settlement/overdueNotice.store.js';
import { remindOfSunsets } from '../../engine/catalog/apiVersions.store.js';
import { notifyGameStatuses } from '../../engine/catalog/dealingSwitches.store.js';
import { Mailer } from '../../webhooks/mailer.js';
import { Notices } from '../../webhooks/notices.js';
import { noticeExpiringKeys } from '../../webhooks/notices.store.js';
import type { RoleParts } from './parts.js';

const CALENDAR_EVERY_MS = 300_000;
const OVERDUE_EVERY_MS = 60_000;
/** Time that a settlement must be overdue before the operator is notified by e-mail, in seconds. */
const OVERDUE_SECONDS = 86_400;

export function openNotices(
  { config, sql, events, world: { now } }: RoleParts,
  settlement: Pick<SettlementJob, 'overdue'>,
): { mailer: Mailer; notices: Notices[] } {
  const mailer = new Mailer(sql, {
    smtpUrl: config.SMTP_URL,
    from: config.SMTP_FROM,
    brand: config.BRAND,
    retryDelaysMs: config.constants.webhookRetryDelaysMs,
    events,
  });
  const notices = [
    new Notices({
      name: 'API key expiry',
      task: 'API key expiry check',
      everyMs: CALENDAR_EVERY_MS,
      now,
      events,
      record: (at) => noticeExpiringKeys(sql, at),
    }),
    new Notices({
      name: 'game status notices',
      task: 'game status notices',
      everyMs: OVERDUE_EVERY_MS,
      now,
      events,
      record: () => notifyGameStatuses(sql),
    }),
    new Notices({
      name: 'API sunset reminders',
      task: 'API sunset reminder',
      everyMs: CALENDAR_EVERY_MS,
      now,
      events,
      record: (at) => remindOfSunsets(sql, at),
    }),
    new Notices({
      name: 'overdue settlement notice',
      task: 'overdue settlement notice',
      now,
      events,
      everyMs: OVERDUE_EVERY_MS,
      record: async (at) => {
        const oldest = settlement.overdue;
        if (config.OPERATOR_EMAIL === undefined || oldest === undefined || oldest.seconds < OVERDUE_SECONDS)
          return 0;
        return noticeOverdueSettlement(sql, oldest.date, config.OPERATOR_EMAIL, at);
      },
    }),
  ];
  return { mailer, notices };
}
