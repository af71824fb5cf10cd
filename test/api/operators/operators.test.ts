/** Tests named operators, their roles, and the sessions of the console (docs/contract.md §15.7). */
import postgres from 'postgres';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ENDPOINTS } from '../../../src/api/index.js';
import { authFailuresKey } from '../../../src/engine/redis/keys.js';
import { world } from '../../setup/world.js';
import { type Answer, type Client, OPERATOR_KEY } from '../../support/client.js';
import { constants, startService } from '../../support/service.js';
import { storeClock } from '../../support/storeClock.js';
import { until } from '../../support/wait.js';

const BASE = '/api/operator/v1';

interface Made {
  name: string;
  role: string;
  apiKey: string;
  status: string;
}
interface Session {
  operator: string;
  role: string;
  csrfToken: string;
  expiresAt: string;
}

const patient = constants({ authFailureLimit: 1_000_000 });
const { stores, service: client, redis } = world(patient);
/** A second front end on the same stores. */
let other: Client & { stop(): Promise<void> };

beforeAll(async () => {
  other = await startService(stores, { ...patient, ROLES: 'http' });
});

afterAll(async () => {
  await other.stop();
});

// The service delays its responses from the fourth wrong key within a minute, so the counter of wrong keys is
// reset before each test.
beforeEach(async () => {
  await redis.del(authFailuresKey('127.0.0.1'));
});

const ask = <T = Record<string, unknown>>(
  key: string,
  method: string,
  path: string,
  body?: unknown,
  from: Client = client,
): Promise<Answer<T>> => from.request<T>(method, BASE + path, { key, body });

async function made(name: string, role: string, more: object = {}): Promise<Made> {
  const answer = await client.operator<Made & Record<string, unknown>>('POST', '/operators', {
    name,
    role,
    ...more,
  });
  expect(answer).toMatchObject({ status: 201, body: { name, role, status: 'active' } });
  return answer.body;
}

const failed = (status: number, errorCode: string) => ({ status, body: { errorCode } });

/**
 * Begins a console session.
 * @returns the cookie as a browser sends it, the whole Set-Cookie header, and the response
 */
async function signIn(key: string, headers: Record<string, string> = {}, from = client) {
  const answer = await from.request<Session>('POST', `${BASE}/session`, { key, headers });
  expect(answer.status).toBe(201);
  const header = answer.headers.get('set-cookie') ?? '';
  return { cookie: header.split(';')[0]!, header, session: answer.body };
}

const withCookie = (
  cookie: string,
  method: string,
  path: string,
  { csrfToken, body, from = client }: { csrfToken?: string; body?: unknown; from?: Client } = {},
): Promise<Answer> =>
  from.request(method, BASE + path, {
    headers: { Cookie: cookie, ...(csrfToken === undefined ? {} : { 'X-CSRF-Token': csrfToken }) },
    body,
  });

const partnerBody = (slug: string) => ({ slug, name: slug, environment: 'sandbox' });

