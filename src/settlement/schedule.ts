/** When reports become due: a cron expression of five fields, in UTC. */
import { Cron } from 'croner';
import { dayOf, shiftDay } from '../domain/settlement.js';

const schedule = (cron: string): Cron => new Cron(cron, { timezone: 'UTC', mode: '5-part', paused: true });

/** @throws Error that says what is wrong, also where the expression never comes again. */
export function checkCron(cron: string): void {
  if (schedule(cron).nextRun() === null) throw new Error('is never due');
}

/** The newest day that is due at a moment: the one before the newest moment of the expression. */
export function dueDay(cron: string, now: Date): string {
  // What is looked for is before the given moment, to the second.
  const reference = new Date((Math.floor(now.getTime() / 1000) + 1) * 1000);
  const [moment] = schedule(cron).previousRuns(1, reference);
  if (moment === undefined) throw new RangeError(`«${cron}» was never due`);
  return shiftDay(dayOf(moment.getTime()), -1);
}
