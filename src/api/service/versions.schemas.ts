/** Versions of the partner API: their end, and who still uses them. */
import { type Static, Type } from '#typebox';
import { AUDIT_REASON, choice, nullable, timestamp } from '../../domain/schema.js';

/** Nothing that could end a header line or the angle brackets of a Link. */
const MIGRATION_URL_PATTERN = '^https?://[!#-;=?-~]{1,2000}$';
const VERSION_PATTERN = '^v[1-9][0-9]{0,3}$';

export const DeprecateBody = Type.Object({
  sunsetAt: Type.String({ description: 'RFC 3339 time from which on the version answers 410' }),
  deprecatedAt: Type.Optional(Type.String({ description: 'RFC 3339 time, not in the past; now by default' })),
  successor: Type.Optional(
    nullable(Type.String({ pattern: VERSION_PATTERN, description: 'Version that takes its place' })),
  ),
  migrationUrl: Type.Optional(
    nullable(Type.String({ pattern: MIGRATION_URL_PATTERN, description: 'A page that says how to move' })),
  ),
  reason: Type.Optional(AUDIT_REASON),
});

export const ApiVersionStatus = choice(['ACTIVE', 'DEPRECATED', 'SUNSET'], 'SUNSET: it answers 410');

const versionMembers = {
  version: Type.String(),
  status: ApiVersionStatus,
  deprecatedAt: nullable(timestamp()),
  sunsetAt: nullable(timestamp()),
  successor: nullable(Type.String()),
  migrationUrl: nullable(Type.String()),
};

export const ApiVersion = Type.Object(versionMembers);

export const ApiVersionUse = Type.Object({
  partnerId: Type.Integer(),
  slug: Type.String(),
  lastUsedAt: timestamp(),
  requests24h: Type.Integer({ description: 'Requests of the last 24 hours, counted by whole hours' }),
});

export const ListedApiVersion = Type.Object({
  ...versionMembers,
  partners: Type.Array(ApiVersionUse, { description: 'Partners that have used it, the latest first' }),
});

export const ApiVersionList = Type.Object({ versions: Type.Array(ListedApiVersion) });

export type DeprecateBody = Static<typeof DeprecateBody>;
