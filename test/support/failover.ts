/**
 * Checks of the stores and of a front end, for tests in which a replica takes over from its primary, or
 * should take over.
 */
import type postgres from 'postgres';
import { expect } from 'vitest';
import { auditFindings } from './communal.js';
import { openNodes } from './redis.js';
import type { StoreUrls } from './stores.js';
import { until } from './wait.js';

/**
 * Checks that each cell began a new epoch, because a replica may lack acknowledged spins and must not deal
 * their outcomes again.
 * @returns the maximum, over all cells, of the number of request ids that were written to a cell
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

/** Waits until the ledger has every entry of the given cells. */
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

/**
 * Waits until an audit finds no violation. Repeats the audit if it was interrupted because a server that has
 * just restarted still considers itself a primary.
 */
export async function auditIsClean(stores: StoreUrls): Promise<void> {
  const isClean = async (): Promise<boolean> => (await auditFindings(stores)).length === 0;
  await until(() => isClean().catch(() => false), 'the audit is clean');
}

/** Returns the value of a time series in the metrics of a front end. */
async function seriesOf(metricsPort: number, series: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length));
}

/** Returns how often a front end's wait for all replicas succeeded, and how often it took too long. */
export async function replicaWaits(metricsPort: number): Promise<{ acknowledged: number; late: number }> {
  const of = (result: string) => seriesOf(metricsPort, `spindle_replica_waits_total{result="${result}"}`);
  return { acknowledged: await of('acknowledged'), late: await of('late') };
}

/**
 * Returns the number of settings of replicas, as a front end knows them, with which acknowledged writes could
 * be lost.
 */
export const volatileReplicas = (metricsPort: number): Promise<number> =>
  seriesOf(metricsPort, 'spindle_replicas_volatile');
