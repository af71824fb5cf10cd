/**
 * SQL of the versions of the partner API: announcements of a version's end (sunset), reminders of the sunset,
 * and which partners still use a version.
 */

import {
  type ApiVersionEnd,
  type ApiVersionUse as ApiVersionUseSchema,
  announcementFaults,
  SUNSET_REMINDER_DAYS,
} from '../../domain/apiVersion.js';
import type { Fault } from '../../domain/errors.js';
import type { WithDates } from '../../domain/schema.js';
import type { NewEvent } from '../../domain/webhook.js';
import { because, withChange, writeAuditEntry } from '../../postgres/auditLog.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { recordEvents } from '../../postgres/partnerEvents.js';
import { arrayOf, raw, safe } from '../../postgres/statements.js';

export interface ApiVersionRow extends ApiVersionEnd {
  readonly version: string;
}

/** Columns of {@link ApiVersionRow}. */
export const API_VERSION_COLUMNS = raw('version, deprecated_at, sunset_at, successor, migration_url');

/** Values that are absent stay as they were announced before. */
export type Announcement = { readonly sunsetAt: Date } & Partial<ApiVersionEnd>;

/**
 * Records the reminders of sunsets that are due and not recorded yet. A reminder whose time had already
 * passed when the sunset was announced is skipped. If several reminders were missed, only the last one is
 * recorded.
 * @returns the number of webhook deliveries recorded
 */
export async function remindOfSunsets(sql: Sql, now: Date): Promise<number> {
  return sql.begin(async (tx) => {
    const rows = await tx<ApiVersionRow[]>`
      WITH recorded AS (
        INSERT INTO api_version_reminders (version, sunset_at, days, recorded_at)
        SELECT version, sunset_at, due.days, ${now}::timestamptz
        FROM api_versions v CROSS JOIN LATERAL (
          SELECT min(days) AS days FROM unnest(${arrayOf(SUNSET_REMINDER_DAYS)}::int[]) AS days
          WHERE v.sunset_at - days * interval '24 hours' <= ${now}::timestamptz
        ) due
        WHERE sunset_at > ${now}::timestamptz AND announced_at <= sunset_at - due.days * interval '24 hours'
        ON CONFLICT DO NOTHING
        RETURNING version
      )
      SELECT ${API_VERSION_COLUMNS} FROM recorded JOIN api_versions USING (version) ORDER BY version`;
    return notifyPartners(tx, rows, now);
  });
}

async function notifyPartners(tx: Transaction, ends: readonly ApiVersionRow[], now: Date): Promise<number> {
  if (ends.length === 0) return 0;
  const partners = await tx<{ partnerId: number }[]>`
    SELECT partner_id FROM partners WHERE is_active ORDER BY partner_id`;
  return recordEvents(
    tx,
    ends.flatMap(({ version, deprecatedAt, sunsetAt, successor, migrationUrl }) =>
      partners.map(
        ({ partnerId }): NewEvent => ({
          event: 'api.version.deprecated',
          partnerId,
          createdAt: now,
          data: {
            version,
            deprecatedAt: deprecatedAt.toISOString(),
            sunsetAt: sunsetAt.toISOString(),
            successor,
            migrationUrl,
          },
        }),
      ),
    ),
  );
}

export type ApiVersionUseRow = WithDates<typeof ApiVersionUseSchema, 'lastUsedAt'> & {
  readonly version: string;
};

/** Number of requests made with a key since its use was last recorded. */
export interface NewKeyUse {
  readonly keyId: number;
  readonly version: string;
  readonly requests: number;
  readonly lastUsedAt: Date;
}

export class ApiVersions {
  constructor(private readonly sql: Sql) {}

