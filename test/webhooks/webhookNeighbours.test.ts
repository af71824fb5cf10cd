/** Tests that webhooks on one host take turns, so that a dead or busy webhook does not delay the others. */
import { expect, onTestFinished, test } from 'vitest';
import type { Constants } from '../../src/app/constants.js';
import { connectPostgres } from '../../src/postgres/connect.js';
import type { Sql } from '../../src/postgres/connection.js';
import { recordEvents } from '../../src/postgres/partnerEvents.js';
import { claimDue } from '../../src/webhooks/deliveries.store.js';
import { freshStores } from '../setup/freshStores.js';
import { type Receiver, type Reply, register, startReceiver } from '../support/receiver.js';
import { constants, startService } from '../support/service.js';
import { until } from '../support/wait.js';

/** Number of consecutive failures after which a webhook pauses between attempts. */
const FAILURES = 50;
const refuse: Reply = (_request, response) => void response.writeHead(500).end();

interface Neighbourhood {
  readonly sql: Sql;
  /** Stops the service, so that it delivers nothing more. */
  stop(): Promise<void>;
  /** Registers another webhook of the same partner on the same host, at another port. */
  move(reply?: Reply): Promise<Receiver & { happen(count: number): Promise<void> }>;
}

/** A partner with webhooks on localhost. Each webhook receives its own type of events. */
async function neighbourhood(changed: Partial<Constants>): Promise<Neighbourhood> {
  const stores = await freshStores();
  onTestFinished(() => stores.drop());
  const service = await startService(stores, constants({ webhookRetryDelaysMs: [3_600_000], ...changed }));
  onTestFinished(() => service.stop());
  const sql: Sql = connectPostgres(stores.databaseUrl, { max: 2, name: 'test', onError: () => {} });
  onTestFinished(() => sql.end());
  const { key, partnerId } = await service.newPartner();
  const createdAt = new Date();
  const kinds = [
    {
      event: 'settlement.report_ready',
      data: { reportDate: '2026-05-01', revision: 1, integrityHash: '', totalSpins: 1, ggrUsd: 1 },
    },
    { event: 'block.low_reserve', data: { gameId: 1, readyBlocks: 0, minReadyBlocks: 1 } },
    { event: 'api_key.expiring', data: { keyId: 1, name: null, expiresAt: '', daysLeft: 1 } },
    {
      event: 'spin.large_win',
      data: { spinId: '', gameId: 1, playerId: 'a', payoutUsd: 1, prizeTier: 6 },
    },
  ] as const;
  let moved = 0;
  return {
    sql,
    stop: () => service.stop(),
    async move(reply) {
      const receiver = await startReceiver(reply);
      onTestFinished(() => receiver.close());
      const kind = kinds[moved++]!;
      await register(service, key, receiver.url(), [kind.event]);
      const happen = async (count: number): Promise<void> => {
        const event = { ...kind, partnerId, createdAt };
        await sql.begin((tx) => recordEvents(tx, Array(count).fill(event)));
      };
      return { ...receiver, happen };
    },
  };
}

test('a live webhook gets its delivery before three failing ones on its host get two more turns each', async () => {
  const { move, sql } = await neighbourhood({});
  const dead = [await move(refuse), await move(refuse), await move(refuse)];
  const live = await move();
  const toDead = (): number => dead.reduce((sum, { received }) => sum + received.length, 0);
  // The failing webhooks get far more events than they can send while they fail, so their remaining
  // deliveries are due before those of the live webhook.
  for (const { happen } of dead) await happen(4 * FAILURES);
  await until(() => toDead() >= FAILURES, 'they fail');
  for (const count of [1, 2, 3]) {
    await live.happen(1);
    // The event may wait for some time before this process is notified of its commit.
    const committedMs = performance.now();
    await until(() => live.received.length === count, 'the live one gets its delivery');
    const inBetween = dead
      .flatMap(({ received }) => received)
      .filter(({ atMs }) => atMs > committedMs && atMs < live.received[count - 1]!.atMs).length;
    // In the first round the failing webhooks may still fail quickly, up to the limit of each webhook.
    if (count > 1) expect(inBetween).toBeLessThanOrEqual(2 * dead.length);
    await until(() => dead.every(({ received }) => received.length >= FAILURES), 'each rests');
  }
  expect(toDead()).toBeLessThan(2 * dead.length * FAILURES);
  // The live webhook must get its delivery however long the failing webhooks pause.
  await sql`UPDATE webhook_endpoints SET not_before = now() + interval '1 hour' WHERE failures >= ${FAILURES}`;
  await live.happen(1);
  await until(() => live.received.length === 4, 'the live one gets another delivery');
});

test("gives a partner's last attempt to a host to a webhook that never failed, even if failing ones wait longer", async () => {
  const { move, sql, stop } = await neighbourhood({});
  const [failing, quiet] = [await move(), await move()];
  await stop();
  await failing.happen(2);
  await quiet.happen(1);
  const [first, second] = await sql<
    { webhookId: number }[]
  >`SELECT webhook_id FROM webhooks ORDER BY webhook_id`;
  await sql`
    UPDATE deliveries SET next_attempt_at = now() - interval '1 hour' WHERE webhook_id = ${first!.webhookId}`;
  await sql`
    INSERT INTO webhook_endpoints (webhook_id, minute, attempts, failures) VALUES (${first!.webhookId}, 0, 0, 1)`;
  // The partner may use half of the host's limit, which is one attempt a minute here.
  const limits = { perPartner: 4, perWebhook: 4, perHost: 2, room: 4, roomBeyondFew: 0, leaseMs: 60_000 };
  const claimed = await claimDue(sql, new Map(), { webhooks: [], only: false }, limits);
  expect(claimed.map(({ webhookId }) => webhookId)).toEqual([second!.webhookId]);
});

test('a webhook that used all attempts to its host leaves the next turn to a webhook that had none', async () => {
  // One partner may use half of a minute's attempts. Half of that is available at the start of the minute,
  // and then one attempt every two seconds.
  const { move, sql } = await neighbourhood({ webhookHostAttemptsMax: 120 });
  const [busy, quiet] = [await move(), await move()];
  const now = async () => {
    const [row] = await sql<{ second: number; begun: number; available: number }[]>`
      SELECT second::float8, (SELECT coalesce(sum(attempts), 0) FROM webhook_hosts WHERE minute = this_minute)::int AS begun,
        ceil(60 * (1 + second / 60) / 2)::int AS available
      FROM (SELECT mod(extract(epoch FROM now()), 60) AS second, floor(extract(epoch FROM now()) / 60) AS this_minute) t`;
    return row!;
  };
  // A new minute would make half of the attempts available again.
  await until(async () => (await now()).second < 40, 'the minute is not about to end');
  await busy.happen(500);
  await until(async () => {
    const { begun, available } = await now();
    return begun >= available;
  }, 'it has had what there is at once');
  const { begun: before, second: from } = await now();
  await quiet.happen(1);
  await until(() => quiet.received.length === 1, 'the quiet one gets its delivery');
  const { begun: after, second: to } = await now();
  // The busy webhook gets no more than becomes available meanwhile.
  expect(to).toBeGreaterThan(from);
  expect(after - before).toBeLessThanOrEqual(2 + (to - from) / 2);
});
