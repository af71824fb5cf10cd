/** Tests how the console reads prize tables and computes the return of a raffle. */
import { describe, expect, test } from 'vitest';
import { previewOf, prizesOf } from '../../console/prizes.js';

const HEAD = 'prizeName,prizeTier,valueUsd,count\n';

describe('prize tables as CSV', () => {
  test('the console reads a CSV prize table with BOM, CRLF, quoted fields, and columns in any order', () => {
    const text =
      '\ufeffcount,valueUsd,prizeTier,prizeName\r\n1,60,6,"Car, ""red""\nand fast"\r\n20,1.5,1,Pen\r\n\r\n';
    expect(prizesOf(text)).toEqual([
      { prizeName: 'Car, "red"\nand fast', prizeTier: 6, valueUsd: 60, count: 1 },
      { prizeName: 'Pen', prizeTier: 1, valueUsd: 1.5, count: 20 },
    ]);
    expect(prizesOf(`${HEAD}Pen,1,0.5,3`)).toEqual([
      { prizeName: 'Pen', prizeTier: 1, valueUsd: 0.5, count: 3 },
    ]);
  });

  test.each([
    ['prizeName,count\nPen,1', 'The first line must name prizeTier, valueUsd'],
    [`${HEAD}Pen,1,much,3`, 'Line 2: prizeTier, valueUsd and count must be numbers'],
    [`${HEAD}Pen,1,1,3\nCar,6`, 'Line 3: prizeTier, valueUsd and count must be numbers'],
    [`${HEAD}"Pen,1,1,3`, 'Line 2 is not valid CSV'],
  ])('the console refuses the CSV prize table %j and names its fault', (text, message) => {
    expect(() => prizesOf(text)).toThrow(message);
  });
});

test('the console previews a raffle by the price of all its tickets and the value of all its prizes', () => {
  const prizes = prizesOf(`${HEAD}Car,6,60,1\nPen,1,1.5,20`);
  expect(previewOf(prizes, 1, 100)).toEqual({ takesUsd: 100, returnsUsd: 90, winning: 21, rtp: 0.9 });
});
