/** Metrics of a front end, read at each scrape. */

import { CONNECTION_REFUSALS } from '../../api/server/connections.js';
import type { HttpServer } from '../../api/server/httpServer.js';
import type { ServedVersion } from '../../api/server/servedVersion.js';
import type { CellClient } from '../../engine/cells/cellClient.js';
import type { RequestIds } from '../../engine/requestIds/requestIds.js';
import type { Metrics } from './metrics.js';

type KnownIds = Pick<RequestIds, 'ids' | 'bytes' | 'bytesNeeded' | 'bytesMax' | 'oldestMs' | 'lookUps'>;

export function registerFrontEndMetrics(
  metrics: Metrics,
  server: Pick<HttpServer, 'open' | 'connections'>,
  cells: Pick<CellClient, 'pending' | 'held'>,
  versions: readonly Pick<ServedVersion, 'name' | 'requestsByPhase'>[],
  requestIds: KnownIds,
): void {
  metrics.gauge(
    'spindle_http_open_requests',
    'Number of requests that are not answered yet',
    () => server.open,
  );
  const { connections } = server;
  metrics.gauge('spindle_http_connections', 'Number of open connections to the API', () => connections.open);
  metrics.counters(
    'spindle_http_connections_refused_total',
    'Connections that were closed, by reason: too many connections (total, address), too many requests on one connection (pipeline), or unread responses (unread)',
    () => CONNECTION_REFUSALS.map((reason) => ({ labels: { reason }, value: connections.refused[reason] })),
  );
  registerRequestIds(metrics, requestIds);
  metrics.counters(
    'spindle_partner_requests_total',
    'Requests with the key of a partner, for the ten partners with the most requests and the ten with the most errors; all other partners together',
    () => metrics.partners.samples('requests'),
  );
  metrics.counters(
    'spindle_partner_errors_total',
    'Error responses to requests with the key of a partner, for the same partners',
    () => metrics.partners.samples('errors'),
  );
  metrics.gauge(
    'spindle_batch_pending',
    'Number of commands to cells that are not answered yet',
    () => cells.pending,
  );
  metrics.counters(
    'spindle_api_requests_total',
    'Requests of a version of the partner API, by its phase: active, deprecated, last30days, sunset',
    () =>
      versions.flatMap((version) =>
        [...version.requestsByPhase()].map(([phase, value]) => ({
          labels: { version: version.name, phase },
          value,
        })),
      ),
  );
  metrics.gaugeBy(
    'spindle_batch_requests',
    'Number of requests that wait for a batch, are in a batch, or wait for the ledger',
    'state',
    async () => {
      const { waiting, underWay, parked } = cells.held;
      return [
        ['waiting', waiting],
        ['under-way', underWay],
        ['for-ledger', parked],
      ];
    },
  );
}

function registerRequestIds(metrics: Metrics, requestIds: KnownIds): void {
  metrics.gauge(
    'spindle_request_filter_bytes',
    'Size of the filters of request ids that Redis has released, in bytes',
    () => requestIds.bytes,
  );
  metrics.gauge(
    'spindle_request_filter_bytes_needed',
    'Size of the filters if they are as coarse as at the start of a front end, in bytes',
    () => requestIds.bytesNeeded,
  );
  metrics.gauge(
    'spindle_request_filter_bytes_max',
    'Maximum size of the filters, in bytes (REQUEST_FILTERS_MAX_MB)',
    () => requestIds.bytesMax,
  );
  metrics.gauge(
    'spindle_request_ids',
    'Number of request ids that Redis has released and Postgres keeps',
    () => requestIds.ids,
  );
  metrics.gauge('spindle_request_ids_oldest_seconds', 'Age of the oldest kept request id, in seconds', () =>
    requestIds.oldestMs === undefined ? 0 : Math.max(0, (Date.now() - requestIds.oldestMs) / 1000),
  );
  metrics.counters(
    'spindle_request_lookups_total',
    'Request ids looked up in the ledger, by result: bound (found), fresh (not found), refused (the look-up was impossible)',
    () => Object.entries(requestIds.lookUps).map(([result, value]) => ({ labels: { result }, value })),
  );
}
