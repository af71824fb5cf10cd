/** Parses the RFC 3339 times in requests. */

/** Date and time in the syntax of RFC 3339, section 5.6. */
const RFC_3339 = /^(\d{4}-\d{2}-(\d{2}))[Tt]([01]\d|2[0-3]):\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/;

export const NO_TIME = 'must be an RFC 3339 time, such as 2026-11-27T08:30:00Z';

/**
 * Parses an RFC 3339 time. Undefined if the text is not such a time, or if its time in UTC is outside the
 * years 0 to 9999, so that it could not be written as such a time.
 */
export function rfc3339Time(text: string): Date | undefined {
  const match = RFC_3339.exec(text);
  const time = new Date(text);
  // Date turns the 30th of February into a day of March, so the parsed day is compared with the day in the
  // text.
  const isTime = match !== null && new Date(match[1]!).getUTCDate() === Number(match[2]);
  const year = time.getUTCFullYear();
  return isTime && year >= 0 && year <= 9999 ? time : undefined;
}
