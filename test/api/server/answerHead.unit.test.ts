/**
 * Compares reused answer heads, which are overwritten for each answer with a rate limit window, with heads
 * built as text.
 */
import { describe, expect, test } from 'vitest';
import { headerLines, JSON_TYPE, type Window, WindowedHeads } from '../../../src/api/server/answerHead.js';
import type { Exchange } from '../../../src/api/server/exchange.js';

const TIME_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

describe('answer heads with a rate limit window', () => {
  test('writes the right header lines into a reused answer head, whatever the previous answer contained', () => {
    const heads = new WindowedHeads();
    const ids = ['0123456789-abcdef012345', 'ffffffffff-000000000000', 'short'];
    const versions = [undefined, { headers: '' }, { headers: '\r\nSunset: Sat, 02 Jan 2027 00:00:00 GMT' }];
    const remains = [1_000_000, 999_999, 100_000, 99_999, 10, 9, 1, 0, 0, 10, 4_000_000_000];
    let windows = 0;
    for (const policy of ['spin', 'api'])
      for (const limit of [60, 5_000_000_000])
        for (const version of versions)
          for (const nowMs of [TIME_MS, TIME_MS + 999, TIME_MS + 1000, TIME_MS + 54_999])
            for (const id of ids)
              for (const remaining of remains) {
                const exchange = { id, version } as unknown as Exchange;
                const window: Window = { policy, limit, remaining, nowMs };
                const lines = heads.lines(exchange, window).toString('latin1');
                expect(lines).toBe(headerLines(exchange, JSON_TYPE, window, '', ''));
                windows++;
              }
    expect(windows).toBe(2 * 2 * 3 * 4 * 3 * 11);
  });

  test('writes the right header lines for more different rate limits than it caches heads for', () => {
    const heads = new WindowedHeads();
    const exchange = { id: 'id', version: undefined } as unknown as Exchange;
    for (let round = 0; round < 2; round++)
      for (let limit = 1; limit <= 1000; limit++) {
        const window = { policy: 'spin', limit, remaining: limit - 1, nowMs: TIME_MS };
        expect(heads.lines(exchange, window).toString('latin1')).toBe(
          headerLines(exchange, JSON_TYPE, window, '', ''),
        );
      }
  });
});
