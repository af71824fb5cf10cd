/**
 * Tests that the service can't be used to flood a host: attempts are limited for each host, and the delivery
 * history is bounded.
 */
import { randomBytes } from 'node:crypto';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { removeEndedDeliveries } from '../../src/webhooks/webhooks.store.js';
import { world } from '../setup/world.js';
import { type Receiver, type Reply, register, startReceiver } from '../support/receiver.js';
import { constants, startService } from '../support/service.js';
import { until } from '../support/wait.js';

const PER_HOST = 8;
/** Limit of one partner: half of the attempts to a host. */
const PER_PARTNER = 4;
/** Number of attempts that may start at once: half of the attempts of a minute. */
const AT_ONCE = 4;
/** Host names that all resolve to the receiver. The service treats each as a separate host. */
const names = ['one.test', 'two.test', 'three.test', 'other.test'];

const { stores, ownSql: sql } = world();
let service: Awaited<ReturnType<typeof startService>>;
let books: postgres.Sql;

beforeAll(async () => {
  service = await startService(stores, {
    ...constants({ webhookHostAttemptsMax: PER_HOST, webhookRetryDelaysMs: [3_600_000] }),
  });
  books = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
});
afterAll(async () => {
  await service?.stop();
  await books?.end();
});

async function receiver(reply?: Reply): Promise<Receiver> {
  const started = await startReceiver(reply);
  onTestFinished(() => started.close());
  return started;
}

/** Creates a webhook of a new partner, with a host name that leads to the receiver. */
async function webhookOf(
  target: Receiver,
  host: string,
): Promise<{ id: number; partnerId: number; key: string }> {
  const { partnerId, key } = await service.newPartner();
  const { id } = await register(service, key, target.url());
  await books`UPDATE webhooks SET host = ${host} WHERE webhook_id = ${id}`;
  return { id, partnerId, key };
}

/** Records deliveries of an event, as the event's cause does. */
async function record(webhook: { id: number; partnerId: number }, count: number): Promise<void> {
  const event = `evt_${Date.now().toString(16).padStart(12, '0')}${randomBytes(10).toString('hex')}`;
  await books`INSERT INTO events VALUES (${event}, ${webhook.partnerId}, 'spin.large_win', '{}', now())`;
  await books`
    INSERT INTO deliveries (delivery_id, webhook_id, event_id, max_attempts)
    SELECT 'dlv_' || ${event.slice(4, 24)}::text || lpad(to_hex(n), 12, '0'), ${webhook.id}, ${event}, 5
    FROM generate_series(1, ${count}::int) n`;
}

test('limits webhook attempts to a host in a minute over all webhooks and partners, but not to other hosts', async () => {
  const flooded = await receiver();
  const other = await receiver();
  const webhooks = await Promise.all([1, 2, 3].map(() => webhookOf(flooded, names[0]!)));
  const next = await webhookOf(other, names[3]!);
  const minuteOf = () => Math.floor(Date.now() / 60_000);
  const first = minuteOf();
  await Promise.all(webhooks.map((webhook) => record(webhook, 20)));
  await until(() => flooded.received.length >= AT_ONCE, 'what there is at once is used');
  // The flooded host has used all attempts that it may use at once. While it waits, deliveries for another
  // host still go out, although they are recorded later.
  for (let n = 1; n <= PER_PARTNER / 2; n++) {
    await record(next, 1);
    await until(() => other.received.length === n, 'the other host is told');
  }
  expect(flooded.received.length).toBeLessThanOrEqual(PER_HOST * (minuteOf() - first + 1));
  const most = await books`SELECT max(attempts) AS attempts FROM webhook_hosts WHERE host = ${names[0]!}`;
  expect(most[0]!.attempts).toBeLessThanOrEqual(PER_PARTNER);
  await books`UPDATE webhook_hosts SET minute = minute - 1, attempts = 0 WHERE host = ${names[0]!}`;
  const before = flooded.received.length;
  await until(() => flooded.received.length > before, 'the next minute has attempts of its own');
});

/** Number of failures after which one more failure causes the maximum pause of a minute. */
const FAILURES = 60;

