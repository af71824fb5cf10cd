/**
 * Tests how partners manage their webhooks: change, rotate the secret, test, resend, and read the feed. Also
 * tests the deactivation of a webhook after five days of failures.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { jsonInteger, jsonUsd } from '../../src/domain/exactJson.js';
import { bodySignature, standardSignature } from '../../src/domain/webhook.js';
import { recordEvents } from '../../src/postgres/partnerEvents.js';
import { recordAttempts } from '../../src/webhooks/deliveries.store.js';
import { world } from '../setup/world.js';
import { isSigned, type Received, type Receiver, register, startReceiver } from '../support/receiver.js';
import { ENTRIES_AHEAD } from '../support/settlement.js';
import { until } from '../support/wait.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const { stores, service: client, ownSql: sql } = world(ENTRIES_AHEAD, { outside: { now: () => nowMs } });
let books: postgres.Sql;
let nowMs = Date.now();

beforeAll(async () => {
  books = postgres(stores.databaseUrl, { max: 4, onnotice: () => {} });
});
afterAll(async () => {
  await books.end();
});

async function receiver(): Promise<Receiver> {
  const started = await startReceiver();
  onTestFinished(() => started.close());
  return started;
}

const keyEvent = (partnerId: number, keyId: number) =>
  ({
    event: 'api_key.expiring',
    partnerId,
    createdAt: new Date(),
    data: { keyId, name: null, expiresAt: new Date().toISOString(), daysLeft: 7 },
  }) as const;
const record = (partnerId: number, ...keyIds: number[]): Promise<number> =>
  sql.begin((tx) =>
    recordEvents(
      tx,
      keyIds.map((keyId) => keyEvent(partnerId, keyId)),
    ),
  );

/**
 * Returns whether a secret was used both for the service's own signature and for one of the Standard Webhooks
 * signatures, at the time of a given clock.
 */
const standardOnly = (request: Received, secret: string): boolean => {
  const { 'webhook-signature': signatures = '' } = request.headers;
  // The library refuses any time but the current one, so this test computes each signature at the time in its
  // header.
  return signatures.split(' ').some((one) => one === standardOf(request, secret));
};

test('signs with a rotated webhook secret and its predecessor for 24 hours, and never with an older secret', async () => {
  const to = await receiver();
  const { key, partnerId } = await client.newPartner();
  const { id, secret: first } = await register(client, key, to.url(), ['api_key.expiring']);
  const rotate = async (): Promise<string> => {
    const answer = await client.partner<{ secret: string; previousSecretExpiresAt: string }>(
      'POST',
      `/webhooks/${id}/rotate-secret`,
      key,
    );
    expect(answer.status).toBe(200);
    expect(Date.parse(answer.body.previousSecretExpiresAt)).toBe(nowMs + DAY_MS);
    return answer.body.secret;
  };
  const next = async (): Promise<Received> => {
    const before = to.received.length;
    await record(partnerId, before);
    await until(() => to.received.length === before + 1, 'it is delivered');
    return to.received.at(-1)!;
  };
  const signers = (request: Received, secrets: readonly string[]): boolean[] =>
    secrets.map((secret) => standardOnly(request, secret));
  const alone = await next();
  expect(isSigned(alone, first)).toBe(true);
  expect(alone.headers['webhook-signature']).not.toContain(' ');
  const second = await rotate();
  expect(signers(await next(), [first, second])).toEqual([true, true]);
  nowMs += 23 * HOUR_MS;
  const both = await next();
  expect(signers(both, [first, second])).toEqual([true, true]);
  expect(both.headers['x-spindle-signature']).toBe(bodySignature(second, both.bytes));
  nowMs += HOUR_MS;
  expect(signers(await next(), [first, second])).toEqual([false, true]);
  const third = await rotate();
  const fourth = await rotate();
  expect(signers(await next(), [second, third, fourth])).toEqual([false, true, true]);
});

