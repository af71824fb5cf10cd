/**
 * Tests how the number of entries of a ledger day is found: small days are counted, large days are estimated.
 */
import { expect, test } from 'vitest';
import { idsOfDay, LedgerDays } from '../../../src/books/archive/ledgerDays.store.js';
import { ensurePartition } from '../../../src/engine/ledger/ledger.store.js';
import { world } from '../../setup/world.js';

const { ownSql: sql } = world();

/**
 * Inserts openings on a day. Autovacuum never analyses the table of the day, so statistics are missing until
 * ANALYZE.
 */
async function book(day: string, entries: number): Promise<void> {
  const ids = idsOfDay(day);
  await ensurePartition(sql, day, ids);
  await sql`
    INSERT INTO ledger SELECT ${String(ids.from)}::bigint + n, 0, 0, 1000000, 1000000, 0, 1, 0, n, 0, 2, 'player-' || n, 'request-' || n
    FROM generate_series(0, ${entries - 1}::int) AS n`;
}

test('counts the entries of a small ledger day, and estimates those of a large day even before Postgres analysed it', async () => {
  const [small, large, analysed] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
  await book(small, 33);
  await book(large, 40_000);
  await book(analysed, 40_000);
  await sql`ANALYZE ledger_20260103`;
  const days = await new LedgerDays(sql).list('2026-01-03');
  expect(days).toMatchObject([
    { day: small, entries: 33, isEstimate: false },
    { day: large, isEstimate: true },
    { day: analysed, isEstimate: true },
  ]);
  const [, unknown, known] = days.map(({ entries }) => entries);
  expect(known).toBe(40_000);
  expect(unknown).toBeGreaterThan(20_000);
  expect(unknown).toBeLessThan(80_000);
});
