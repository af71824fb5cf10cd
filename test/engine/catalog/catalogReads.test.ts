/**
 * Tests that the catalog reads each change once, even if a change number was never committed, and misses no
 * change that is committed late.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Catalog } from '../../../src/engine/catalog/catalog.js';
import { EventEmitter } from '../../../src/engine/processEvents.js';
import { nextChange } from '../../../src/postgres/auditLog.js';
import { connectPostgres } from '../../../src/postgres/connect.js';
import type { Sql } from '../../../src/postgres/connection.js';
import { world } from '../../setup/world.js';

const NEVER_MS = 3_600_000;

const { stores, service } = world();
let sql: Sql;
let catalog: Catalog;
/** Number of reads of the changed rows. */
let reads = 0;

beforeAll(async () => {
  sql = connectPostgres(stores.databaseUrl, { max: 4, name: 'catalog', onError: () => {} });
  const counting = Object.assign((...query: Parameters<Sql>) => sql(...query), sql, {
    begin: (...transaction: Parameters<Sql['begin']>) => {
      reads++;
      return sql.begin(...transaction);
    },
  }) as Sql;
  catalog = new Catalog(counting, NEVER_MS, new EventEmitter(() => {}));
  await catalog.start();
});

afterAll(async () => {
  await catalog?.stop();
  await sql?.end();
});

async function readsOf(refreshes: number): Promise<number> {
  const before = reads;
  for (let i = 0; i < refreshes; i++) await catalog.refresh();
  return reads - before;
}

const undone = new Error('undone');

test('the catalog reads the changed rows only once after a change was rolled back', async () => {
  await expect(
    sql.begin(async (tx) => {
      await nextChange(tx);
      throw undone;
    }),
  ).rejects.toBe(undone);
  expect(await readsOf(1)).toBe(1);
  expect(await readsOf(5)).toBe(0);
});

test('the catalog reads the changed rows repeatedly while a change is pending, and applies the change once it is committed', async () => {
  const { partnerId } = await service.newPartner();
  await catalog.refresh();
  await sql.begin(async (tx) => {
    const changed = await nextChange(tx);
    await tx`UPDATE partners SET is_active = false, changed = ${changed} WHERE partner_id = ${partnerId}`;
    expect(await readsOf(3)).toBe(3);
    expect(catalog.partner(partnerId)?.isActive).toBe(true);
  });
  expect(await readsOf(1)).toBe(1);
  expect(catalog.partner(partnerId)?.isActive).toBe(false);
  expect(await readsOf(5)).toBe(0);
});
