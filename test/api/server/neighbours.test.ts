/** Tests that a partner whose requests take long in Postgres delays neither other partners nor operators. */
import { expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { until } from '../../support/wait.js';

const { service, sql } = world();

/** Number of statements that wait for a lock in the test's database. */
async function blocked(): Promise<number> {
  const rows = await sql`
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  return rows.length;
}

test('while the requests of one partner hang in Postgres, others and operators are answered', async () => {
  const busy = await service.newPartner({ apiRateLimit: 1000 });
  const other = await service.newPartner();
  const list = () => service.partner<{ details?: unknown }>('GET', '/webhooks', busy.key);
  let asked: ReturnType<typeof list>[] = [];
  await sql.begin(async (tx) => {
    await tx`LOCK TABLE webhooks IN ACCESS EXCLUSIVE MODE`;
    asked = Array.from({ length: 300 }, list);
    await until(async () => (await blocked()) >= 6, 'the busy partner has as many connections as it gets');
    // All that follows is answered while the busy partner's statements still wait.
    const answers = await Promise.all([
      service.partner('GET', '/settlements', other.key),
      service.partner('GET', '/events', other.key),
      service.operator('GET', '/partners'),
      service.operator('PUT', '/dealing', { state: 'ON', reason: 'test' }),
      service.request('GET', '/readyz', {}),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
    expect(await blocked()).toBeGreaterThanOrEqual(6);
  });
  const statuses = new Map<number, number>();
  for (const { status } of await Promise.all(asked)) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  // 256 are held, and the rest is refused without a statement.
  expect(Object.fromEntries(statuses)).toEqual({ 200: 256, 429: 44 });
});
