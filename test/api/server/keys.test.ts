/**
 * Tests API keys from issue to expiry or revocation (docs/contract.md §3), failed authentications, and
 * interface versions.
 */
import { createHash } from 'node:crypto';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshStores } from '../../setup/freshStores.js';
import { type Answer, type Client, OPERATOR_KEY, type TestPartner } from '../../support/client.js';
import { expectWithin } from '../../support/expectWithin.js';
import { raw } from '../../support/rawRequest.js';
import { constants, startService } from '../../support/service.js';
import { type StoreClock, storeClock } from '../../support/storeClock.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

interface Issued {
  keyId: number;
  apiKey: string;
  name: string | null;
  createdAt: string;
  expiresAt: string | null;
}

const FAILURE_LIMIT = 6;
/** Returns a new loopback address. No other test uses it for failed authentications. */
const elsewhere = (() => {
  let last = 1;
  return () => `127.0.0.${++last}`;
})();

let stores: TestStores;
let clock: StoreClock;
let client: Client & { stop(): Promise<void> };
/** A second front end on the same stores. */
let other: Client & { stop(): Promise<void> };
/** A front end with a low limit of failed authentications. */
let strict: Client & { stop(): Promise<void> };
let partner: TestPartner;

beforeAll(async () => {
  stores = await freshStores();
  clock = storeClock(stores.redisUrl);
  const patient = constants({ authFailureLimit: 1_000_000 });
  client = await startService(stores, patient);
  other = await startService(stores, { ...patient, ROLES: 'http' });
  strict = await startService(stores, { ...constants({ authFailureLimit: FAILURE_LIMIT }), ROLES: 'http' });
  partner = await client.newPartner();
});

afterAll(async () => {
  await Promise.all([strict.stop(), other.stop()]);
  await client.stop();
  clock.close();
  await stores.drop();
});

const version = (from: Client, key: string): Promise<Answer> => from.partner('GET', '/version', key);

async function issue(body: object = {}, partnerId = partner.partnerId): Promise<Issued> {
  const answer = await client.operator<Issued & Record<string, unknown>>(
    'POST',
    `/partners/${partnerId}/keys`,
    body,
  );
  expect(answer.status).toBe(201);
  return answer.body;
}

async function listed(keyId: number): Promise<Record<string, unknown> | undefined> {
  const answer = await client.operator<{ keys: Record<string, unknown>[] }>(
    'GET',
    `/partners/${partner.partnerId}/keys`,
  );
  return answer.body.keys.find((key) => key.keyId === keyId);
}

/**
 * Waits until a front end answers with this status. Fails if that takes longer than the second that the
 * contract promises.
 */
async function withinOneSecond(from: Client, key: string, status: number): Promise<Answer> {
  const started = performance.now();
  let answer = await version(from, key);
  await until(async () => {
    answer = answer.status === status ? answer : await version(from, key);
    return answer.status === status;
  }, `the answer is ${status}`);
  expectWithin(performance.now() - started, 1000);
  return answer;
}

const failed = (status: number, errorCode: string) => ({ status, body: { status: 'error', errorCode } });

