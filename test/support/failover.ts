/** What tests ask of the stores and of a front end where a replica takes over, or should. */
import type postgres from 'postgres';
import { expect } from 'vitest';
import { openNodes } from './redis.js';
import { until } from './wait.js';

/**
 * Each cell began a new epoch: a replica may lack what was acknowledged, and must not deal it again.
 * @returns how many request ids were written to each at the most
 */
export async function wereRepaired(
  sql: postgres.Sql<{ bigint: bigint }>,
  cells: readonly number[],
): Promise<{ cell: number; requests: bigint }[]> {
  const rows = await sql<{ cell: number; requests: bigint }[]>`
    SELECT cell, max(requests) AS requests FROM recoveries
    WHERE reason LIKE 'A replica has taken over%' AND finished_at IS NOT NULL GROUP BY cell`;
  const repaired = new Set(rows.map(({ cell }) => cell));
  expect(cells.filter((cell) => !repaired.has(cell))).toEqual([]);
  return rows.filter(({ cell }) => cells.includes(cell));
}

/** Waits until the ledger has all that was dealt in some cells. */
export const allIsBooked = (redisUrl: string, cells: readonly number[]): Promise<void> =>
  until(async () => {
    const { nodes, close } = await openNodes(redisUrl);
    try {
      const waiting = await Promise.all(cells.map((cell) => nodes.cell(cell).outboxTotals()));
      return waiting.every(({ entries }) => entries === 0);
    } finally {
      close();
    }
  }, 'the ledger has all that was dealt');

/** How often a front end found that all replicas had what a call wrote, and how often not. */
export async function replicaWaits(metricsPort: number): Promise<{ acknowledged: number; late: number }> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const of = (result: string): number =>
    Number(new RegExp(`^spindle_replica_waits_total{result="${result}"} (\\d+)$`, 'm').exec(text)?.[1]);
  return { acknowledged: of('acknowledged'), late: of('late') };
}