describe('named operators', () => {
  test("records an operator's changes under the operator's name in the audit log, from any front end at once", async () => {
    const { apiKey } = await made('jane.doe@example.com', 'operator');
    const created = await ask(apiKey, 'POST', '/partners', partnerBody('of-jane'), other);
    expect(created.status).toBe(201);
    const { body } = await client.operator<{ entries: Record<string, unknown>[] }>('GET', '/audit-log');
    expect(body.entries[0]).toMatchObject({
      actor: 'jane.doe@example.com',
      action: 'partner.create',
      subject: `partner:${created.body.partnerId}`,
    });
    expect(body.entries[1]).toMatchObject({
      actor: 'operator',
      action: 'operator.create',
      subject: 'operator:jane.doe@example.com',
    });
  });

  test("stores only the SHA-256 of an operator's key, and refuses that key on the partner API", async () => {
    const { apiKey } = await made('stored', 'admin');
    const sql = postgres(stores.databaseUrl);
    try {
      const rows = await sql`SELECT to_json(o)::text AS text FROM operators o`;
      const log = await sql`SELECT to_json(a)::text AS text FROM audit_log a`;
      const list = await client.operator('GET', '/operators');
      expect(JSON.stringify([rows, log]) + list.text).not.toContain(apiKey.slice(4));
    } finally {
      await sql.end();
    }
    expect(await client.partner('GET', '/version', apiKey)).toMatchObject(failed(401, 'KS-4002'));
  });

  test('names the role that a change needs in the error for an operator without that role', async () => {
    const { apiKey } = await made('audrey', 'auditor');
    const refused = await ask<{ details: unknown }>(apiKey, 'POST', '/partners', partnerBody('x'));
    expect(refused).toMatchObject(failed(403, 'KS-4116'));
    expect(refused.body.details).toEqual([
      { path: '', message: 'This operation needs the role operator, but audrey has the role auditor' },
    ]);
    const { body } = await client.operator<{ operators: Made[] }>('GET', '/operators');
    expect(body.operators).toContainEqual(
      expect.objectContaining({ name: 'audrey', role: 'auditor', status: 'active' }),
    );
  });

  test('permits each operation to exactly the roles of the table', async () => {
    /** Roles from the least to the most permissions. */
    const roles = ['auditor', 'support', 'operator', 'admin'];
    /** Changes by the least role that may make them. All other changes need the role operator. */
    const least: Readonly<Record<string, string>> = {
      updatePlayer: 'support',
      createOperator: 'admin',
      rotateOperatorKey: 'admin',
      revokeOperator: 'admin',
      signIn: 'auditor',
      signOut: 'auditor',
    };
    const operations = ENDPOINTS.filter(({ scope }) => scope === 'operator');
    for (const name of Object.keys(least))
      expect(operations.map(({ operationId }) => operationId)).toContain(name);
    for (const role of roles) {
      const { apiKey } = await made(`table-${role}`, role);
      for (const { operationId, method, path } of operations) {
        const needed = least[operationId] ?? (method === 'get' ? 'auditor' : 'operator');
        // No object has this id, so that a permitted change has no effect.
        const url = path.replace(/\{date\}/g, '2020-01-01').replace(/\{\w+\}/g, '2000000000');
        const sent = method === 'get' ? undefined : {};
        const { status, body } = await ask(apiKey, method.toUpperCase(), url, sent);
        const isPermitted = roles.indexOf(role) >= roles.indexOf(needed);
        expect([role, operationId, status !== 403], `${status}`).toEqual([role, operationId, isPermitted]);
        if (!isPermitted) expect(body).toMatchObject({ errorCode: 'KS-4116' });
      }
    }
    const done = async (): Promise<string[]> => {
      const path = '/audit-log?actor=table-auditor&limit=100';
      const { body } = await client.operator<{ entries: { action: string }[] }>('GET', path);
      return body.entries.map(({ action }) => action);
    };
    await until(async () => (await done()).length > 0, 'the refusals are in the audit log');
    expect(new Set(await done())).toEqual(new Set(['operator.refused', 'session.begin']));
  });

  test('lets support block and unblock a player, and touch no money, keys or settings', async () => {
    const { apiKey } = await made('susan', 'support');
    const { partnerId } = await client.newPartner();
    const player = `/partners/${partnerId}/players/alice`;
    const adjustment = { amountUsd: 5, reason: 'a test', requestId: 'a' };
    expect((await client.operator('POST', `${player}/adjustments`, adjustment)).status).toBe(200);
    for (const status of ['BLOCKED', 'ACTIVE'])
      expect(await ask(apiKey, 'PATCH', player, { status, reason: 'self-exclusion' }, other)).toMatchObject({
        status: 200,
        body: { status },
      });
    const { body } = await client.operator<{ entries: object[] }>(
      'GET',
      '/audit-log?action=player.status&limit=2',
    );
    expect(body.entries).toMatchObject([{ actor: 'susan' }, { actor: 'susan' }]);
    for (const [method, path, change] of [
      ['POST', `${player}/adjustments`, { ...adjustment, requestId: 'b' }],
      ['POST', `/partners/${partnerId}/keys`, {}],
      ['PATCH', `/partners/${partnerId}`, { spinRateLimit: 1 }],
    ] as const)
      expect(await ask(apiKey, method, path, change)).toMatchObject(failed(403, 'KS-4116'));
    expect((await client.operator('GET', '/operators')).body).toMatchObject({
      operators: expect.arrayContaining([expect.objectContaining({ name: 'susan', role: 'support' })]),
    });
  });

  test('stores the role support so that a version without this role permits only reads', async () => {
    await made('old-version', 'support');
    const sql = postgres(stores.databaseUrl);
    try {
      const rows = await sql`SELECT role FROM operators WHERE name = 'old-version'`;
      expect([...rows]).toEqual([{ role: 'auditor' }]);
    } finally {
      await sql.end();
    }
  });

  test('refuses a revoked operator key with KS-4003 on every front end, permanently', async () => {
    const { apiKey } = await made('gone', 'operator');
    expect((await ask(apiKey, 'GET', '/partners', undefined, other)).status).toBe(200);
    expect((await client.operator('DELETE', '/operators/gone')).status).toBe(204);
    await until(
      async () => (await ask(apiKey, 'GET', '/partners', undefined, other)).status === 401,
      'the other front end refuses the key',
    );
    for (const from of [client, other])
      expect(await ask(apiKey, 'GET', '/partners', undefined, from)).toMatchObject(failed(401, 'KS-4003'));
    expect((await client.operator('DELETE', '/operators/gone')).status).toBe(204);
    expect(await client.operator('POST', '/operators/gone/rotate', {})).toMatchObject(failed(404, 'KS-4212'));
    const again = await client.operator('POST', '/operators', { name: 'gone', role: 'operator' });
    expect(again).toMatchObject(failed(400, 'KS-4101'));
  });

  test("accepts only the new key after an operator's key is rotated", async () => {
    const before = await made('rota', 'operator');
    expect((await ask(before.apiKey, 'GET', '/partners', undefined, other)).status).toBe(200);
    const rotated = await client.operator<Made>('POST', '/operators/rota/rotate', {});
    expect(rotated).toMatchObject({ status: 200, body: { name: 'rota', role: 'operator' } });
    expect((await ask(rotated.body.apiKey, 'GET', '/partners', undefined, other)).status).toBe(200);
    await until(
      async () => (await ask(before.apiKey, 'GET', '/partners', undefined, other)).status === 401,
      'the other front end refuses the key before',
    );
    expect(await ask(before.apiKey, 'GET', '/partners')).toMatchObject(failed(401, 'KS-4002'));
  });

  test('refuses an operator key with KS-4004 once it has expired', async () => {
    const expiresAt = new Date(Date.now() + 3000).toISOString();
    const { apiKey } = await made('briefly', 'operator', { expiresAt });
    await until(async () => (await ask(apiKey, 'GET', '/partners')).status === 401, 'the key is refused');
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(expiresAt));
    expect(await ask(apiKey, 'GET', '/partners')).toMatchObject(failed(401, 'KS-4004'));
  });

  test.each([
    [{ name: 'operator', role: 'admin' }, '/name'],
    [{ name: 'worker', role: 'admin' }, '/name'],
    [{ name: 'command', role: 'admin' }, '/name'],
    [{ name: 'fine', role: 'admin', expiresAt: '9999-12-31T23:59:59-01:00' }, '/expiresAt'],
  ])('refuses to create an operator whose request body is %j', async (body, path) => {
    const answer = await client.operator<{ details: { path: string }[] }>('POST', '/operators', body);
    expect(answer).toMatchObject(failed(400, 'KS-4101'));
    expect(answer.body.details[0]?.path).toBe(path);
  });
});