test('both the old and the new secret verify every delivery under load in the 24 hours after a rotation', async () => {
  const to = await receiver();
  const { key, partnerId } = await client.newPartner();
  const { id, secret: old } = await register(client, key, to.url(), ['api_key.expiring']);
  let made = 0;
  let isOver = false;
  const load = (async () => {
    for (; !isOver; made += 5) {
      await until(() => isOver || made - to.received.length < 40, 'few are waiting');
      await record(partnerId, ...[1, 2, 3, 4, 5].map((i) => made + i));
    }
  })();
  /** Returns the deliveries of fifty events that are recorded after the call. */
  const arrived = async (): Promise<Received[]> => {
    const from = made + 5;
    const later = () => to.received.filter(({ event }) => Number(event.data.keyId) > from);
    await until(() => later().length >= 50, 'fifty more arrive');
    return later();
  };
  const verified = (requests: readonly Received[], secret: string): number =>
    requests.filter((request) => standardOnly(request, secret)).length;
  try {
    const before = await arrived();
    expect(verified(before, old)).toBe(before.length);
    const { body } = await client.partner<{ secret: string }>('POST', `/webhooks/${id}/rotate-secret`, key);
    for (const laterMs of [0, 12 * HOUR_MS, 12 * HOUR_MS - 60_000]) {
      nowMs += laterMs;
      const requests = await arrived();
      expect([verified(requests, old), verified(requests, body.secret)]).toEqual([
        requests.length,
        requests.length,
      ]);
    }
    nowMs += 60_000;
    const after = await arrived();
    expect([verified(after, old), verified(after, body.secret)]).toEqual([0, after.length]);
  } finally {
    isOver = true;
    await load;
  }
});

test('changes a webhook, tests it and resends events to it, and sends nothing to it while it is inactive', async () => {
  const [one, two] = [await receiver(), await receiver()];
  const { key, partnerId } = await client.newPartner();
  const { id } = await register(client, key, one.url(), ['spin.large_win']);
  const tested = await client.partner('POST', `/webhooks/${id}/test`, key, { event: 'block.low_reserve' });
  expect(tested.status).toBe(202);
  await until(() => one.received.length === 1, 'the test arrives');
  expect(one.received[0]!.event).toMatchObject({
    id: tested.body.eventId,
    event: 'block.low_reserve',
    test: true,
  });
  const changed = await client.partner('PATCH', `/webhooks/${id}`, key, {
    url: two.url(),
    events: ['api_key.expiring'],
    isActive: false,
  });
  expect(changed).toMatchObject({ status: 200, body: { id, url: two.url(), isActive: false } });
  expect(await record(partnerId, 1)).toBe(0);
  const refused = await client.partner('POST', `/webhooks/${id}/test`, key, { event: 'block.low_reserve' });
  expect(refused).toMatchObject({ status: 400, body: { errorCode: 'KS-4101' } });
  await client.partner('PATCH', `/webhooks/${id}`, key, { isActive: true });
  expect(await record(partnerId, 2)).toBe(1);
  await until(() => two.received.length === 1, 'the event arrives at the new URL');
  const deliveryId = two.received[0]!.headers['x-spindle-delivery-id']!;
  const path = `/webhooks/${id}/deliveries/${deliveryId}/resend`;
  await until(async () => {
    const [row] =
      await books`SELECT 1 FROM deliveries WHERE delivery_id = ${deliveryId} AND status = 'delivered'`;
    return row !== undefined;
  }, 'it is written down');
  expect(await client.partner('POST', path, key)).toMatchObject({ status: 202, body: { resent: 1 } });
  await until(() => two.received.length === 2, 'it arrives again');
  expect(two.received[1]!.event.id).toBe(two.received[0]!.event.id);
});

test('refuses to lead a webhook into its own network, to subscribe it to a version event, and to read after an unknown event', async () => {
  const to = await receiver();
  const { key } = await client.newPartner();
  const { id } = await register(client, key, to.url());
  for (const [method, at, body, errorCode] of [
    ['PATCH', `/webhooks/${id}`, { url: 'https://127.1/' }, 'KS-4217'],
    ['PATCH', `/webhooks/${id}`, { events: ['api.version.deprecated'] }, 'KS-4107'],
    ['GET', `/events?after=evt_${'0'.repeat(32)}`, undefined, 'KS-4101'],
  ] as const) {
    const answer = await client.partner(method, at, key, body);
    expect([at, answer.body.errorCode]).toEqual([at, errorCode]);
  }
});

