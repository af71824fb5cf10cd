/**
 * Handlers of versions of the partner API: announcement of their end, keys that still use them
 * (docs/contract.md §16), and the build of the service.
 */
import { API_VERSIONS, statusOfVersion } from '../../domain/apiVersion.js';
import { ApiError, ERRORS, type Fault, invalid } from '../../domain/errors.js';
import { NO_TIME, rfc3339Time } from '../../domain/rfc3339.js';
import type { ApiVersionRow } from '../../engine/catalog/apiVersions.store.js';
import { API_VERSION, PARTNER_VERSION } from '../contract/apis.js';
import { learn, type Route, route } from '../server/route.js';
import type { Services } from '../server/services.js';
import type { DeprecateBody } from './contract.js';
import * as contract from './contract.js';

const versionOf = (version: string, end: ApiVersionRow | undefined, nowMs: number) => ({
  version,
  status: statusOfVersion(end, nowMs),
  deprecatedAt: end?.deprecatedAt ?? null,
  sunsetAt: end?.sunsetAt ?? null,
  successor: end?.successor ?? null,
  migrationUrl: end?.migrationUrl ?? null,
});

function announcementOf({ sunsetAt, deprecatedAt, successor, migrationUrl }: DeprecateBody) {
  const faults: Fault[] = [];
  const time = (path: string, text: string): Date => {
    const date = rfc3339Time(text);
    if (date === undefined) faults.push({ path, message: NO_TIME });
    return date ?? new Date(Number.NaN);
  };
  const announcement = {
    sunsetAt: time('/sunsetAt', sunsetAt),
    ...(deprecatedAt === undefined ? {} : { deprecatedAt: time('/deprecatedAt', deprecatedAt) }),
    ...(successor === undefined ? {} : { successor }),
    ...(migrationUrl === undefined ? {} : { migrationUrl }),
  };
  if (faults.length > 0) throw invalid(faults);
  return announcement;
}

/** @param brand name of the service */
export const versionRoutes = (services: Services, brand: string): Route[] => [
  route(contract.getVersion, () => ({
    version: API_VERSION,
    apiVersion: PARTNER_VERSION,
    service: brand.toLowerCase(),
    requestIdBindsSeconds: services.spinRules.requestIdBindsSeconds,
    manifest: services.process.manifest(),
  })),
  route(contract.listApiVersions, async () => {
    const nowMs = services.process.now();
    const [ends, uses] = await Promise.all([
      services.store.apiVersions.listEnds(),
      services.store.apiVersions.listUses(new Date(nowMs)),
    ]);
    return {
      versions: API_VERSIONS.map((version) => ({
        ...versionOf(
          version,
          ends.find((end) => end.version === version),
          nowMs,
        ),
        partners: uses.filter((use) => use.version === version),
      })),
    };
  }),
  route(contract.deprecateApiVersion, async ({ actor, params, body }) => {
    const version = API_VERSIONS.find((name) => name === params.version);
    if (version === undefined) throw new ApiError(ERRORS.notFound);
    const announcement = announcementOf(body);
    const { noticeDays } = services.process;
    const now = new Date(services.process.now());
    const made = await services.store.apiVersions.announceEnd(actor, version, announcement, {
      now,
      noticeDays,
      reason: body.reason,
    });
    if ('faults' in made) throw invalid(made.faults);
    if (made.deliveries > 0) services.webhooks.recorded(made.deliveries);
    await learn(services.catalog);
    return versionOf(version, made.row, now.getTime());
  }),
];