  /**
   * Announces the end of a version, or postpones it. The change of the version, the entry of the audit log
   * and the events for all partners are written in one transaction. Partners are notified of a new end, but
   * not of changed links.
   * @param noticeDays required notice, in days; undefined means six calendar months
   * @returns the announcement in force and the number of deliveries recorded, or the faults of the
   * announcement
   */
  async announceEnd(
    actor: string,
    version: string,
    announcement: Announcement,
    { now, noticeDays, reason }: { now: Date; noticeDays: number | undefined; reason?: string | undefined },
  ): Promise<{ row: ApiVersionRow; deliveries: number } | { faults: Fault[] }> {
    return withChange(this.sql, async (tx, changed) => {
      const [standing] = await tx<
        ApiVersionRow[]
      >`SELECT ${API_VERSION_COLUMNS} FROM api_versions WHERE version = ${version} FOR UPDATE`;
      const nothing = { deprecatedAt: now, successor: null, migrationUrl: null };
      const row: ApiVersionRow = { ...nothing, ...standing, ...announcement, version };
      const faults = announcementFaults(version, row, standing, now, noticeDays);
      if (faults.length > 0) return { faults };
      const isNewSunset = standing?.sunsetAt.getTime() !== row.sunsetAt.getTime();
      await tx`
        INSERT INTO api_versions AS v (version, deprecated_at, sunset_at, successor, migration_url, announced_at, changed)
        VALUES (${version}, ${row.deprecatedAt}, ${row.sunsetAt}, ${row.successor}, ${row.migrationUrl}, ${now}, ${changed})
        ON CONFLICT (version) DO UPDATE SET deprecated_at = excluded.deprecated_at, sunset_at = excluded.sunset_at,
          successor = excluded.successor, migration_url = excluded.migration_url, changed = excluded.changed,
          announced_at = CASE WHEN ${isNewSunset} THEN excluded.announced_at ELSE v.announced_at END`;
      const subject = `api-version:${version}`;
      await writeAuditEntry(tx, {
        actor,
        action: 'api-version.deprecate',
        subject,
        before: standing ?? null,
        after: { ...row, ...because(reason) },
      });
      return { row, deliveries: isNewSunset ? await notifyPartners(tx, [row], now) : 0 };
    });
  }

  async listEnds(): Promise<ApiVersionRow[]> {
    return this.sql<ApiVersionRow[]>`SELECT ${API_VERSION_COLUMNS} FROM api_versions ORDER BY version`;
  }

  /**
   * Lists which partners have used which version, the most recent use first.
   * @param now time of the query; only the requests of about the last 24 hours are counted
   */
  async listUses(now: Date): Promise<ApiVersionUseRow[]> {
    const rows = await this.sql<(Omit<ApiVersionUseRow, 'requests24h'> & { requests24h: bigint })[]>`
      SELECT version, partner_id, slug, max(last_used_at) AS last_used_at,
             coalesce(sum(requests) FILTER (WHERE hour > ${now}::timestamptz - interval '24 hours'), 0)::bigint AS requests_24h
      FROM api_version_uses JOIN partners USING (partner_id)
      GROUP BY version, partner_id, slug ORDER BY version, max(last_used_at) DESC, partner_id`;
    return rows.map((row) => ({ ...row, requests24h: safe(row.requests24h) }));
  }

  /** Records when keys were last used and how often, by API version. A recorded time never decreases. */
  async noteUses(uses: readonly NewKeyUse[]): Promise<void> {
    if (uses.length === 0) return;
    const rows = JSON.stringify(uses);
    await this.sql.begin(async (tx) => {
      await tx`
        UPDATE api_keys k SET last_used_at = greatest(k.last_used_at, u.at)
        FROM (
          SELECT "keyId" AS key_id, max("lastUsedAt") AS at
          FROM json_to_recordset(${rows}::json) AS u("keyId" int, "lastUsedAt" timestamptz) GROUP BY 1
        ) u
        WHERE k.key_id = u.key_id`;
      // Rows are locked in a fixed order, so that two processes that write at once can't deadlock.
      await tx`
        INSERT INTO api_version_uses AS a (version, partner_id, hour, requests, last_used_at)
        SELECT version, partner_id, date_bin('1 hour', "lastUsedAt", 'epoch'), sum(requests), max("lastUsedAt")
        FROM json_to_recordset(${rows}::json) AS u("keyId" int, version text, requests bigint, "lastUsedAt" timestamptz)
        JOIN api_keys k ON k.key_id = u."keyId"
        GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (version, partner_id, hour) DO UPDATE SET requests = a.requests + excluded.requests,
          last_used_at = greatest(a.last_used_at, excluded.last_used_at)`;
      // Counts of old hours are deleted, so that a partner's row never has the counts of much more than a
      // day.
      await tx`
        DELETE FROM api_version_uses a
        USING (
          SELECT version, partner_id, max("lastUsedAt") AS at
          FROM json_to_recordset(${rows}::json) AS u("keyId" int, version text, "lastUsedAt" timestamptz)
          JOIN api_keys k ON k.key_id = u."keyId" GROUP BY 1, 2
        ) u
        WHERE a.version = u.version AND a.partner_id = u.partner_id AND a.hour < u.at - interval '25 hours'`;
    });
  }
}
