/** Tests when the daily record of the audit log in the public log is due. */
import { expect, test } from 'vitest';
import { anchorDay } from '../../../src/publicLog/log/auditAnchor.js';

const at = (time: string): number => Date.parse(`2026-11-24T${time}Z`);

test('makes the daily audit record due at the first time of the day that the schedule names', () => {
  expect(anchorDay('30 3 * * *', at('03:29:59.999'))).toBeUndefined();
  expect(anchorDay('30 3 * * *', at('03:30:00'))).toBe('2026-11-24');
  expect(anchorDay('30 3 * * *', at('23:59:59'))).toBe('2026-11-24');
  expect(anchorDay('0 6,18 * * *', at('05:59:00'))).toBeUndefined();
  expect(anchorDay('0 6,18 * * *', at('06:00:00'))).toBe('2026-11-24');
  expect(anchorDay('0 0 * * *', at('00:00:00'))).toBe('2026-11-24');
});

test('makes the audit record due at the start of a day on which the schedule has no time', () => {
  // The date is a Tuesday, and the schedule names Monday only.
  expect(anchorDay('30 3 * * 1', at('00:00:00'))).toBe('2026-11-24');
});
