/**
 * Tests that the audit log is immutable: the service's database role can't change it, and changes by the
 * owner of the table are detected.
 */
import postgres from 'postgres';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditChain } from '../../../src/postgres/auditLog.js';
import type { Sql, Transaction } from '../../../src/postgres/connection.js';
import { world } from '../../setup/world.js';

const { stores, service, ownSql: sql } = world();
let books: postgres.Sql;

beforeAll(async () => {
  books = postgres(stores.databaseUrl, { max: 2, onnotice: () => {} });
});
afterAll(async () => {
  await books?.end();
});

test('chains concurrent audit log entries without a gap', async () => {
  await Promise.all(Array.from({ length: 12 }, () => service.newPartner({ contactEmail: 'ä@example.com' })));
  const { entries, faults, head } = await auditChain(sql);
  expect(entries).toBeGreaterThanOrEqual(24);
  expect(faults).toEqual([]);
  expect(head).toMatch(/^[0-9a-f]{64}$/);
  const [row] = await books`SELECT max(audit_id)::int AS newest, count(*)::int AS entries FROM audit_log`;
  expect(row).toEqual({ newest: entries, entries });
});

test('forbids changing or removing an entry of the audit log', async () => {
  const kept = /the audit log is kept/;
  await expect(books`UPDATE audit_log SET actor = 'nobody' WHERE audit_id = 2`).rejects.toThrow(kept);
  await expect(books`DELETE FROM audit_log WHERE audit_id = 2`).rejects.toThrow(kept);
  await expect(books`TRUNCATE audit_log`).rejects.toThrow(kept);
});

test('detects audit log entries that the owner of the table changed or removed', async () => {
  const forced = async (change: (tx: Transaction) => Promise<unknown>): Promise<number[]> => {
    let ids: number[] = [];
    await sql
      .begin(async (tx) => {
        await tx`ALTER TABLE audit_log DISABLE TRIGGER ALL`;
        await change(tx);
        const seen = await auditChain(tx as unknown as Sql);
        ids = seen.faults.map(({ auditId }) => auditId);
        throw new Error('undone');
      })
      .catch((error: Error) => {
        if (error.message !== 'undone') throw error;
      });
    return ids;
  };
  expect(await forced((tx) => tx`UPDATE audit_log SET actor = 'nobody' WHERE audit_id = 3`)).toEqual([3]);
  expect(
    await forced((tx) => tx`UPDATE audit_log SET at = at + interval '1 microsecond' WHERE audit_id = 4`),
  ).toEqual([4]);
  expect(await forced((tx) => tx`DELETE FROM audit_log WHERE audit_id = 5`)).toEqual([6]);
});
