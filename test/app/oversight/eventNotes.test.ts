/** Tests the system events in the audit log (docs/operations.md, "The audit log"). */
import { expect, test } from 'vitest';
import { EventNotes } from '../../../src/app/oversight/eventNotes.js';
import { haltCell } from '../../../src/engine/cells/cells.store.js';
import { EventEmitter } from '../../../src/engine/processEvents.js';
import { world } from '../../setup/world.js';
import { constants, startService } from '../../support/service.js';
import { until } from '../../support/wait.js';

const { stores, service, ownSql: sql } = world(constants({ authFailureLimit: 3 }));

interface Entry {
  action: string;
  actor: string;
  subject: string;
  after: Record<string, unknown> | null;
}
const entriesOf = (action: string) =>
  sql<
    Entry[]
  >`SELECT action, actor, subject, after FROM audit_log WHERE action = ${action} ORDER BY audit_id`;

test('records the start and the stop of a process in the audit log', async () => {
  expect(await entriesOf('service.start')).toMatchObject([
    { actor: 'worker', after: { version: expect.any(String), roles: 'http,worker' } },
  ]);
  const other = await startService(stores, { ROLES: 'http' });
  await other.stop();
  expect((await entriesOf('service.start')).at(-1)).toMatchObject({ after: { roles: 'http' } });
  expect(await entriesOf('service.stop')).toMatchObject([{ after: { roles: 'http' } }]);
});

test('records each operator request that the role does not permit, and writes the first record at once', async () => {
  const made = await service.operator<{ apiKey: string }>('POST', '/operators', {
    name: 'ute',
    role: 'auditor',
  });
  const ask = () =>
    service.request('POST', '/api/operator/v1/partners', {
      key: made.body.apiKey,
      body: { slug: 'x', name: 'X', environment: 'sandbox' },
    });
  for (let times = 0; times < 5; times++) expect((await ask()).status).toBe(403);
  await until(async () => (await entriesOf('operator.refused')).length > 0, 'it is told');
  const [first, ...others] = await entriesOf('operator.refused');
  expect(first).toMatchObject({
    actor: 'ute',
    subject: 'operator:ute',
    after: { operation: 'createPartner', count: expect.any(Number), since: expect.any(String) },
  });
  expect(others).toEqual([]);
});

test('records the address of a stranger who fails too often to authenticate as an operator', async () => {
  await service.request('GET', '/api/operator/v1/partners', {});
  const key = `kso_${'A'.repeat(43)}`;
  for (let times = 0; times < 6; times++) await service.request('GET', '/api/operator/v1/partners', { key });
  await until(async () => (await entriesOf('auth.window')).length > 0, 'it is told');
  // Each wrong key before the limit is recorded too, the first one at once. A request without a key does not
  // count as a failed attempt.
  await until(async () => (await entriesOf('auth.failed')).length > 0, 'the wrong key is told');
  expect(await entriesOf('auth.failed')).toMatchObject([
    {
      actor: 'worker',
      subject: 'api:operator',
      after: { errorCode: 'KS-4002', address: '127.0.0.1', count: expect.any(Number) },
    },
  ]);
  expect(await entriesOf('auth.window')).toMatchObject([{ actor: 'worker', subject: 'address:127.0.0.1' }]);
});

test('records the halt of a cell once in the audit log', async () => {
  await haltCell(sql, 1, 'a test');
  await haltCell(sql, 1, 'again');
  expect(await entriesOf('cell.halt')).toEqual([
    { action: 'cell.halt', actor: 'worker', subject: 'cell:1', after: { reason: 'a test' } },
  ]);
});

test('counts frequent system events by subject without losing any, and counts subjects beyond 1,000 together', async () => {
  const events = new EventEmitter(() => {});
  const notes = new EventNotes(sql, { host: 'counted', version: '0', roles: 'http', events });
  await notes.start();
  for (let cell = 10_000; cell < 11_100; cell++)
    for (let times = 0; times < 3; times++) events.emit('CellRefused', { cell, reason: 'a test' });
  await notes.stop();
  const told = (await entriesOf('cell.refuse')).filter(({ after }) => after?.reason === 'a test');
  const counts = new Map<string, number>();
  for (const { subject, after } of told)
    counts.set(subject, (counts.get(subject) ?? 0) + Number(after?.count));
  expect(counts.get('cell:10000')).toBe(3);
  expect(counts.get('others')).toBe(300);
  expect(counts.size).toBe(1001);
  // The first event of a subject is recorded at once. Its other events of that minute share one further
  // entry, which is written when the service stops at the latest.
  expect(told.length).toBeLessThanOrEqual(2 * 1001);
});
