/** Computes the times of a cron expression with five fields, in UTC. */
import { Cron } from 'croner';

const schedule = (cron: string): Cron => new Cron(cron, { timezone: 'UTC', mode: '5-part', paused: true });

/** @throws Error that says what is wrong, also if the expression is never due */
export function checkCron(cron: string): void {
  if (schedule(cron).nextRun() === null) throw new Error('is never due');
}

/**
 * Returns the first due time after a given time, in milliseconds since the Unix epoch.
 * @throws RangeError if there is none
 */
export function nextMoment(cron: string, afterMs: number): number {
  const moment = schedule(cron).nextRun(new Date(afterMs));
  if (moment === null) throw new RangeError(`«${cron}» is never due again`);
  return moment.getTime();
}

/**
 * Returns the newest due time that is not after a given time, in milliseconds since the Unix epoch.
 * @throws RangeError if there was none
 */
export function newestMoment(cron: string, nowMs: number): number {
  // croner searches for times before the given one, with a resolution of a second. One second is added to
  // include the given time.
  const [moment] = schedule(cron).previousRuns(1, new Date((Math.floor(nowMs / 1000) + 1) * 1000));
  if (moment === undefined) throw new RangeError(`«${cron}» was never due`);
  return moment.getTime();
}
