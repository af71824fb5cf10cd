import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decimalOf,
  decimalToNumber,
  isWithin,
  sumDecimals,
  toCommonExponent,
} from '../../src/domain/decimal.js';
import {
  decimalTextToMicros,
  MAX_MICROS,
  microsToUsdText,
  payoutMicros,
  usdToMicros,
} from '../../src/domain/money.js';

const micros = fc.integer({ min: -MAX_MICROS, max: MAX_MICROS });
const digitsText = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: length });

/** Computes the micro-USD of `±digits × 10^exponent` in integer arithmetic, for exponents of small size. */
function oracleMicros(signedDigits: bigint, exponent: number): number | undefined {
  const power = exponent + 6;
  const scale = 10n ** BigInt(Math.abs(power));
  if (power < 0 && signedDigits % scale !== 0n) return undefined;
  const value = power < 0 ? signedDigits / scale : signedDigits * scale;
  const magnitude = value < 0n ? -value : value;
  return magnitude > BigInt(MAX_MICROS) ? undefined : Number(value);
}

describe('reading decimal amounts', () => {
  test.each([
    ['0.25', 250_000],
    ['2.5e-1', 250_000],
    ['25E-2', 250_000],
    ['0.250000000000000000000', 250_000],
    ['0.000025e+4', 250_000],
    ['-0.25', -250_000],
    ['1000', 1_000_000_000],
    ['0.000001', 1],
    ['1e-6', 1],
    ['9000000000', MAX_MICROS],
    ['-9e9', -MAX_MICROS],
    ['0', 0],
    ['-0', 0],
    ['-0.000e5', 0],
    ['0e999999999999999999999', 0],
  ])('reads %s as %d micro-USD', (text, expected) => {
    expect(decimalTextToMicros(text)).toBe(expected);
  });

  test.each([
    '0.2500001',
    '0.25000000000000000001',
    '1e-7',
    '1e400',
    '1e-400',
    '1e999999999999999999999',
    '1e-999999999999999999999',
    '9000000000.000001',
    '9e9999',
    '9007199254.740993',
  ])('rejects the amount %s, which is not a whole number of micro-USD within the limits', (text) => {
    expect(decimalTextToMicros(text)).toBeUndefined();
  });

  test.each([
    '',
    ' 1',
    '1 ',
    '+1',
    '01',
    '.5',
    '1.',
    '1e',
    '0x10',
    'NaN',
    'Infinity',
    '1_000',
    '--1',
    '1,5',
    '١',
  ])('rejects the amount %j, which is not a JSON number', (text) => {
    expect(decimalTextToMicros(text)).toBeUndefined();
  });

  test('reads any JSON number token as its exact decimal amount, or rejects it', () => {
    fc.assert(
      fc.property(
        fc.boolean(),
        digitsText(20),
        fc.option(digitsText(20)),
        fc.option(fc.integer({ min: -40, max: 40 })),
        (isNegative, wholeDigits, fraction, exponent) => {
          const whole = String(BigInt(wholeDigits));
          const sign = isNegative ? '-' : '';
          const text = `${sign}${whole}${fraction === null ? '' : `.${fraction}`}${exponent === null ? '' : `e${exponent}`}`;
          const digits = BigInt(whole + (fraction ?? ''));
          const expected = oracleMicros(
            isNegative ? -digits : digits,
            (exponent ?? 0) - (fraction?.length ?? 0),
          );
          expect(decimalTextToMicros(text)).toBe(expected);
        },
      ),
      { numRuns: 5_000 },
    );
  });

  test('reads an amount exactly if its exponent moves the decimal point over thousands of zeros', () => {
    expect(decimalTextToMicros(`0.${'0'.repeat(4_000)}25e4000`)).toBe(250_000);
    expect(decimalTextToMicros(`25${'0'.repeat(4_000)}e-4002`)).toBe(250_000);
  });
});

