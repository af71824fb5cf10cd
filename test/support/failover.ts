/** What tests ask of the stores and of a front end where a replica takes over, or should. */
import type postgres from 'postgres';
import { expect } from 'vitest';
import { auditFindings } from './communal.js';
import { openNodes } from './redis.js';
import type { StoreUrls } from './stores.js';
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

/** Waits until an audit finds nothing. One that asks a server which just came back, and takes itself for a primary still, is interrupted. */
export async function auditIsClean(stores: StoreUrls): Promise<void> {
  const isClean = async (): Promise<boolean> => (await auditFindings(stores)).length === 0;
  await until(() => isClean().catch(() => false), 'the audit is clean');
}

/** The value of a series of a front end's metrics. */
async function seriesOf(metricsPort: number, series: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${series} `));
  return Number(line?.slice(series.length));
}

/** How often a front end found that all replicas had what a call wrote, and how often not. */
export async function replicaWaits(metricsPort: number): Promise<{ acknowledged: number; late: number }> {
  const of = (result: string) => seriesOf(metricsPort, `spindle_replica_waits_total{result="${result}"}`);
  return { acknowledged: await of('acknowledged'), late: await of('late') };
}

/** How many settings of replicas a front end knows that let them lose what they acknowledged. */
export const volatileReplicas = (metricsPort: number): Promise<number> =>
  seriesOf(metricsPort, 'spindle_replicas_volatile');
