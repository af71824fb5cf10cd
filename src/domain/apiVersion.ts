/**
 * Life cycle of a version of the partner API: the announcement of its sunset, the notice period, and the
 * response headers (docs/contract.md §16).
 */

import { Type } from '#typebox';
import { DAY_MS } from './days.js';
import type { Fault } from './errors.js';
import { timestamp } from './schema.js';

/** Versions of the partner API that the service offers, at `/api/partner/<version>`. */
export const API_VERSIONS = ['v1'] as const;

export interface ApiVersionEnd {
  /** Time from which the version should not be used for new integrations. */
  readonly deprecatedAt: Date;
  /** Time from which requests to the API version are answered with 410. */
  readonly sunsetAt: Date;
  /** API version that replaces this one, such as `v2`. */
  readonly successor: string | null;
  readonly migrationUrl: string | null;
}

export type ApiVersionStatus = 'ACTIVE' | 'DEPRECATED' | 'SUNSET';

/** Days before the sunset at which partners are reminded. */
export const SUNSET_REMINDER_DAYS: readonly number[] = [30, 7, 1];

const NOTICE_MONTHS = 6;
/** Length, in days, of the last phase before a sunset, which the metrics count separately. */
const ENDING_DAYS = 30;

export const pathOfVersion = (version: string): string => `/api/partner/${version}`;

export function statusOfVersion(end: ApiVersionEnd | undefined, nowMs: number): ApiVersionStatus {
  if (end === undefined) return 'ACTIVE';
  return end.sunsetAt.getTime() <= nowMs ? 'SUNSET' : 'DEPRECATED';
}

/** Phases in the life of an API version, by their names in the metrics. */
export const VERSION_PHASES = ['active', 'deprecated', 'last30days', 'sunset'] as const;
export type VersionPhase = (typeof VERSION_PHASES)[number];

export function phaseOfVersion(end: ApiVersionEnd | undefined, nowMs: number): VersionPhase {
  if (end === undefined) return 'active';
  const leftMs = end.sunsetAt.getTime() - nowMs;
  if (leftMs <= 0) return 'sunset';
  return leftMs <= ENDING_DAYS * DAY_MS ? 'last30days' : 'deprecated';
}

/**
 * Builds the header lines Deprecation (RFC 9745), Sunset (RFC 8594) and Link (RFC 8288). Each line except the
 * last ends with CRLF.
 */
export function endHeaders({ deprecatedAt, sunsetAt, successor, migrationUrl }: ApiVersionEnd): string {
  const links = [
    ...(migrationUrl === null ? [] : [`<${migrationUrl}>; rel="deprecation"; type="text/html"`]),
    ...(successor === null ? [] : [`<${pathOfVersion(successor)}>; rel="successor-version"`]),
  ];
  return [
    `Deprecation: @${Math.floor(deprecatedAt.getTime() / 1000)}`,
    `Sunset: ${sunsetAt.toUTCString()}`,
    ...(links.length === 0 ? [] : [`Link: ${links.join(', ')}`]),
  ].join('\r\n');
}

/**
 * Returns the earliest sunset for an announcement made now: after `noticeDays` days, or after six calendar
 * months if undefined.
 */
export function earliestSunset(now: Date, noticeDays: number | undefined): Date {
  if (noticeDays !== undefined) return new Date(now.getTime() + noticeDays * DAY_MS);
  const earliest = new Date(now);
  earliest.setUTCMonth(earliest.getUTCMonth() + NOTICE_MONTHS);
  // If the month does not have this day (such as February 30), Date moves into the next month. The last day
  // of the intended month is used instead.
  if (earliest.getUTCDate() !== now.getUTCDate()) earliest.setUTCDate(0);
  return earliest;
}

/**
 * @param standing the announcement in force; its sunset can only be postponed, because its notice has been
 * given
 * @param noticeDays required notice, in days; undefined means six calendar months
 */
export function announcementFaults(
  version: string,
  wanted: ApiVersionEnd,
  standing: ApiVersionEnd | undefined,
  now: Date,
  noticeDays: number | undefined,
): Fault[] {
  const faults: Fault[] = [];
  const { deprecatedAt, sunsetAt, successor } = wanted;
  if (standing === undefined) {
    const earliest = earliestSunset(now, noticeDays);
    if (sunsetAt < earliest)
      faults.push({ path: '/sunsetAt', message: `must not be before ${earliest.toISOString()}` });
  } else if (sunsetAt < standing.sunsetAt) {
    const message = `must not be before ${standing.sunsetAt.toISOString()}, because a sunset can only be moved later`;
    faults.push({ path: '/sunsetAt', message });
  }
  if (deprecatedAt < now && deprecatedAt.getTime() !== standing?.deprecatedAt.getTime())
    faults.push({ path: '/deprecatedAt', message: 'must not be in the past' });
  if (deprecatedAt > sunsetAt) faults.push({ path: '/deprecatedAt', message: 'must not be after sunsetAt' });
  if (successor === version) faults.push({ path: '/successor', message: 'must not be the version itself' });
  return faults;
}

export const ApiVersionUse = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  lastUsedAt: timestamp(),
  requests24h: Type.Integer({ description: 'Number of requests in the last 24 hours, counted by the hour' }),
});
