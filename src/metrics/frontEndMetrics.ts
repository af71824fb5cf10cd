/** What a front end says whenever it is scraped. */
import type { CellClient } from '../cells/cellClient.js';
import type { HttpServer } from '../http/server.js';
import type { Metrics } from './metrics.js';

export function registerFrontEndMetrics(
  metrics: Metrics,
  server: Pick<HttpServer, 'open'>,
  cells: Pick<CellClient, 'pending' | 'held'>,
): void {
  metrics.gauge('spindle_http_open_requests', 'Requests that are not answered yet', () => server.open);
  metrics.gauge('spindle_batch_pending', 'Commands to cells that are not answered yet', () => cells.pending);
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