describe('API keys', () => {
  test('issues an API key of `ks_` and 43 base64url characters, which every front end accepts at once', async () => {
    const issued = await issue({ name: 'web shop' });
    expect(issued).toEqual({
      keyId: expect.any(Number),
      apiKey: expect.stringMatching(/^ks_[A-Za-z0-9_-]{43}$/),
      prefix: issued.apiKey.slice(0, 9),
      name: 'web shop',
      createdAt: expect.any(String),
      expiresAt: null,
    });
    expect((await version(client, issued.apiKey)).status).toBe(200);
    expect((await version(other, issued.apiKey)).status).toBe(200);
    expect(await listed(issued.keyId)).toMatchObject({ name: 'web shop', status: 'active' });
  });

  test('shows an API key once and stores only its SHA-256', async () => {
    const { apiKey, keyId } = await issue();
    const list = await client.operator('GET', `/partners/${partner.partnerId}/keys`);
    const log = await client.operator('GET', '/audit-log?limit=100');
    const sql = postgres(stores.databaseUrl, { max: 1 });
    try {
      const [row] = await sql`SELECT * FROM api_keys WHERE key_id = ${keyId}`;
      expect(row?.key_hash).toEqual(createHash('sha256').update(apiKey).digest());
      expect(list.text + log.text + JSON.stringify(row)).not.toContain(apiKey.slice(3));
    } finally {
      await sql.end();
    }
  });

  test('answers KS-4001 without an API key, and KS-4002 to a key that was never issued', async () => {
    expect(await client.request('GET', '/api/partner/v1/version')).toMatchObject(failed(401, 'KS-4001'));
    expect(await client.request('GET', '/api/operator/v1/partners')).toMatchObject(failed(401, 'KS-4001'));
    const nobodys = `ks_${'A'.repeat(43)}`;
    expect(await version(client, nobodys)).toMatchObject(failed(401, 'KS-4002'));
    expect(await version(client, partner.key.toLowerCase())).toMatchObject(failed(401, 'KS-4002'));
  });

  test('refuses a partner key on the operator API, and the operator key on the partner API', async () => {
    const asOperator = await client.request('GET', '/api/operator/v1/partners', { key: partner.key });
    expect(asOperator).toMatchObject(failed(401, 'KS-4002'));
    expect(await version(client, OPERATOR_KEY)).toMatchObject(failed(401, 'KS-4002'));
  });

  test('refuses a revoked API key with KS-4003 on all front ends within a second, and keeps other keys valid', async () => {
    const { apiKey, keyId } = await issue();
    expect((await version(other, apiKey)).status).toBe(200);
    const revoked = await client.operator('DELETE', `/partners/${partner.partnerId}/keys/${keyId}`);
    expect(revoked).toMatchObject({ status: 204, text: '' });
    const [there, here] = await Promise.all([withinOneSecond(other, apiKey, 401), version(client, apiKey)]);
    expect(there).toMatchObject(failed(401, 'KS-4003'));
    expect(here).toMatchObject(failed(401, 'KS-4003'));
    expect(await listed(keyId)).toMatchObject({ status: 'revoked' });
    expect((await version(other, partner.key)).status).toBe(200);
    const again = await client.operator('DELETE', `/partners/${partner.partnerId}/keys/${keyId}`);
    expect(again.status).toBe(204);
  });

  test('refuses an API key with KS-4004 from its expiry on, even on front ends that have used it before', async () => {
    // 4 s are long enough to issue the key and use it once before it expires, even on a busy machine.
    const expiresAt = new Date(Date.now() + 4000).toISOString();
    const issued = await issue({ expiresAt });
    expect(issued.expiresAt).toBe(expiresAt);
    expect((await version(other, issued.apiKey)).status).toBe(200);
    await until(async () => (await version(other, issued.apiKey)).status === 401, 'the key is refused');
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt));
    for (const front of [client, other]) {
      expect(await version(front, issued.apiKey)).toMatchObject(failed(401, 'KS-4004'));
    }
    expect(await listed(issued.keyId)).toMatchObject({ status: 'expired' });
  });

  test("refuses a deactivated partner's key with KS-4005 everywhere within a second, until it is reactivated", async () => {
    const held = await client.newPartner();
    expect((await version(other, held.key)).status).toBe(200);
    await client.operator('PATCH', `/partners/${held.partnerId}`, { isActive: false });
    expect(await withinOneSecond(other, held.key, 401)).toMatchObject(failed(401, 'KS-4005'));
    expect(await version(client, held.key)).toMatchObject(failed(401, 'KS-4005'));
    await client.operator('PATCH', `/partners/${held.partnerId}`, { isActive: true });
    await withinOneSecond(other, held.key, 200);
    expect((await version(client, held.key)).status).toBe(200);
  });

  test('shows when an API key was last used', async () => {
    const from = Date.now() - 5000;
    const { apiKey, keyId } = await issue();
    expect(await listed(keyId)).toMatchObject({ lastUsedAt: null });
    await client.spin(apiKey, {});
    await until(async () => (await listed(keyId))?.lastUsedAt !== null, 'the key has a lastUsedAt');
    const lastUsedAt = Date.parse((await listed(keyId))?.lastUsedAt as string);
    expect(lastUsedAt).toBeGreaterThanOrEqual(from);
    expect(lastUsedAt).toBeLessThanOrEqual(Date.now());
  });

  test('issues API keys to active partners only (KS-4210)', async () => {
    const own = await client.newPartner();
    const keys = async (id: number) =>
      (await client.operator<{ keys: { keyId: number }[] }>('GET', `/partners/${id}/keys`)).body.keys;
    await client.operator('PATCH', `/partners/${own.partnerId}`, { isActive: false });
    const refused = await client.operator('POST', `/partners/${own.partnerId}/keys`, {});
    expect(refused).toMatchObject(failed(403, 'KS-4210'));
    expect(await keys(own.partnerId)).toHaveLength(1);
  });
});

