/**
 * The head of the audit log is recorded in the public log once a day. Every worker tries, but the record of a
 * day is written only once.
 */
import { dayOf, startOf } from '../../domain/days.js';
import { nextMoment } from '../../platform/runtime/cron.js';

/**
 * Returns the UTC day whose record is due, or undefined if today's record is not due yet. On a day without a
 * matching cron time the record is due from midnight.
 * @param cron five fields, UTC; the record of a day is due from the day's first matching time
 */
export function anchorDay(cron: string, nowMs: number): string | undefined {
  const day = dayOf(nowMs);
  const firstMs = nextMoment(cron, startOf(day) - 1);
  return dayOf(firstMs) === day && nowMs < firstMs ? undefined : day;
}
