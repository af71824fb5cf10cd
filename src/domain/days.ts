/** Helpers for UTC days as text in the form YYYY-MM-DD. */

export const DAY_MS = 86_400_000;

export const NO_DAY = 'must be a calendar day in the form YYYY-MM-DD, such as 2026-11-27';

/** Returns whether the text is a valid calendar day, YYYY-MM-DD, from the year 1 on. */
export function isDay(text: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || text < '0001') return false;
  const ms = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(ms) && dayOf(ms) === text;
}

/** Returns the UTC day of a time in milliseconds since the epoch. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Returns the start of a UTC day, in milliseconds since the epoch. */
export const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);

/** Returns the day that is `days` days after the given one, or before it if negative. */
export const shiftDay = (day: string, days: number): string => dayOf(startOf(day) + days * DAY_MS);