describe('failed authentications', () => {
  const ask = (key: string | undefined, address: string, path = '/api/partner/v1/version') =>
    raw(
      strict.base,
      [`GET ${path} HTTP/1.1`, ...(key === undefined ? [] : [`X-API-Key: ${key}`])],
      '',
      address,
    );

  test("reports the window of an address's failed authentications, answers KS-4293 beyond it, and never delays a valid key", async () => {
    const address = elsewhere();
    await clock.room(15);
    const minuteEnd = Math.ceil(((await clock.seconds()) + 0.5) / 60) * 60;
    for (let used = 1; used <= FAILURE_LIMIT + 2; used++) {
      const answer = await ask(used % 2 === 0 ? undefined : 'ks_wrong', address);
      const isOver = used > FAILURE_LIMIT;
      expect(answer.status).toBe(isOver ? 429 : 401);
      expect(JSON.parse(answer.body).errorCode).toBe(
        isOver ? 'KS-4293' : used % 2 === 0 ? 'KS-4001' : 'KS-4002',
      );
      expect(answer.headers.get('x-ratelimit-limit')).toBe(String(FAILURE_LIMIT));
      expect(answer.headers.get('x-ratelimit-remaining')).toBe(String(Math.max(0, FAILURE_LIMIT - used)));
      expect(answer.headers.get('x-ratelimit-reset')).toBe(String(minuteEnd));
      expect(answer.headers.get('ratelimit-policy')).toBe(`"auth";q=${FAILURE_LIMIT};w=60`);
      if (!isOver) continue;
      const { retryAfter } = JSON.parse(answer.body);
      expect(answer.headers.get('retry-after')).toBe(String(retryAfter));
      expect(retryAfter).toBeGreaterThan(0);
      expect(retryAfter).toBeLessThanOrEqual(60);
    }
    expect((await ask(partner.key, address)).status).toBe(200);
    expect((await ask(OPERATOR_KEY, address, '/api/operator/v1/partners')).status).toBe(200);
    expect((await ask('ks_wrong', elsewhere())).status, 'another address').toBe(401);
  });

  test('counts failed authentications on the operator API in the same window as those on the partner API', async () => {
    const address = elsewhere();
    await clock.room(15);
    const codes: string[] = [];
    for (let i = 0; i <= FAILURE_LIMIT; i++) {
      const path = i % 2 === 0 ? '/api/operator/v1/partners' : '/api/partner/v1/spin';
      codes.push(JSON.parse((await ask('operator-key-of-another', address, path)).body).errorCode);
    }
    expect(codes).toEqual([...Array(FAILURE_LIMIT).fill('KS-4002'), 'KS-4293']);
  });

  test('counts requests with revoked keys or keys of deactivated partners as failed authentications', async () => {
    const address = elsewhere();
    const held = await client.newPartner();
    await client.operator('PATCH', `/partners/${held.partnerId}`, { isActive: false });
    await until(async () => (await version(strict, held.key)).status !== 200, 'the strict front end knows');
    await clock.room(15);
    const statuses: number[] = [];
    for (let i = 0; i <= FAILURE_LIMIT; i++) statuses.push((await ask(held.key, address)).status);
    expect(statuses).toEqual([...Array(FAILURE_LIMIT).fill(401), 429]);
  });
});

describe('the interface_version header', () => {
  const ask = (version: string) =>
    client.request('GET', '/api/operator/v1/partners', {
      key: OPERATOR_KEY,
      headers: { interface_version: version },
    });

  test.each(['2.0.0', '0.9.0', '10.0.0', '1', 'x', '1.0', '1.0.0.0', '01.0.0', 'v1.0.0', '1.0.0-', '-1.0.0'])(
    'refuses the interface_version %s with KS-4112',
    async (version) => expect(await ask(version)).toMatchObject(failed(426, 'KS-4112')),
  );

  test.each(['1.2.3', '1.0.0-rc.1', '1.0.0+build.5', '1.99.0-a.b-c+d'])(
    'serves a request with the interface_version %s',
    async (version) => {
      expect((await ask(version)).status).toBe(200);
    },
  );

  test('checks the key before the interface_version header', async () => {
    const headers = { interface_version: '2.0.0' };
    const answer = await client.request('GET', '/api/operator/v1/partners', { key: 'ks_wrong', headers });
    expect(answer).toMatchObject(failed(401, 'KS-4002'));
  });
});
