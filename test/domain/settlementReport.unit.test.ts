/**
 * Tests the arithmetic of a settlement report: amounts are exact or refused, returns are rounded half up,
 * days are calendar days.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isDay } from '../../src/domain/days.js';
import { exactJson, jsonUsd, parseExactJson } from '../../src/domain/exactJson.js';
import { poolRtp } from '../../src/domain/games/prizeTable.js';
import { rtpOf } from '../../src/domain/rtp.js';
import { composeReport, seal } from '../../src/domain/settlement.js';
import { hashOf, microsOf } from '../support/settlement.js';

const EXACT_MICROS = 2n ** 33n * 1_000_000n;

test('writes amounts in JSON exactly to the micro-USD, whatever their size', () => {
  const amount = fc.bigInt({ min: -EXACT_MICROS, max: EXACT_MICROS });
  fc.assert(fc.property(amount, (micros) => typeof jsonUsd(micros) === 'number'));
  const any = fc.bigInt({ min: -(2n ** 90n), max: 2n ** 90n });
  fc.assert(fc.property(amount, (micros) => microsOf(exactJson(jsonUsd(micros))) === micros));
  fc.assert(fc.property(any, (micros) => microsOf(exactJson(jsonUsd(micros))) === micros));
});

test('reads JSON with exact numbers back exactly as it was written', () => {
  const amount = fc.bigInt({ min: -(2n ** 90n), max: 2n ** 90n });
  const text = fc.string({ unit: 'grapheme' }).filter((each) => !each.includes('\u0000'));
  fc.assert(
    fc.property(amount, text, fc.double({ noNaN: true, noDefaultInfinity: true }), (micros, name, ratio) => {
      const json = exactJson({ [name]: [jsonUsd(micros), name, ratio, null, true], text: `"-1.5,${name}"` });
      return exactJson(parseExactJson(json)) === json;
    }),
  );
});

describe('the return in a settlement report', () => {
  test.each([
    [1n, 0n, 0],
    [3n, 1n, 0.333333],
    [3n, 2n, 0.666667],
    [2_000_000n, 1n, 0.000001],
    [2_000_001n, 1n, 0],
    [2_000_000n, 1_000_001n, 0.500001],
    [250_000n, 750_000n, 3],
    [10n ** 15n, 999_999_499_999_999n, 0.999999],
    [10n ** 15n, 999_999_500_000_000n, 1],
    [1n, 10n ** 15n, 1e15],
  ])('rounds the return for wagers of %s and payouts of %s half up to 6 decimals', (wagered, paid, rtp) => {
    expect(rtpOf(wagered, paid)).toBe(rtp);
  });

  test('a settlement report has no return if nothing was wagered, and the return of the whole pool for a raffle', () => {
    expect(rtpOf(0n, 0n)).toBeNull();
    const prize = { prizeName: 'Car', prizeTier: 6, valueMicros: 10 ** 15, count: 1_000_000 };
    expect(poolRtp({ ticketPriceMicros: 1_000_000, poolSize: 1_000_000, prizes: [prize] })).toBe(1e9);
  });
});

test('accepts only settlement days that exist in the calendar', () => {
  for (const day of ['2024-02-29', '2000-02-29', '0001-01-01', '9999-12-31', '2026-11-21']) {
    expect(isDay(day), day).toBe(true);
  }
  for (const day of [
    '2023-02-29',
    '1900-02-29',
    '2026-04-31',
    '2026-00-01',
    '2026-01-00',
    '0000-12-31',
    '',
  ]) {
    expect(isDay(day), day).toBe(false);
  }
});

test('seals a settlement report with the SHA-256 of its canonical form, whatever names it contains', () => {
  const names = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 });
  const micros = fc.bigInt({ min: 0n, max: 10n ** 13n });
  fc.assert(
    fc.property(names, names, micros, micros, (configName, displayName, wageredMicros, paidMicros) => {
      const game = {
        gameConfigId: 1,
        configName,
        displayName,
        gameType: 'slot',
        certifiedRtp: 0.1 + 0.2,
        spins: 7n,
        wageredMicros,
        paidMicros,
        communityBonusMicros: 0n,
      };
      const report = composeReport(
        {
          reportDate: '2026-01-01',
          revision: 1,
          ledgerFrom: '1',
          ledgerTo: '2',
          previousHash: null,
          generatedAt: '2026-01-02T02:00:00.000Z',
        },
        { games: [game], adjustmentsMicros: -paidMicros, open: { rounds: 1n, wageredMicros } },
      );
      const { text, integrityHash } = seal(report);
      expect(JSON.parse(text)).toEqual(report);
      // JSON.stringify writes no minus before zero, so the text must not have one either.
      expect(text).not.toContain('-0,');
      expect(integrityHash).toBe(hashOf(JSON.parse(text) as Record<string, unknown>));
      expect(microsOf(report.ggrUsd)).toBe(wageredMicros - paidMicros);
    }),
  );
});
