/**
 * Tests the counters of requests by client: once all counters are in use, the addresses of one network share
 * a counter.
 */
import { expect, test } from 'vitest';
import { ClientCounts } from '../../../src/api/server/clientCounts.js';

const CLIENTS_MAX = 10_000;
const HONEST = ['192.0.2.1', '2001:db8:1:2::/64', '2001:db8::/64', '::/64', '203.0.113.9'];

let nowMs = 0;
const counts = (windowSeconds = 60): ClientCounts => new ClientCounts(windowSeconds, () => nowMs);
const words = (place: number): string =>
  [place >>> 16, place & 0xffff].map((word) => word.toString(16)).join(':');

/** Counts every address of a flood, then each honest client for the first time. */
function flood(addresses: Iterable<string>): { flooders: Map<string, number>; honest: string[] } {
  const counted = counts();
  counted.count(HONEST[0]!);
  const flooders = new Map<string, number>();
  for (const address of addresses) {
    const { name, count } = counted.count(address);
    flooders.set(name, count);
  }
  expect(counted.count(HONEST[0]!).count, 'it was counted on its own before').toBe(2);
  return { flooders, honest: HONEST.map((client) => counted.count(client).name) };
}

function* many(total: number, address: (place: number) => string): Generator<string> {
  for (let place = 0; place < total; place++) yield address(place);
}

test.each([
  ['a /56', 56, (place: number) => `2a01:4f8:0:${(0x700 | (place & 0xff)).toString(16)}::/64`, ''],
  ['a /48', 48, (place: number) => `2a01:4f8:7:${(place & 0xffff).toString(16)}::/64`, '2a01:4f8:7::/48'],
  ['a /32', 32, (place: number) => `2a01:4f8:${(place & 0xffff).toString(16)}:7::/64`, '2a01:4f8::/32'],
  ['an IPv4 /16', 16, (place: number) => `100.64.${(place >> 8) & 255}.${place & 255}`, '100.64.0.0/16'],
])(
  'counts the addresses of %s together once the counters are full, and all other clients separately',
  (_what, _bits, address, shared) => {
    const { flooders, honest } = flood(many(65_536, address));
    expect(honest).toEqual(HONEST);
    expect(flooders.size).toBeLessThanOrEqual(CLIENTS_MAX + 1024);
    if (shared !== '') expect(flooders.get(shared)).toBeGreaterThan(50_000);
  },
);

test('counts every client address separately while there is room', () => {
  const counted = counts();
  for (const address of many(CLIENTS_MAX, (place) => `2001:db8:0:${place.toString(16)}::/64`))
    expect(counted.count(address)).toEqual({ name: address, count: 1 });
});

test('keeps separate counters for a crowded network if another network is more crowded', () => {
  const counted = counts();
  const crowd = [...many(300, (place) => `2001:db8:77:${place.toString(16)}::/64`)];
  for (const address of crowd) counted.count(address);
  for (const address of many(30_000, (place) => `2a01:4f8:7:${place.toString(16)}::/64`))
    counted.count(address);
  for (const address of crowd) expect(counted.count(address)).toEqual({ name: address, count: 2 });
});

test('holds a bounded number of client counters, however many addresses send requests', () => {
  const counted = counts();
  const names = new Set<string>();
  for (const address of many(100_000, (place) => `${words(place * 40_503)}::/64`))
    names.add(counted.count(address).name);
  expect(names.size).toBeLessThanOrEqual(CLIENTS_MAX + 1);
  expect(names).toContain('others');
});

test('starts all client counters anew in the next window', () => {
  const counted = counts(1);
  for (const address of many(20_000, (place) => `2001:db8:7:${place.toString(16)}::/64`))
    counted.count(address);
  expect(counted.count('2001:db8:7:ffff::/64').name).toBe('2001:db8:7::/48');
  nowMs += 1000;
  expect(counted.count('2001:db8:7:ffff::/64')).toEqual({ name: '2001:db8:7:ffff::/64', count: 1 });
});