describe('numbers as amounts', () => {
  test.each([
    [0.25, 250_000],
    [0.1 + 0.2, undefined],
    [1e21, undefined],
    [1e-7, undefined],
    [Number.NaN, undefined],
    [Number.POSITIVE_INFINITY, undefined],
    [Number.MIN_VALUE, undefined],
    [Number.MAX_VALUE, undefined],
    [-0, 0],
    [9e9, MAX_MICROS],
    [9_000_000_001, undefined],
  ])('converts the number %d USD to %s micro-USD', (usd, expected) => {
    expect(usdToMicros(usd)).toBe(expected);
  });

  test('an amount survives its conversion to text and back, and to a number and back if a double has enough digits', () => {
    fc.assert(
      fc.property(micros, (amount) => {
        const text = microsToUsdText(amount);
        expect(text).toMatch(/^(0|-?([1-9]\d*|0)(\.\d{0,5}[1-9])?)$/);
        expect(decimalTextToMicros(text)).toBe(amount === 0 ? 0 : amount);
        if (Math.abs(amount) < 1e15) expect(usdToMicros(JSON.parse(text))).toBe(amount === 0 ? 0 : amount);
      }),
      { numRuns: 5_000 },
    );
  });
});

test.each([
  [250_000, '0.25'],
  [-1_000_000_000, '-1000'],
  [1, '0.000001'],
  [-1, '-0.000001'],
  [0, '0'],
  [-0, '0'],
  [5_000, '0.005'],
  [1_000_001, '1.000001'],
  [MAX_MICROS, '9000000000'],
  [MAX_MICROS - 1, '8999999999.999999'],
  [Number.MAX_SAFE_INTEGER, '9007199254.740991'],
])('writes %d micro-USD as %s', (amount, text) => {
  expect(microsToUsdText(amount)).toBe(text);
});

describe('payouts', () => {
  test.each([
    [10_000, 0.5, 5_000],
    [10_000, 7.7, 77_000],
    [250_000, 38.5, 9_625_000],
    [250_000, 0, 0],
    [1, 0.5, undefined],
    [1, 1e-7, undefined],
    [3, 1 / 3, undefined],
    [250_000, 1e308, undefined],
    [250_000, 5e-324, undefined],
    [250_000, Number.POSITIVE_INFINITY, undefined],
    [250_000, Number.NaN, undefined],
    [1_000_000, 9e9, MAX_MICROS],
    [1_000_001, 9e9, undefined],
  ])(
    'computes the payout for a denomination of %d micro-USD × a multiplier of %d as %s',
    (denomination, multiplier, expected) => {
      expect(payoutMicros(denomination, multiplier)).toBe(expected);
    },
  );

  test('computes a payout as the exact decimal product of the denomination and the multiplier', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 1e9 }),
        fc.integer({ min: 0, max: 1e9 }),
        fc.integer({ min: 0, max: 8 }),
        (denomination, digits, decimals) => {
          const multiplier = Number(`${digits}e-${decimals}`);
          const expected = oracleMicros(BigInt(denomination) * BigInt(digits), -decimals - 6);
          expect(payoutMicros(denomination, multiplier)).toBe(expected);
        },
      ),
      { numRuns: 5_000 },
    );
  });
});

describe('exact decimals', () => {
  test('converts a finite number to its shortest round-trip decimal and back', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        const { digits, exponent } = decimalOf(value);
        expect(Number(`${digits}e${exponent}`)).toBe(value === 0 ? 0 : value);
        expect(decimalToNumber({ digits, exponent })).toBe(value === 0 ? 0 : value);
      }),
    );
    expect(() => decimalOf(Number.NaN)).toThrow(RangeError);
    expect(() => decimalOf(Number.NEGATIVE_INFINITY)).toThrow(RangeError);
  });

  test('adds decimals without rounding, so ten tenths are exactly one', () => {
    const sum = sumDecimals(new Array(10).fill(decimalOf(0.1)));
    expect(isWithin(sum, decimalOf(1), decimalOf(0))).toBe(true);
    expect(toCommonExponent([decimalOf(0.25), decimalOf(3)])).toEqual({ digits: [25n, 300n], exponent: -2 });
  });

  test('applies a tolerance exactly to its last digit', () => {
    const tolerance = decimalOf(0.000001);
    expect(isWithin(decimalOf(1.000001), decimalOf(1), tolerance)).toBe(true);
    expect(isWithin(decimalOf(0.999999), decimalOf(1), tolerance)).toBe(true);
    expect(isWithin(decimalOf(1.0000010000000001), decimalOf(1), tolerance)).toBe(false);
  });
});
