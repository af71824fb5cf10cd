import { expect, test } from 'vitest';
import { csvOf } from '../../console/csvText.js';

test.each([' =1+1', '＝1+1', '\u00a0=1+1', '@SUM(A1)', '\t=1'])(
  'the console writes %j into CSV so that no spreadsheet runs it',
  (text) => {
    expect(csvOf(['a'], [[text]])).toBe(`a\r\n'${text}\r\n`);
  },
);
