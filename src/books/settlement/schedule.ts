/** When reports become due. */
import { dayOf, shiftDay } from '../../domain/days.js';
import { newestMoment } from '../../platform/runtime/cron.js';

/** The newest day that is due at a moment: the one before the newest moment of the cron expression. */
export const dueDay = (cron: string, now: Date): string =>
  shiftDay(dayOf(newestMoment(cron, now.getTime())), -1);