describe('sessions of the console', () => {
  test('sets an HttpOnly, SameSite session cookie, and a Secure one if the page came over TLS', async () => {
    const { header, session } = await signIn(OPERATOR_KEY, { Origin: 'http://127.0.0.1:8080' });
    expect(header).toMatch(
      /^spindle_session=[\w-]{43}; Path=\/api\/operator\/v1; Max-Age=28800; HttpOnly; SameSite=Strict$/,
    );
    expect(session).toMatchObject({ operator: 'operator', role: 'admin' });
    expect(Date.parse(session.expiresAt)).toBeGreaterThan(Date.now() + 28_000_000);
    const overTls = await signIn(OPERATOR_KEY, { Origin: 'https://console.example' });
    expect(overTls.header).toMatch(/; SameSite=Strict; Secure$/);
  });

  test('a console session reads without its CSRF token but needs it for changes, on every front end', async () => {
    const { cookie, session } = await signIn((await made('sam', 'operator')).apiKey);
    const { csrfToken } = session;
    expect(await withCookie(cookie, 'GET', '/session', { from: other })).toMatchObject({
      status: 200,
      body: { operator: 'sam', role: 'operator', csrfToken },
    });
    const body = partnerBody('of-sam');
    for (const wrong of [undefined, '', 'x', session.csrfToken.slice(1)]) {
      const refused = await withCookie(cookie, 'POST', '/partners', {
        body,
        ...(wrong === undefined ? {} : { csrfToken: wrong }),
      });
      expect(refused).toMatchObject(failed(403, 'KS-4116'));
    }
    expect((await withCookie(cookie, 'POST', '/partners', { csrfToken, body, from: other })).status).toBe(
      201,
    );
    const { body: log } = await client.operator<{ entries: Record<string, unknown>[] }>('GET', '/audit-log');
    expect(log.entries[0]).toMatchObject({ actor: 'sam', action: 'partner.create' });
  });

  test("a console session has the permissions of its operator's role", async () => {
    const { cookie, session } = await signIn((await made('ulrike', 'auditor')).apiKey);
    const { csrfToken } = session;
    expect((await withCookie(cookie, 'GET', '/partners')).status).toBe(200);
    expect(
      await withCookie(cookie, 'POST', '/partners', { csrfToken, body: partnerBody('no') }),
    ).toMatchObject(failed(403, 'KS-4116'));
  });

  test('a console session ends when its operator signs out or its key is revoked or rotated', async () => {
    const { apiKey } = await made('tina', 'operator');
    const first = await signIn(apiKey);
    const second = await signIn(apiKey);
    const { csrfToken } = first.session;
    const out = await withCookie(first.cookie, 'DELETE', '/session', { csrfToken });
    expect(out.status).toBe(204);
    expect(out.headers.get('set-cookie')).toMatch(/^spindle_session=; .*Max-Age=0;/);
    expect(await withCookie(first.cookie, 'GET', '/partners')).toMatchObject(failed(401, 'KS-4002'));
    expect((await withCookie(second.cookie, 'GET', '/partners')).status).toBe(200);
    const rotated = await client.operator<Made>('POST', '/operators/tina/rotate', {});
    expect(await withCookie(second.cookie, 'GET', '/partners')).toMatchObject(failed(401, 'KS-4002'));
    const third = await signIn(rotated.body.apiKey);
    await client.operator('DELETE', '/operators/tina');
    expect((await withCookie(third.cookie, 'GET', '/partners')).status).toBe(401);
    await until(
      async () => (await withCookie(third.cookie, 'GET', '/partners', { from: other })).status === 401,
      'the other front end refuses the session',
    );
  });

  test("a console session begins only with a key, its cookie can't begin another session, and signing out removes its row", async () => {
    const { apiKey } = await made('renewing', 'operator');
    const { cookie, session } = await signIn(apiKey);
    const { csrfToken } = session;
    for (const from of [client, other])
      expect(await withCookie(cookie, 'POST', '/session', { csrfToken, from })).toMatchObject(
        failed(401, 'KS-4001'),
      );
    expect(await withCookie(cookie, 'GET', '/session')).toMatchObject({
      status: 200,
      body: { expiresAt: session.expiresAt },
    });
    expect((await withCookie(cookie, 'DELETE', '/session', { csrfToken })).status).toBe(204);
    const sql = postgres(stores.databaseUrl);
    try {
      const left = await sql`
        SELECT 1 FROM operator_sessions JOIN operators USING (key_hash) WHERE operators.name = 'renewing'`;
      expect(left).toHaveLength(0);
    } finally {
      await sql.end();
    }
  });

  test('a console session ends no later than its key expires', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString();
    const { apiKey } = await made('short', 'operator', { expiresAt });
    expect((await signIn(apiKey)).session.expiresAt).toBe(expiresAt);
  });

  test('allows at most ten console sessions for each key and ends the oldest for an eleventh', async () => {
    const { apiKey } = await made('many', 'operator');
    const cookies: string[] = [];
    for (let i = 0; i < 11; i++) cookies.push((await signIn(apiKey)).cookie);
    const statuses: number[] = [];
    for (const cookie of cookies) statuses.push((await withCookie(cookie, 'GET', '/session')).status);
    expect(statuses).toEqual([401, ...Array(10).fill(200)]);
  });

  test('refuses an expired console session and deletes it at the next sign-in', async () => {
    const { apiKey } = await made('late', 'operator');
    const { cookie } = await signIn(apiKey);
    const sql = postgres(stores.databaseUrl);
    try {
      await sql`UPDATE operator_sessions SET expires_at = now() - interval '1 second'`;
      expect((await withCookie(cookie, 'GET', '/session')).status).toBe(401);
      await signIn(apiKey);
      const [row] = await sql`SELECT count(*)::int AS total FROM operator_sessions`;
      expect(row?.total).toBe(1);
    } finally {
      await sql.end();
    }
  });

  test('counts a forged session cookie as a failed authentication', async () => {
    const cookie = `spindle_session=${'A'.repeat(43)}`;
    const clock = storeClock(stores.redisUrl);
    // Both requests must fall into the same minute of the rate limit.
    await clock.room(10);
    clock.close();
    const remaining: number[] = [];
    for (let i = 0; i < 2; i++) {
      const answer = await withCookie(cookie, 'GET', '/partners');
      expect(answer).toMatchObject(failed(401, 'KS-4002'));
      expect(answer.headers.get('ratelimit-policy')).toMatch(/^"auth";/);
      remaining.push(Number(answer.headers.get('x-ratelimit-remaining')));
    }
    expect(remaining[1]).toBe(remaining[0]! - 1);
  });
});
