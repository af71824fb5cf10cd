/** Tests that no cache may store the answers of the operator API and answers that show a key or a secret. */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';

const { service, partner } = world({}, { partner: { environment: 'sandbox' } });

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
