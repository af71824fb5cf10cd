import { expect, test } from 'vitest';
import { PartnerTraffic } from '../../src/app/metrics/partnerTraffic.js';

const MINUTE_MS = 60_000;
const requestsOf = (traffic: PartnerTraffic, nowMs: number): Map<unknown, number> =>
  new Map(traffic.samples('requests', nowMs).map(({ labels, value }) => [labels.partner, value]));
const count = (traffic: PartnerTraffic, partnerId: number, requests: number, errors = 0): void => {
  for (let i = 0; i < requests; i++) traffic.count(partnerId, i < errors);
};
const sum = (series: Map<unknown, number>): number =>
  [...series.values()].reduce((all, each) => all + each, 0);

test('shows time series for ten partners by requests and ten by errors, and one time series for all other partners', () => {
  const traffic = new PartnerTraffic();
  // The test data: the more requests a partner makes, the fewer of them fail.
  for (let id = 1; id <= 100; id++) count(traffic, id, 100 + id, 101 - id);
  const series = requestsOf(traffic, 0);
  expect(series.size).toBe(21);
  for (let id = 1; id <= 10; id++)
    expect([series.get(id), series.get(101 - id)]).toEqual([100 + id, 201 - id]);
  expect(sum(series)).toBe(100 * 100 + 5050);
  expect(traffic.samples('errors', 0).find(({ labels }) => labels.partner === 1)?.value).toBe(100);
  expect(traffic.figures()).toHaveLength(21);
  expect(traffic.figures().at(-1)).toEqual({ partnerId: null, requests: 80 * 150.5, errors: 80 * 50.5 });
});

test('counts each request permanently in one time series, and no time series falls while partners change ranks', () => {
  const traffic = new PartnerTraffic();
  let all = 0;
  let before = requestsOf(traffic, 0);
  for (let minute = 1; minute <= 40; minute++) {
    // Twelve other partners are busy in each minute.
    for (let i = 0; i < 12; i++) count(traffic, ((minute * 12 + i) % 50) + 1, 5 + i);
    all += 12 * 5 + 66;
    const now = requestsOf(traffic, minute * MINUTE_MS);
    expect(now.size).toBeLessThanOrEqual(11);
    // The time series of partners that are no longer among the busiest have ended.
    for (const [partner, value] of now) expect(value).toBeGreaterThanOrEqual(before.get(partner) ?? 0);
    expect(now.get('other')).toBeLessThanOrEqual(all);
    before = now;
  }
  expect(before.get('other')).toBeGreaterThan(0);
});

test('starts the time series of a partner that becomes busy at 0 and counts only its later requests', () => {
  const traffic = new PartnerTraffic();
  for (let id = 1; id <= 10; id++) count(traffic, id, 10);
  requestsOf(traffic, 0);
  count(traffic, 11, 100);
  expect(requestsOf(traffic, MINUTE_MS - 1).has(11)).toBe(false);
  const ranked = requestsOf(traffic, MINUTE_MS);
  expect([ranked.get(11), ranked.get('other')]).toEqual([0, 100]);
  count(traffic, 11, 7);
  const after = requestsOf(traffic, MINUTE_MS + 1);
  expect([after.get(11), after.get('other')]).toEqual([7, 100]);
});
