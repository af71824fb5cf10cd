/** Intervals of reports (docs/reports.md): ranges of UTC days, both ends inclusive. */
import { shiftDay } from './days.js';

export const INTERVALS = ['DTD', 'MTD', 'YTD', 'LTD', 'RANGE'] as const;
export type Interval = (typeof INTERVALS)[number];

/** Content of a CSV report whose interval has no activity. */
export const NO_ACTIVITY = 'No Activity\r\n';

export const REPORT_ROWS_MAX = 10_000;

/** Returns the first day of an interval that ends today. Undefined if the interval has no first day. */
export function firstDayOf(interval: Exclude<Interval, 'RANGE'>, today: string): string | undefined {
  if (interval === 'DTD') return today;
  if (interval === 'MTD') return `${today.slice(0, 8)}01`;
  return interval === 'YTD' ? `${today.slice(0, 5)}01-01` : undefined;
}

/** Number of days in which one search looks for missing days. */
const LOOK_DAYS = 40;

/**
 * Returns the last day up to which all days are complete in the ledger.
 * @param firstDay first day of the search; no earlier day counts as missing
 * @param missing returns the days of a range that are not known to be complete, oldest first
 * @returns null if not even the first day is complete
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