test('sends one attempt at a time to a failing webhook until it answers, and never delays other webhooks', async () => {
  let status = 500;
  const failing = await receiver((_request, response) => void response.writeHead(status).end());
  const webhook = await webhookOf(failing, names[1]!);
  const neighbour = await receiver();
  const other = await webhookOf(neighbour, names[1]!);
  await books`
    INSERT INTO webhook_endpoints (webhook_id, minute, attempts, failures) VALUES (${webhook.id}, 0, 0, ${FAILURES})`;
  await record(webhook, 2);
  const rests = async () =>
    (
      await books`SELECT 1 FROM webhook_endpoints WHERE webhook_id = ${webhook.id} AND not_before > now() AND failures > ${FAILURES}`
    ).length;
  await until(async () => (await rests()) === 1, 'it rests');
  await record(other, 2);
  await until(() => neighbour.received.length === 2, 'the other webhook gets its deliveries');
  expect(failing.received).toHaveLength(1);
  const [listed] = (
    await service.partner<{ webhooks: { health: { restsUntil: string } }[] }>('GET', '/webhooks', webhook.key)
  ).body.webhooks;
  // The list of deliveries has the end of the pause as the time of the waiting delivery.
  const { body } = await service.partner<{ deliveries: { attempts: number; nextAttemptAt: string }[] }>(
    'GET',
    `/webhooks/${webhook.id}/deliveries`,
    webhook.key,
  );
  const untried = body.deliveries.find(({ attempts }) => attempts === 0);
  expect(untried!.nextAttemptAt).toBe(listed!.health.restsUntil);
  status = 204;
  await books`UPDATE webhook_endpoints SET not_before = now() WHERE webhook_id = ${webhook.id}`;
  await books`UPDATE webhook_hosts SET attempts = 0`;
  // The delivery that failed waits for its own retry.
  await until(() => failing.received.length === 2, 'the other is delivered');
  const failures = async () =>
    (await books`SELECT failures FROM webhook_endpoints WHERE webhook_id = ${webhook.id}`)[0]!.failures;
  await until(async () => (await failures()) === 0, 'its failures are forgotten');
});

test('a webhook that pauses between attempts first sends the delivery with the fewest attempts left', async () => {
  const failing = await receiver((_request, response) => void response.writeHead(500).end());
  const webhook = await webhookOf(failing, names[1]!);
  await books`UPDATE webhook_hosts SET attempts = 0`;
  await books`
    INSERT INTO webhook_endpoints (webhook_id, minute, attempts, failures, not_before)
    VALUES (${webhook.id}, 0, 0, ${FAILURES}, 'infinity')`;
  await record(webhook, 3);
  const [tried] = await books<{ delivery_id: string }[]>`
    UPDATE deliveries SET attempts = 4, next_attempt_at = now() WHERE delivery_id = (
      SELECT max(delivery_id) FROM deliveries WHERE webhook_id = ${webhook.id}) RETURNING delivery_id`;
  await books`UPDATE webhook_endpoints SET not_before = '-infinity' WHERE webhook_id = ${webhook.id}`;
  await until(() => failing.received.length > 0, 'an attempt is made');
  expect(failing.received[0]!.headers['x-spindle-delivery-id']).toBe(tried!.delivery_id);
});

test('removes deliveries and events the configured number of days after they ended, and not before', async () => {
  const target = await receiver();
  const webhook = await webhookOf(target, names[2]!);
  await record(webhook, 2);
  await until(() => target.received.length === 2, 'both are delivered');
  const left = async () =>
    Number(
      (
        await books`SELECT count(*) FROM deliveries WHERE webhook_id = ${webhook.id} AND status = 'delivered'`
      )[0]!.count,
    );
  await until(async () => (await left()) === 2, 'both results are written down');
  await removeEndedDeliveries(sql, 30);
  expect(await left()).toBe(2);
  const [old] = await books`
    UPDATE deliveries SET last_attempt_at = now() - interval '31 days' WHERE webhook_id = ${webhook.id}
    RETURNING event_id`;
  const oldId = `evt_000000000000${'0'.repeat(20)}`;
  await books`INSERT INTO events VALUES (${oldId}, ${webhook.partnerId}, 'spin.large_win', '{}', now())`;
  expect(await removeEndedDeliveries(sql, 30)).toBeGreaterThanOrEqual(3);
  expect(await left()).toBe(0);
  expect(await books`SELECT 1 FROM events WHERE event_id = ${oldId}`).toHaveLength(0);
  // The id of this event has today's time, so the event is kept.
  expect(await books`SELECT 1 FROM events WHERE event_id = ${old!.event_id as string}`).toHaveLength(1);
});

test('lists the newest 10,000 deliveries of a webhook at most, and reports this number if there are more', async () => {
  const target = await receiver();
  const webhook = await webhookOf(target, names[2]!);
  await books`UPDATE webhooks SET deleted_at = now() WHERE webhook_id = ${webhook.id}`;
  await record(webhook, 10_050);
  await books`UPDATE webhooks SET deleted_at = NULL, events = '{}' WHERE webhook_id = ${webhook.id}`;
  await books`UPDATE deliveries SET status = 'failed', next_attempt_at = NULL WHERE webhook_id = ${webhook.id} AND status = 'pending'`;
  const page = (n: number) =>
    service.partner<{ deliveries: unknown[]; total: number }>(
      'GET',
      `/webhooks/${webhook.id}/deliveries?page=${n}&limit=100`,
      webhook.key,
    );
  expect((await page(100)).body).toMatchObject({ total: 10_000, deliveries: { length: 100 } });
  expect((await page(101)).body).toMatchObject({ total: 10_000, deliveries: { length: 0 } });
});
