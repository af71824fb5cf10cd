/**
 * Tests HEAD requests, whose answers have no body that a client must read, and which answers a cache may
 * store. Many HEAD requests from one client must not affect other clients.
 */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';
import { HTTP_SERVER } from '../../support/httpServer.js';
import { plainRequest, portOf, Wire } from '../../support/load.js';
import { startService } from '../../support/service.js';
import { parSheet } from '../../support/sheets.js';
import { until } from '../../support/wait.js';

const { stores, service, partner } = world({}, { partner: { environment: 'sandbox' } });

test('answers HEAD with the head of the answer to GET, wherever GET exists', async () => {
  await service.newGame(partner.key, parSheet('classic-3-reel'));
  const wire = await Wire.open(portOf(service.base));
  const ask = (method: string, path: string, key: string, more = '') =>
    wire.ask(plainRequest(method, path, key).replace('\r\n\r\n', `\r\n${more}\r\n`), method === 'HEAD');
  for (const [path, key, status] of [
    ['/api/partner/v1/games', partner.key, 200],
    ['/api/partner/v1/players/nobody', partner.key, 404],
    ['/api/partner/v1/games', 'ks_wrong', 401],
    ['/api/partner/v1/openapi.json', '', 200],
    ['/api/operator/v1/partners', OPERATOR_KEY, 200],
    [`/api/operator/v1/partners/${partner.partnerId}`, OPERATOR_KEY, 200],
    ['/healthz', '', 200],
    ['/nothing', '', 404],
  ] as const) {
    const head = await ask('HEAD', path, key);
    const got = await ask('GET', path, key);
    expect([path, head.status, head.text]).toEqual([path, status, '']);
    expect(got.status).toBe(status);
    for (const name of ['content-type', 'content-length', 'cache-control', 'x-ratelimit-limit'])
      expect([path, name, head.headers.get(name)]).toEqual([path, name, got.headers.get(name)]);
  }
  // The length of a list as CSV is not known before the list is read.
  const csv = await ask('HEAD', '/api/partner/v1/spins', partner.key, 'Accept: text/csv\r\n');
  expect([csv.status, csv.headers.get('content-type'), csv.text]).toEqual([
    200,
    'text/csv; charset=utf-8; header=present',
    '',
  ]);
  const wrong = await ask('HEAD', '/api/partner/v1/spins?from=x', partner.key, 'Accept: text/csv\r\n');
  expect(wrong.status).toBe(400);
  // HEAD exists only where GET exists.
  expect((await ask('HEAD', '/api/partner/v1/spin', partner.key)).status).toBe(404);
  expect((await ask('GET', '/healthz', '')).status).toBe(200);
  wire.close();
});

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

const OPERATOR = '/api/operator/v1';
const PARTNER = '/api/partner/v1';
const HOOK = { url: 'http://localhost:1/hook', events: ['spin.large_win'] };

/** Returns the status, Cache-Control and X-Content-Type-Options of an answer. */
async function kept(method: string, path: string, key: string | undefined, body?: object) {
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const { status, headers } = await service.request(method, path, { ...(key && { key }), ...text });
  return [status, headers.get('cache-control'), headers.get('x-content-type-options')];
}

test('forbids caches to store any answer of the operator API, including errors', async () => {
  const id = partner.partnerId;
  for (const [status, method, path, key, body] of [
    [200, 'GET', `${OPERATOR}/partners`, OPERATOR_KEY],
    [201, 'POST', `${OPERATOR}/partners/${id}/keys`, OPERATOR_KEY, {}],
    [400, 'POST', `${OPERATOR}/partners`, OPERATOR_KEY, {}],
    [401, 'GET', `${OPERATOR}/partners`, undefined],
    [404, 'GET', `${OPERATOR}/nothing`, OPERATOR_KEY],
    [404, 'GET', OPERATOR, OPERATOR_KEY],
  ] as const)
    expect(await kept(method, path, key, body), path).toEqual([status, 'no-store', 'nosniff']);
});

test("forbids caches to store answers that show a webhook's signing secret", async () => {
  const registered = await kept('POST', `${PARTNER}/webhooks`, partner.key, HOOK);
  expect(registered).toEqual([201, 'no-store', 'nosniff']);
  const { body } = await service.request('GET', `${PARTNER}/webhooks`, { key: partner.key });
  const { id } = (body as { webhooks: { id: number }[] }).webhooks[0]!;
  const rotated = await kept('POST', `${PARTNER}/webhooks/${id}/rotate-secret`, partner.key);
  expect(rotated).toEqual([200, 'no-store', 'nosniff']);
});
