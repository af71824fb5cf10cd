import { expect, test } from 'vitest';
import { csvOf } from '../../console/csvText.js';

test('the console writes numbers as numbers, and ids of 19 digits so that a spreadsheet keeps their digits', () => {
  expect(csvOf(['balance', 'id', 'count'], [[1000.25, '7412907446960128010', '42']])).toBe(
    "balance,id,count\r\n1000.25,'7412907446960128010,42\r\n",
  );
});

test.each([' =1+1', '＝1+1', '\u00a0=1+1', '@SUM(A1)', '\t=1'])(
  'the console writes %j into CSV so that no spreadsheet runs it',
  (text) => {
    expect(csvOf(['a'], [[text]])).toBe(`a\r\n'${text}\r\n`);
  },
);