test('the event feed neither skips nor repeats an event, in whatever order concurrent transactions end', async () => {
  const { key, partnerId } = await client.newPartner();
  const seen: number[] = [];
  let after: string | undefined;
  const read = async (): Promise<void> => {
    const query = after === undefined ? '?limit=7' : `?limit=7&after=${after}`;
    const { body } = await client.partner<{
      events: { id: string; data: { keyId: number } }[];
      nextCursor: unknown;
    }>('GET', `/events${query}`, key);
    seen.push(...body.events.map(({ data }) => data.keyId));
    after = body.events.at(-1)?.id ?? after;
    if (body.nextCursor !== null) await read();
  };
  let finish: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    finish = resolve;
  });
  let isWritten = false;
  // This transaction writes first and commits last.
  const slow = sql.begin(async (tx) => {
    await recordEvents(tx, [keyEvent(partnerId, 1)]);
    isWritten = true;
    await held;
  });
  await until(() => isWritten, 'the slow transaction has written');
  await record(partnerId, 2, 3);
  await record(partnerId, 4);
  await read();
  // An open transaction delays no other events. Its own events come after those already read, once it
  // commits.
  expect(seen).toEqual([2, 3, 4]);
  finish();
  await slow;
  await record(partnerId, 5);
  await read();
  expect(seen).toEqual([2, 3, 4, 1, 5]);
  const writing = Promise.all(Array.from({ length: 40 }, (_, i) => record(partnerId, 100 + i)));
  await until(async () => {
    await read();
    return seen.length >= 45;
  }, 'everything is read');
  await writing;
  await read();
  expect(new Set(seen).size).toBe(45);
  expect(seen).toHaveLength(45);
});

test('the event feed lists events in the order of their commits, not in the order in which they were written', async () => {
  const { key, partnerId } = await client.newPartner();
  const { partnerId: other } = await client.newPartner();
  const opened: { write(): Promise<void>; commit(): Promise<void> }[] = [];
  for (const keyId of [1, 2, 3]) {
    const connection = await books.reserve();
    onTestFinished(() => connection.release());
    await connection`BEGIN`;
    opened.push({
      async write() {
        const id = `evt_${keyId}${'0'.repeat(31)}`;
        const body = JSON.stringify({ ...keyEvent(partnerId, keyId), id });
        await connection`
          INSERT INTO events (event_id, partner_id, event, body, created_at)
          VALUES (${id}, ${partnerId}, 'api_key.expiring', ${body}, now())`;
      },
      commit: async () => void (await connection`COMMIT`),
    });
  }
  for (const i of [1, 2, 0]) await opened[i]!.write();
  for (const i of [2, 0, 1]) await opened[i]!.commit();
  const { body } = await client.partner<{ events: { data: { keyId: number } }[] }>('GET', '/events', key);
  expect(body.events.map(({ data }) => data.keyId)).toEqual([3, 1, 2]);
  // Transactions with events of several partners must not deadlock, whatever their order.
  const both = [keyEvent(partnerId, 9), keyEvent(other, 9)] as const;
  const recorded = Array.from({ length: 40 }, (_, i) =>
    sql.begin((tx) => recordEvents(tx, i % 2 === 0 ? both : [both[1], both[0]])),
  );
  await Promise.all(recorded);
});

test('the event feed omits test events, can continue after the id of a test event, and has all digits of large numbers', async () => {
  const to = await receiver();
  const { key, partnerId } = await client.newPartner();
  const { id } = await register(client, key, to.url(), ['settlement.report_ready']);
  const tested = await client.partner<{ eventId: string }>('POST', `/webhooks/${id}/test`, key, {
    event: 'settlement.report_ready',
  });
  expect(tested.status).toBe(202);
  const data = {
    reportDate: '2026-05-01',
    revision: 1,
    integrityHash: 'ab',
    totalSpins: jsonInteger(9_007_199_254_740_993n),
    ggrUsd: jsonUsd(9_007_199_254_740_993_001n),
  };
  const event = { event: 'settlement.report_ready', partnerId, createdAt: new Date(), data } as const;
  await sql.begin((tx) => recordEvents(tx, [event]));
  for (const query of ['', `?after=${tested.body.eventId}`]) {
    const { body, text } = await client.partner<{ events: object[] }>('GET', `/events${query}`, key);
    expect(body.events).toHaveLength(1);
    expect(text).toContain('"totalSpins":9007199254740993,"ggrUsd":9007199254740.993001');
  }
  await until(() => to.received.length === 2, 'the test is delivered like the event');
});

