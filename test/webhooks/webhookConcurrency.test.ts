/** Tests the limits of concurrent webhook attempts, for one partner and beside receivers that hang. */
import type { ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { constantsWith } from '../../src/app/constants.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Sql } from '../../src/postgres/connection.js';
import { recordEvents } from '../../src/postgres/partnerEvents.js';
import { claimDue, FEW, PER_PARTNER_MAX } from '../../src/webhooks/deliveries.store.js';
import { freshStores } from '../setup/freshStores.js';
import { type Receiver, type Reply, register, startReceiver } from '../support/receiver.js';
import { startLogged } from '../support/service.js';
import { until } from '../support/wait.js';

async function setUp() {
  const stores = await freshStores();
  onTestFinished(() => stores.drop());
  const service = await startLogged(stores);
  onTestFinished(() => service.running.stop());
  const sql: Sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
  onTestFinished(() => sql.end());
  return { service, sql };
}

async function receiver(reply?: Reply): Promise<Receiver> {
  const started = await startReceiver(reply);
  onTestFinished(() => started.close());
  return started;
}

/** A receiver that answers nothing until it is released. */
async function heldReceiver(): Promise<Receiver & { release(): void }> {
  const held: ServerResponse[] = [];
  let isHeld = true;
  const started = await receiver((_request, response) => {
    if (isHeld) held.push(response);
    else response.writeHead(204).end();
  });
  const release = (): void => {
    isHeld = false;
    for (const response of held.splice(0)) response.writeHead(204).end();
  };
  return { ...started, release };
}

/** Records events of a partner, each with a delivery to every webhook of the partner. */
async function happen(sql: Sql, partnerIds: readonly number[], count: number): Promise<void> {
  const data = { gameId: 1, readyBlocks: 0, minReadyBlocks: 1 };
  const createdAt = new Date();
  const events = partnerIds.flatMap((partnerId) =>
    Array.from({ length: count }, () => ({
      event: 'block.low_reserve' as const,
      partnerId,
      createdAt,
      data,
    })),
  );
  await sql.begin((tx) => recordEvents(tx, events));
}

const EVENTS = ['block.low_reserve'];

test('makes 64 attempts for a partner at a time, and names this limit while more deliveries wait', async () => {
  const { service, sql } = await setUp();
  const to = await heldReceiver();
  const { key, partnerId } = await service.newPartner();
  // Two webhooks share the limit of their partner.
  await register(service, key, to.url('/one'), EVENTS);
  await register(service, key, to.url('/two'), EVENTS);
  const each = 2 * PER_PARTNER_MAX;
  await happen(sql, [partnerId], each);
  const limits = async (): Promise<unknown[]> => {
    const { body } = await service.partner<{ webhooks: { health: { limitedBy: unknown } }[] }>(
      'GET',
      '/webhooks',
      key,
    );
    return body.webhooks.map(({ health }) => health.limitedBy);
  };
  expect(await limits()).toEqual([null, null]);
  await until(() => to.received.length >= PER_PARTNER_MAX, 'attempts are in progress');
  await until(
    async () => (await limits()).every((limit) => limit === 'partner-concurrency'),
    'the limit is named',
  );
  expect(to.received).toHaveLength(PER_PARTNER_MAX);
  expect(to.received.filter(({ path }) => path === '/one')).toHaveLength(PER_PARTNER_MAX / 2);
  const waited = 'spindle_webhook_oldest_due_seconds{limited_by="partner-concurrency"}';
  expect(await service.metric(waited)).toBeGreaterThan(0);
  to.release();
  await until(() => to.received.length === 2 * each, 'the others are attempted');
  await until(
    async () => (await limits()).every((limit) => limit === null),
    'the limit is not named any more',
  );
  expect(await service.metric(waited)).toBe(0);
});

test('makes 4 attempts to a slow webhook at a time, and names this limit while more deliveries wait', async () => {
  const { service, sql } = await setUp();
  const to = await heldReceiver();
  const { key, partnerId } = await service.newPartner();
  await register(service, key, to.url(), EVENTS);
  await happen(sql, [partnerId], 1);
  await until(() => to.received.length === 1, 'the first attempt is in progress');
  const begun = to.received[0]!.atMs;
  await until(() => performance.now() - begun > 2500, 'the webhook counts as slow');
  await happen(sql, [partnerId], 2 * FEW);
  await until(() => to.received.length === FEW, 'it has as many attempts as it may have');
  await until(async () => {
    const { body } = await service.partner<{ webhooks: { health: { limitedBy: unknown } }[] }>(
      'GET',
      '/webhooks',
      key,
    );
    return body.webhooks[0]!.health.limitedBy === 'webhook-concurrency';
  }, 'the limit is named');
  expect(to.received).toHaveLength(FEW);
});

test('attempts every delivery of 20 partners before those that a receiver of another partner holds have ended', async () => {
  const { service, sql } = await setUp();
  const held = await heldReceiver();
  const quick = await receiver();
  const stalled = await service.newPartner();
  await register(service, stalled.key, held.url(), EVENTS);
  const others = await Promise.all(Array.from({ length: 20 }, () => service.newPartner()));
  await Promise.all(others.map(({ key }) => register(service, key, quick.url(), EVENTS)));
  await happen(sql, [stalled.partnerId], 2 * PER_PARTNER_MAX);
  await until(
    () => held.received.length === PER_PARTNER_MAX,
    'the partner has as many attempts as it may have',
  );
  const each = 2 * PER_PARTNER_MAX;
  await happen(
    sql,
    others.map(({ partnerId }) => partnerId),
    each,
  );
  await until(() => quick.received.length === others.length * each, 'the others have all their deliveries');
  expect(held.received).toHaveLength(PER_PARTNER_MAX);
  expect(held.connections.open).toBe(PER_PARTNER_MAX);
});

test.each([
  { deliveries: 6500, partners: 50, roundsMax: 14 },
  { deliveries: 2500, partners: 1, roundsMax: 40 },
])(
  'claims $deliveries deliveries to one host in at most $roundsMax rounds of attempts (partners: $partners)',
  async ({ deliveries, partners, roundsMax }) => {
    const { service, sql } = await setUp();
    const made = await Promise.all(Array.from({ length: partners }, () => service.newPartner()));
    await Promise.all(made.map(({ key }) => register(service, key, 'http://localhost:9/', EVENTS)));
    await service.running.stop();
    await happen(
      sql,
      made.map(({ partnerId }) => partnerId),
      deliveries / partners,
    );
    const limits = {
      perPartner: PER_PARTNER_MAX,
      perWebhook: PER_PARTNER_MAX,
      room: 512,
      roomBeyondFew: 512,
      perHost: constantsWith().webhookHostAttemptsMax,
      leaseMs: 3_600_000,
    };
    let claimed = 0;
    let rounds = 0;
    // All attempts of a round have ended before the next round begins.
    for (; claimed < deliveries && rounds < roundsMax; rounds++)
      claimed += (await claimDue(sql, new Map(), { webhooks: [], only: false }, limits)).length;
    expect(claimed).toBe(deliveries);
  },
);
