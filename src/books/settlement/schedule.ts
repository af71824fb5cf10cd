/** Schedule of settlement reports. */
import { dayOf, shiftDay } from '../../domain/days.js';
import { newestMoment } from '../../platform/runtime/cron.js';

/** Returns the newest due day: the day before the latest time of the cron expression. */
export const dueDay = (cron: string, now: Date): string =>
  shiftDay(dayOf(newestMoment(cron, now.getTime())), -1);
