import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type BindingTime, BindingTimes } from '../../src/domain/bindingTimes.js';

const times = (...each: readonly [sinceMs: number, seconds: number][]): BindingTimes =>
  new BindingTimes(each.map(([sinceMs, seconds]) => ({ sinceMs, seconds })));

test('applies a shortened binding time only to later request ids, and a lengthened one also to ids that still bind', () => {
  const lowered = times([0, 10], [100_000, 3]);
  expect([99_999, 100_000].map((ms) => lowered.untilMs(ms) - ms)).toEqual([10_000, 3000]);
  const raised = times([0, 3], [100_000, 10]);
  expect([97_000, 97_001, 100_000].map((ms) => raised.untilMs(ms) - ms)).toEqual([3000, 10_000, 10_000]);
  // Two ranges of ids still bind: ids from before the reduction of the binding time, and the newest ids.
  expect(lowered.boundAt(104_000)).toEqual([
    { fromMs: 94_001, beforeMs: 100_000 },
    { fromMs: 101_001, beforeMs: Number.MAX_SAFE_INTEGER },
  ]);
  expect(lowered.allBoundFromMs(104_000)).toBe(101_001);
  expect(lowered.allBoundFromMs(101_000)).toBe(91_001);
});

const anyTimes = fc
  .uniqueArray(fc.record({ sinceMs: fc.nat(5000), seconds: fc.integer({ min: 1, max: 4 }) }), {
    minLength: 1,
    maxLength: 6,
    selector: ({ sinceMs }) => sinceMs,
  })
  .map((each): BindingTime[] => [...each].sort((a, b) => a.sinceMs - b.sinceMs));

test('keeps bound request ids, run contents and stored settings consistent for any history of binding times', () => {
  fc.assert(
    fc.property(anyTimes, fc.nat(12_000), fc.nat(6000), fc.nat(3000), (set, nowMs, fromMs, length) => {
      const all = new BindingTimes(set);
      const moments = Array.from({ length: 60 }, (_, i) => i * 203);
      const spans = all.boundAt(nowMs);
      const kept = new BindingTimes(all.since(nowMs));
      const found = moments.map((ms) => [
        spans.some((span) => ms >= span.fromMs && ms < span.beforeMs),
        kept.untilMs(ms) > nowMs,
        all.untilMs(ms) <= ms + all.longestMs,
        ms < all.allBoundFromMs(nowMs) || all.untilMs(ms) > nowMs,
      ]);
      const expected = moments.map((ms) => [all.untilMs(ms) > nowMs, all.untilMs(ms) > nowMs, true, true]);
      expect(found).toEqual(expected);
      const span = { fromMs, beforeMs: fromMs + length + 1 };
      const within = Array.from({ length: length + 1 }, (_, i) => all.untilMs(fromMs + i));
      expect(all.untilMsOf(span)).toBe(Math.max(...within));
    }),
    { numRuns: 200 },
  );
});
