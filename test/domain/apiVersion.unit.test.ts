/** Tests the life cycle of an API version (docs/contract.md §16). */
import { describe, expect, test } from 'vitest';
import {
  announcementFaults,
  earliestSunset,
  endHeaders,
  phaseOfVersion,
} from '../../src/domain/apiVersion.js';

const day = (text: string): Date => new Date(`${text}T12:00:00Z`);

test.each([
  ['2026-01-15', '2026-07-15'],
  ['2026-08-31', '2027-02-28'],
  ['2027-08-30', '2028-02-29'],
  ['2026-10-31', '2027-04-30'],
])(
  'computes the end of a notice period of six calendar months: given on %s, it ends on %s',
  (now, earliest) => {
    expect(earliestSunset(day(now), undefined)).toEqual(day(earliest));
  },
);

test('uses a configured number of days of notice instead of six months', () => {
  expect(earliestSunset(day('2026-08-31'), 2)).toEqual(day('2026-09-02'));
});

test('writes the headers of a deprecated API version as RFC 9745, RFC 8594 and RFC 8288 define them', () => {
  const end = { deprecatedAt: day('2026-11-22'), sunsetAt: day('2027-06-01') };
  expect(endHeaders({ ...end, successor: 'v2', migrationUrl: 'https://example.com/v2' })).toBe(
    'Deprecation: @1795348800\r\nSunset: Tue, 01 Jun 2027 12:00:00 GMT\r\n' +
      'Link: <https://example.com/v2>; rel="deprecation"; type="text/html", </api/partner/v2>; rel="successor-version"',
  );
  expect(endHeaders({ ...end, successor: null, migrationUrl: null })).not.toContain('Link');
});

describe('announcements of the sunset of an API version', () => {
  const now = day('2026-11-22');
  const wanted = { deprecatedAt: now, sunsetAt: day('2027-06-01'), successor: null, migrationUrl: null };
  const pathsOf = (...args: Parameters<typeof announcementFaults>): string[] =>
    announcementFaults(...args).map(({ path }) => path);

  test('accepts the announcement of a sunset with six months of notice', () => {
    expect(pathsOf('v1', wanted, undefined, now, undefined)).toEqual([]);
  });

  test('allows a sunset to move later, even on shorter notice, but never earlier', () => {
    const soon = day('2027-05-30');
    expect(pathsOf('v1', { ...wanted, sunsetAt: day('2027-06-02') }, wanted, soon, undefined)).toEqual([]);
    expect(pathsOf('v1', { ...wanted, sunsetAt: day('2027-05-31') }, wanted, soon, undefined)).toEqual([
      '/sunsetAt',
    ]);
  });

  test('reports all faults of an announcement of a sunset', () => {
    const wrong = {
      ...wanted,
      deprecatedAt: day('2026-11-21'),
      sunsetAt: day('2026-11-20'),
      successor: 'v1',
    };
    expect(pathsOf('v1', wrong, undefined, now, undefined)).toEqual([
      '/sunsetAt',
      '/deprecatedAt',
      '/deprecatedAt',
      '/successor',
    ]);
  });
});

test('counts requests by the phase of their API version: active, deprecated, last 30 days, sunset', () => {
  const end = {
    deprecatedAt: day('2026-11-22'),
    sunsetAt: day('2027-06-01'),
    successor: null,
    migrationUrl: null,
  };
  const phaseAt = (text: string) => phaseOfVersion(end, day(text).getTime());
  expect(phaseOfVersion(undefined, 0)).toBe('active');
  expect(['2027-05-01', '2027-05-02', '2027-05-31', '2027-06-01'].map(phaseAt)).toEqual([
    'deprecated',
    'last30days',
    'last30days',
    'sunset',
  ]);
});
