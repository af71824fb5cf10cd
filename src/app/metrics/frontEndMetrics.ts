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
  metrics.gauge('spindle_http_open_requests', 'Requests that are not answered yet', () => server.open);
  const { connections } = server;
  metrics.gauge('spindle_http_connections', 'Connections to the API that are open', () => connections.open);
  metrics.counters(
    'spindle_http_connections_refused_total',
    'Connections closed because there were too many (total, address), too many requests on them (pipeline) or answers unread',
    () => CONNECTION_REFUSALS.map((reason) => ({ labels: { reason }, value: connections.refused[reason] })),
  );
  registerRequestIds(metrics, requestIds);
  metrics.counters(
    'spindle_partner_requests_total',
    'Requests with the key of a partner: the ten partners with the most and the ten with the most errors, the others together',
    () => metrics.partners.samples('requests'),
  );
  metrics.counters(
    'spindle_partner_errors_total',
    'Error answers to requests with the key of a partner, by the same partners',
    () => metrics.partners.samples('errors'),
  );
  metrics.gauge('spindle_batch_pending', 'Commands to cells that are not answered yet', () => cells.pending);
  metrics.counters(
    'spindle_api_requests_total',
    'Requests of a version of the partner API, by the phase of its life: active, deprecated, last30days, sunset',
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
    'Requests that wait for a batch, are in one, or wait for the ledger',
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
    'Filters of request ids that Redis holds no more',
    () => requestIds.bytes,
  );
  metrics.gauge(
    'spindle_request_filter_bytes_needed',
    'What the filters take when they are as coarse as a front end starts with',
    () => requestIds.bytesNeeded,
  );
  metrics.gauge(
    'spindle_request_filter_bytes_max',
    'What the filters may take (REQUEST_FILTERS_MAX_MB)',
    () => requestIds.bytesMax,
  );
  metrics.gauge(
    'spindle_request_ids',
    'Request ids that Redis holds no more and Postgres keeps',
    () => requestIds.ids,
  );
  metrics.gauge('spindle_request_ids_oldest_seconds', 'Age of the oldest request id that is kept', () =>
    requestIds.oldestMs === undefined ? 0 : Math.max(0, (Date.now() - requestIds.oldestMs) / 1000),
  );
  metrics.counters(
    'spindle_request_lookups_total',
    'Request ids that the ledger was asked for: it has them (bound), a filter was wrong (fresh), it could not be asked (refused)',
    () => Object.entries(requestIds.lookUps).map(([result, value]) => ({ labels: { result }, value })),
  );
}
