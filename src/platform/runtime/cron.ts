/** Moments of a cron expression of five fields, in UTC. */
import { Cron } from 'croner';

const schedule = (cron: string): Cron => new Cron(cron, { timezone: 'UTC', mode: '5-part', paused: true });

/** @throws Error that says what is wrong, also where the expression never comes again. */
export function checkCron(cron: string): void {
  if (schedule(cron).nextRun() === null) throw new Error('is never due');
}

/** The first moment after another one; both milliseconds since the epoch. @throws RangeError where none comes */
export function nextMoment(cron: string, afterMs: number): number {
  const moment = schedule(cron).nextRun(new Date(afterMs));
  if (moment === null) throw new RangeError(`«${cron}» is never due again`);
  return moment.getTime();
}

/** The newest moment that is not after another one; both milliseconds since the epoch. @throws RangeError where none was */
export function newestMoment(cron: string, nowMs: number): number {
  // What is looked for is before the given moment, to the second.
  const [moment] = schedule(cron).previousRuns(1, new Date((Math.floor(nowMs / 1000) + 1) * 1000));
  if (moment === undefined) throw new RangeError(`«${cron}» was never due`);
  return moment.getTime();
}