test('deactivates a webhook only after five days of failures and a delivery without attempts left', async () => {
  const { key, partnerId } = await client.newPartner({ contactEmail: 'one@partner.example' });
  const { id } = await register(client, key, 'http://localhost:1/', ['api_key.expiring']);
  await client.partner('PATCH', `/webhooks/${id}`, key, { isActive: false });
  await client.partner('PATCH', `/webhooks/${id}`, key, { events: ['spin.large_win'], isActive: true });
  const [event] = await books<{ event_id: string }[]>`
    INSERT INTO events (event_id, partner_id, event, body, created_at)
    VALUES (${`evt_${'1'.repeat(32)}`}, ${partnerId}, 'spin.large_win', '{}', now()) RETURNING event_id`;
  const startMs = Date.now() - 20 * DAY_MS;
  let deliveries = 0;
  /**
   * Records the outcome of an attempt a number of days after the first attempt. Returns whether the webhook
   * is still active.
   */
  const attempt = async (day: number, isDelivered: boolean, isLast = false): Promise<boolean> => {
    const deliveryId = `dlv_${String(++deliveries).padStart(32, '0')}`;
    await books`
      INSERT INTO deliveries (delivery_id, webhook_id, event_id, attempts, max_attempts, next_attempt_at)
      VALUES (${deliveryId}, ${id}, ${event!.event_id}, ${isLast ? 4 : 0}, 5, now() + interval '1 day')`;
    const answered = { isDelivered, responseStatus: 500, responseStart: null, tookMs: 1 };
    const result = { deliveryId, attempt: isLast ? 5 : 1, ...answered };
    const error = isDelivered ? null : 'answered 500';
    await recordAttempts(sql, [{ ...result, error, atMs: startMs + day * DAY_MS }], [DAY_MS]);
    return (await health()).state !== 'inactive';
  };
  const health = async () => {
    const answer = await client.partner<{ webhooks: { health: { state: string } }[] }>(
      'GET',
      '/webhooks',
      key,
    );
    return answer.body.webhooks[0]!.health;
  };
  // The first failure and another failure five days later are recorded. Further attempts follow each of them.
  expect([await attempt(0, false), await attempt(5.1, false)]).toEqual([true, true]);
  // A webhook is deactivated after five days without a success. A successful attempt begins this period anew.
  // A delivery that runs out of attempts before the period ends does not deactivate the webhook.
  expect([await attempt(5.2, true), await attempt(5.3, false, true)]).toEqual([true, true]);
  expect(await health()).toMatchObject({ state: 'failing', reason: 'answered 500' });
  expect([await attempt(10.2, false, true), await attempt(10.4, false)]).toEqual([true, true]);
  expect([await attempt(10.5, false, true), await attempt(10.6, false, true)]).toEqual([false, false]);
  expect(await health()).toMatchObject({
    state: 'inactive',
    reason: 'every delivery failed for five days, at last with: answered 500',
    failingSince: new Date(startMs + 5.3 * DAY_MS).toISOString(),
    pending: 3,
  });
  const told = await books<{ recipient: string }[]>`
    SELECT recipient FROM deliveries JOIN events USING (event_id)
    WHERE event = 'webhook.deactivated' AND partner_id = ${partnerId}`;
  expect(told).toMatchObject([{ recipient: 'one@partner.example' }]);
  await client.partner('PATCH', `/webhooks/${id}`, key, { isActive: true });
  expect(await health()).toMatchObject({ state: 'ok', reason: null, failingSince: null });
});

/** Computes the Standard Webhooks signature of a delivery at the time in its header. */
const standardOf = ({ headers, bytes }: Received, secret: string): string =>
  standardSignature(secret, {
    id: headers['webhook-id']!,
    timestampSeconds: Number(headers['webhook-timestamp']),
    body: bytes,
  });
