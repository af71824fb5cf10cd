/** Tests the list of the audit log by time and as CSV. */
import { beforeAll, expect, test } from 'vitest';
import { world } from '../../setup/world.js';
import { OPERATOR_KEY } from '../../support/client.js';

interface Entry {
  readonly auditId: number;
  readonly at: string;
  readonly action: string;
}

const { service } = world();

beforeAll(async () => {
  const { partnerId } = await service.newPartner();
  for (let i = 1; i <= 9; i++)
    await service.operator('PATCH', `/partners/${partnerId}`, { spinRateLimit: i, reason: `=${i}` });
});

const read = async (query: string): Promise<{ entries: Entry[]; total: number }> => {
  const answer = await service.operator<{ entries: Entry[]; total: number }>(
    'GET',
    `/audit-log?action=partner.update&limit=100${query}`,
  );
  expect(answer.status).toBe(200);
  return answer.body;
};

test('the audit log of a range of time has exactly the entries of that time', async () => {
  const { entries: all } = await read('');
  expect(all).toHaveLength(9);
  const [from, to] = [all[7]!.at, all[2]!.at];
  const { entries, total } = await read(`&from=${from}&to=${to}`);
  // A time in a response has milliseconds, so an entry within the millisecond of the end may be left out.
  const ids = entries.map(({ auditId }) => auditId);
  const inside = all.slice(3, 7).map(({ auditId }) => auditId);
  expect(ids).toEqual(expect.arrayContaining(inside));
  expect(entries.every(({ at }) => at >= from && at < to)).toBe(true);
  expect(total).toBe(entries.length);
  expect((await read('&from=2099-01-01T00:00:00Z')).total).toBe(0);
});

test('the audit log as CSV has all entries of the filter, with formulas neutralized if asked', async () => {
  const csv = async (query: string): Promise<string[]> => {
    const path = `/api/operator/v1/audit-log?action=partner.update&limit=2${query}`;
    const answer = await service.request('GET', path, { key: OPERATOR_KEY, headers: { Accept: 'text/csv' } });
    expect(answer.headers.get('content-type')).toMatch(/^text\/csv/);
    return answer.text.split('\r\n').slice(0, -1);
  };
  const [head, ...rows] = await csv('&escapeFormulas=true');
  const { entries } = await read('');
  expect(head).toBe('auditId,at,actor,action,subject,before,after,hash');
  expect(rows.map((row) => Number(row.split(',')[0]))).toEqual(entries.map(({ auditId }) => auditId));
  expect(rows[0]).toContain(`,"operator","partner.update","partner:`);
  expect(rows[0]).toContain(`""reason"":""=9""`);
  expect(await csv(`&from=${entries[0]!.at}`)).toHaveLength(2);
  expect(await csv('&to=2020-01-01T00:00:00Z')).toEqual([head]);
});
