import { expect, test } from 'vitest';
import { fourierPower } from '../../src/domain/rng/fourier.js';
import {
  chiSquareP,
  goodnessP,
  incompleteGamma,
  logGamma,
  normalP,
  poissonTailP,
} from '../../src/domain/rng/pValues.js';

test('computes the gamma functions as published tables list them', () => {
  expect(logGamma(0.5)).toBeCloseTo(Math.log(Math.sqrt(Math.PI)), 13);
  expect(logGamma(10)).toBeCloseTo(Math.log(362_880), 12);
  // Known values of the incomplete gamma function Q: Q(1, x) = e^−x and Q(1/2, x) = erfc(√x).
  // Abramowitz and Stegun, table 7.1: erf(1) = 0.8427007929.
  expect(incompleteGamma(1, 2.5).q).toBeCloseTo(Math.exp(-2.5), 14);
  expect(incompleteGamma(0.5, 1).p).toBeCloseTo(0.8427007929, 10);
});

test.each([
  // Percentage points of chi-square from the NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.4.
  [3.841, 1, 0.05],
  [6.635, 1, 0.01],
  [18.307, 10, 0.05],
  [23.209, 10, 0.01],
  [124.342, 100, 0.05],
  [149.449, 100, 0.001],
])(
  'computes that chi-square above %d with %d degrees of freedom has the probability %d',
  (statistic, freedom, tail) => {
    expect(incompleteGamma(freedom / 2, statistic / 2).q).toBeCloseTo(tail, 4);
    expect(chiSquareP(statistic, freedom)).toBeCloseTo(2 * tail, 4);
  },
);

test('computes chi-square with very many degrees of freedom like the normal distribution', () => {
  const freedom = 65_535;
  for (const z of [-3, -1.5, 0.5, 2.5758]) {
    // Approximation of Wilson and Hilferty, 1931.
    const statistic = freedom * (1 - 2 / (9 * freedom) + z * Math.sqrt(2 / (9 * freedom))) ** 3;
    expect(chiSquareP(statistic, freedom)).toBeCloseTo(normalP(z), 5);
  }
  expect(normalP(1.959963984540054)).toBeCloseTo(0.05, 12);
});

test('reports too good a fit as suspect as well as a bad one, and an impossible result with p = 0', () => {
  expect(goodnessP([2500, 2500, 2500, 2500], [0.25, 0.25, 0.25, 0.25])).toBeLessThan(1e-6);
  expect(goodnessP([500, 480, 1], [0.5, 0.5, 0])).toBe(0);
  expect(goodnessP([1000], [1])).toBeUndefined();
  expect(poissonTailP(0, 1e-9)).toBe(1);
  expect(poissonTailP(2, 0.5)).toBeCloseTo(1 - Math.exp(-0.5) * 1.5, 12);
});

test('computes the power of a cosine at its frequency', () => {
  const power = fourierPower(
    Float64Array.from({ length: 64 }, (_, i) => Math.cos((2 * Math.PI * 5 * i) / 64)),
  );
  expect([...power].map((each) => Math.round(each))).toEqual(
    Array.from({ length: 33 }, (_, k) => (k === 5 ? 1024 : 0)),
  );
});
