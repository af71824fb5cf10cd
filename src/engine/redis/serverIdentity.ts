/**
 * Identifies the runs of a cluster's servers as `<run_id>.<replication id>.<node id>.<configuration epoch>`.
 * The ids of two runs tell whether the second run may lack writes that the first run acknowledged.
 *
 * A single server is identified by its run_id alone, because its data can only come from its own append-only
 * file.
 */
import type { Redis } from 'ioredis';
import { type ClusterView, readClusterNodes } from './clusterView.js';

/**
 * Number of digits that are kept of a replication id and a node id. Of their 40 digits, 12 suffice to
 * distinguish a few servers.
 */
const DIGITS = 12;

/** @returns undefined if the server is a replica, which must not be used */
export async function readMemberId(
  client: Redis,
  host: string,
  onView: (view: ClusterView) => void,
): Promise<string | undefined> {
  const [nodes, info] = await Promise.all([
    client.call('CLUSTER', 'NODES') as Promise<string>,
    client.info('server', 'replication'),
  ]);
  const view = readClusterNodes(nodes, host);
  onView(view);
  if (view.self === undefined) return undefined;
  const runId = /^run_id:(\w+)/m.exec(info)?.[1];
  const replicationId = /^master_replid:(\w+)/m.exec(info)?.[1];
  const { nodeId, configEpoch } = view.self;
  return [runId, replicationId?.slice(0, DIGITS), nodeId.slice(0, DIGITS), configEpoch].join('.');
}

export const runOf = (serverId: string): string => serverId.split('.')[0]!;

/**
 * Returns the server id that is written to a closed cell. Nothing can be dealt from the cell under this id,
 * but the id still tells where the cell's data comes from.
 */
export const closedName = (serverId: string): string => ['none', ...serverId.split('.').slice(1)].join('.');

/**
 * True if the second run may lack writes that the first run acknowledged, because its data came by
 * asynchronous replication. The result is false if no failover happened in between:
 * - the same process under the same replication id
 * - the same node under the same configuration epoch, restarted from its own append-only file
 */
export function mayLack(before: string, now: string): boolean {
  const [runId, replicationId, nodeId, configEpoch] = before.split('.');
  const [runIdNow, replicationIdNow, nodeIdNow, configEpochNow] = now.split('.');
  if (configEpochNow === undefined) return false;
  const isSameRun = runId === runIdNow && replicationId === replicationIdNow;
  const isSameLog = nodeId === nodeIdNow && configEpoch === configEpochNow;
  return !isSameRun && !isSameLog;
}
