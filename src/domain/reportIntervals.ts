/** The intervals of reports (docs/reports.md): UTC days, both with it. */
import { shiftDay } from './days.js';

export const INTERVALS = ['DTD', 'MTD', 'YTD', 'LTD', 'RANGE'] as const;
export type Interval = (typeof INTERVALS)[number];

/** What stands in a CSV of which nothing happened in the interval. */
export const NO_ACTIVITY = 'No Activity\r\n';

/** Rows of a report that one answer has at the most. */
export const REPORT_ROWS_MAX = 10_000;

/** The first day of an interval that ends today; undefined: it has no first day. */
export function firstDayOf(interval: Exclude<Interval, 'RANGE'>, today: string): string | undefined {
  if (interval === 'DTD') return today;
  if (interval === 'MTD') return `${today.slice(0, 8)}01`;
  return interval === 'YTD' ? `${today.slice(0, 5)}01-01` : undefined;
}

/** A look for missing days goes back so far at a time. */
const LOOK_DAYS = 40;

/**
 * The last day of which all is booked, and of every day before it.
 * @param firstDay none is missing before it
 * @param missing days from one to another that are not booked, or not known to be, oldest first
 * @returns null: not even the first
 */
export async function completeTo(
  firstDay: string,
  today: string,
  missing: (from: string, through: string) => Promise<readonly string[]>,
): Promise<string | null> {
  let complete = shiftDay(today, -1);
  for (let through = complete; through >= firstDay; through = shiftDay(through, -LOOK_DAYS)) {
    const [oldest] = await missing(shiftDay(through, 1 - LOOK_DAYS), through);
    if (oldest === undefined) break;
    complete = shiftDay(oldest, -1);
  }
  return complete < firstDay ? null : complete;
}
