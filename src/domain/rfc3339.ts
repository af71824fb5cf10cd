/** Times as requests have them. */

/** RFC 3339, section 5.6. */
const RFC_3339 = /^(\d{4}-\d{2}-(\d{2}))[Tt]([01]\d|2[0-3]):\d{2}:\d{2}(\.\d{1,9})?([Zz]|[+-]\d{2}:\d{2})$/;

export const NO_TIME = 'must be an RFC 3339 time';

/** The time that a text is as RFC 3339 has it; undefined where it is none. */
export function rfc3339Time(text: string): Date | undefined {
  const match = RFC_3339.exec(text);
  const time = new Date(text);
  // Date makes the 2nd of March of a 30th of February.
  const isTime = match !== null && new Date(match[1]!).getUTCDate() === Number(match[2]);
  return isTime && !Number.isNaN(time.getTime()) ? time : undefined;
}
