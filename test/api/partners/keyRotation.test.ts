/** Tests the rotation of a partner's keys with an overlap, and changes of their expiry. */
import { expect, test } from 'vitest';
import { noticeExpiringKeys } from '../../../src/webhooks/notices.store.js';
import { world } from '../../setup/world.js';
import { constants } from '../../support/service.js';
import { until } from '../../support/wait.js';

type Json = Record<string, unknown>;

const { service, ownSql: sql, partner } = world(constants({ authFailureLimit: 1_000_000 }));

const keysPath = (): string => `/partners/${partner.partnerId}/keys`;

async function issue(body: Json = {}): Promise<{ keyId: number; apiKey: string }> {
  const answer = await service.operator<{ keyId: number; apiKey: string }>('POST', keysPath(), body);
  expect(answer.status).toBe(201);
  return answer.body;
}

const rotate = (keyId: number, body?: Json) =>
  service.operator<Json & { apiKey: string; keyId: number }>('POST', `${keysPath()}/${keyId}/rotate`, body);
const patch = (keyId: number, body: Json) => service.operator<Json>('PATCH', `${keysPath()}/${keyId}`, body);
const statusWith = async (apiKey: string): Promise<number> =>
  (await service.partner('GET', '/version', apiKey)).status;
const listed = async (keyId: number): Promise<Json> => {
  const { body } = await service.operator<{ keys: Json[] }>('GET', keysPath());
  return body.keys.find((key) => key.keyId === keyId)!;
};
const inHours = (hours: number): string => new Date(Date.now() + hours * 3_600_000).toISOString();

test('a rotation issues a key with the same name, and both keys are valid until the overlap ends', async () => {
  const old = await issue({ name: 'back end' });
  const before = Date.now();
  const { status, body } = await rotate(old.keyId, { reason: 'yearly' });
  const after = Date.now();
  expect(status).toBe(201);
  expect(body).toMatchObject({ name: 'back end', expiresAt: null, replacedKeyId: old.keyId });
  const ends = Date.parse(String(body.replacedExpiresAt)) - 24 * 3_600_000;
  expect(ends).toBeGreaterThanOrEqual(before);
  expect(ends).toBeLessThanOrEqual(after);
  expect([await statusWith(old.apiKey), await statusWith(body.apiKey)]).toEqual([200, 200]);
  expect(await listed(old.keyId)).toMatchObject({ status: 'active', expiresAt: body.replacedExpiresAt });
  const { body: log } = await service.operator<{ entries: Json[] }>('GET', '/audit-log?action=key.&limit=2');
  expect(log.entries).toMatchObject([
    {
      action: 'key.expiry',
      subject: `key:${old.keyId}`,
      before: { expiresAt: null },
      after: { expiresAt: body.replacedExpiresAt, reason: 'yearly' },
    },
    { action: 'key.issue', subject: `key:${body.keyId}`, after: { replaces: old.keyId, reason: 'yearly' } },
  ]);
  expect(JSON.stringify(log)).not.toContain(body.apiKey);
});

test('every front end refuses the replaced key once the overlap has ended', async () => {
  const old = await issue();
  const { body } = await rotate(old.keyId);
  expect(await statusWith(old.apiKey)).toBe(200);
  expect((await patch(old.keyId, { expiresAt: new Date(Date.now() + 1500).toISOString() })).status).toBe(200);
  await until(async () => (await statusWith(old.apiKey)) === 401, 'the replaced key is refused');
  expect(await service.partner('GET', '/version', old.apiKey)).toMatchObject({
    body: { errorCode: 'KS-4004' },
  });
  expect(await statusWith(body.apiKey)).toBe(200);
  // A key that has expired stays refused.
  for (const refused of [await patch(old.keyId, { expiresAt: null }), await rotate(old.keyId)])
    expect(refused).toMatchObject({
      status: 400,
      body: { errorCode: 'KS-4101', details: [{ message: 'The key has expired. Issue another key.' }] },
    });
});

test('a rotation never extends the validity of the replaced key', async () => {
  const expiresAt = inHours(2);
  const old = await issue({ expiresAt });
  const given = { name: 'new', expiresAt: inHours(48), overlapSeconds: 36_000 };
  const { body } = await rotate(old.keyId, given);
  expect(body).toMatchObject({ name: 'new', expiresAt: given.expiresAt, replacedExpiresAt: expiresAt });
  const short = await rotate(old.keyId, { overlapSeconds: 60 });
  expect(String(short.body.replacedExpiresAt) < expiresAt).toBe(true);
});

test('an expiry can be moved or removed', async () => {
  const { keyId } = await issue({ expiresAt: inHours(1) });
  const later = inHours(5);
  expect(await patch(keyId, { expiresAt: later, reason: 'a slow partner' })).toMatchObject({
    status: 200,
    body: { keyId, expiresAt: later, status: 'active' },
  });
  expect((await patch(keyId, { expiresAt: null })).body).toMatchObject({ expiresAt: null });
  const { body } = await service.operator<{ entries: Json[] }>('GET', '/audit-log?action=key.expiry&limit=2');
  expect(body.entries).toMatchObject([
    { before: { expiresAt: later }, after: { expiresAt: null } },
    { after: { expiresAt: later, reason: 'a slow partner' } },
  ]);
});

test('a revoked key is neither rotated nor changed', async () => {
  const { keyId } = await issue();
  await service.operator('DELETE', `${keysPath()}/${keyId}`);
  for (const refused of [await patch(keyId, { expiresAt: null }), await rotate(keyId)])
    expect(refused.body.errorCode).toBe('KS-4101');
});

test('a new expiry is announced to the partner, even if the earlier expiry was announced', async () => {
  const { keyId } = await issue();
  await sql`UPDATE api_keys SET created_at = now() - interval '60 days' WHERE key_id = ${keyId}`;
  await sql`INSERT INTO key_notices (key_id, days) VALUES (${keyId}, 1)`;
  const { body } = await rotate(keyId);
  interface Event {
    readonly data: Json;
  }
  const announced = async (): Promise<Event | undefined> => {
    const path = '/events?limit=100';
    const answer = await service.partner<{ events: Event[] }>('GET', path, body.apiKey);
    return answer.body.events.find(({ data }) => data.keyId === keyId);
  };
  await noticeExpiringKeys(sql, new Date(Date.now() + 1000));
  expect((await announced())!.data).toMatchObject({ expiresAt: body.replacedExpiresAt, daysLeft: 1 });
});
