/**
 * Tests HEAD requests, whose answers have no body that a client must read. Many HEAD requests from one client
 * must not affect other clients.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import { HTTP_SERVER } from '../../support/httpServer.js';
import { plainRequest, portOf, Wire } from '../../support/load.js';
import { startService } from '../../support/service.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

let stores: TestStores;

beforeAll(async () => {
  stores = await freshStores();
});
afterAll(() => stores.drop());

test.runIf(HTTP_SERVER !== 'node')(
  "keeps other clients' connections open while one client floods the service with HEAD requests",
  async () => {
    const service = await startService(stores, { TRUST_PROXY: '1' });
    try {
      const port = portOf(service.base);
      const head = (client: string) =>
        plainRequest('HEAD', '/healthz', '').replace('X-API-Key: ', `X-Forwarded-For: ${client}`);
      /** Sends HEAD requests, each on a new connection, and returns how many got no answer. */
      const failed = async (client: string, count: number): Promise<number> => {
        const asked = Array.from({ length: count }, async () => {
          const wire = await Wire.open(port);
          const isAnswered = await wire.ask(head(client), true).then(
            ({ status }) => status === 200,
            () => false,
          );
          wire.close();
          return isAnswered;
        });
        return (await Promise.all(asked)).filter((isAnswered) => !isAnswered).length;
      };
      // If a new second begins during the flood, no request is refused, so the flood is repeated.
      await until(async () => {
        const [flood, neighbours] = await Promise.all([
          failed('2001:db8:1::1', 150),
          failed('2001:db8:2::1', 40),
        ]);
        expect(neighbours).toBe(0);
        return flood > 0;
      }, 'the flood is refused');
    } finally {
      await service.stop();
    }
  },
);
