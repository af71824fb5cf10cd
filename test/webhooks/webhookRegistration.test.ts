/** Tests which URLs the service accepts for webhooks: none may lead to its own machine or network. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Resolve } from '../../src/webhooks/allowedAddresses.js';
import { freshStores } from '../setup/freshStores.js';
import type { Answer, Client, TestPartner } from '../support/client.js';
import { startService } from '../support/service.js';
import type { TestStores } from '../support/stores.js';
import { ALLOWED, DISALLOWED, INVALID } from '../support/webhookUrls.js';

describe('webhook URLs at registration', () => {
  let stores: TestStores;
  let client: Client & { stop(): Promise<void> };
  let sandbox: TestPartner;
  let production: TestPartner;
  const names = new Map<string, string[]>();

  beforeAll(async () => {
    stores = await freshStores();
    const resolve: Resolve = async (name) => names.get(name) ?? ['93.184.216.34'];
    client = await startService(stores, {}, { resolve });
    sandbox = await client.newPartner();
    production = await client.newPartner({ environment: 'production' });
  });
  afterAll(async () => {
    await client.stop();
    await stores.drop();
  });

  const register = (partner: TestPartner, url: unknown): Promise<Answer> =>
    client.partner('POST', '/webhooks', partner.key, { url, events: ['spin.large_win'] });
  const refused = (errorCode: string) => ({
    status: 400,
    body: { status: 'error', errorCode, details: [{ path: '/url', message: expect.any(String) }] },
  });

  test('refuses each kind of forbidden or invalid webhook URL with its code, and registers nothing', async () => {
    for (const partner of [sandbox, production]) {
      for (const url of DISALLOWED)
        expect(await register(partner, url), url).toMatchObject(refused('KS-4217'));
      for (const url of INVALID) expect(await register(partner, url), url).toMatchObject(refused('KS-4106'));
      expect((await client.partner('GET', '/webhooks', partner.key)).body).toEqual({ webhooks: [] });
    }
  });

  test('registers each allowed webhook URL unchanged', async () => {
    for (const url of ALLOWED) {
      expect(await register(production, url), url).toMatchObject({ status: 201, body: { url } });
    }
    expect(await register(sandbox, 'http://localhost:9000/x')).toMatchObject({ status: 201 });
    expect(await register(production, 'http://localhost:9000/x')).toMatchObject(refused('KS-4217'));
  });

  test('refuses a webhook host name if it resolves to a private address', async () => {
    names.set('rebound.example.com', ['93.184.216.34', '10.0.0.7']);
    expect(await register(production, 'https://rebound.example.com/')).toMatchObject(refused('KS-4217'));
    names.set('rebound.example.com', ['93.184.216.34']);
    expect((await register(production, 'https://rebound.example.com/')).status).toBe(201);
  });
});
