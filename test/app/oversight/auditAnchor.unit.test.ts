/** When the public log's daily record of the audit log is due. */
import { expect, test } from 'vitest';
import { anchorDay } from '../../../src/publicLog/log/auditAnchor.js';

const at = (time: string): number => Date.parse(`2026-11-24T${time}Z`);

test('the record of a day is due from the first moment of the expression on that day on', () => {
  expect(anchorDay('30 3 * * *', at('03:29:59.999'))).toBeUndefined();
  expect(anchorDay('30 3 * * *', at('03:30:00'))).toBe('2026-11-24');
  expect(anchorDay('30 3 * * *', at('23:59:59'))).toBe('2026-11-24');
  expect(anchorDay('0 6,18 * * *', at('05:59:00'))).toBeUndefined();
  expect(anchorDay('0 6,18 * * *', at('06:00:00'))).toBe('2026-11-24');
  expect(anchorDay('0 0 * * *', at('00:00:00'))).toBe('2026-11-24');
});

test('a day on which the expression has no moment has its record all the same, from its begin on', () => {
  // A Tuesday.
  expect(anchorDay('30 3 * * 1', at('00:00:00'))).toBe('2026-11-24');
});
