/**
 * Names of the runs of a cluster's servers: `<run_id>.<replication id>.<node id>.<configuration epoch>`. From the names of two runs
 * it can be told whether what the first one had acknowledged may be missing in the second.
 *
 * A single server is named by its run_id alone: its data come from its own log and nowhere else.
 */
import type { Redis } from 'ioredis';
import { type ClusterView, readClusterNodes } from './clusterView.js';

/** Of the 40 digits of a replication id and a node id: enough to distinguish a few. */
const DIGITS = 12;

/**
 * Asks a server of a cluster for its name and for what it knows of the cluster.
 * @returns undefined where it is a replica, which serves nothing.
 */
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

/** The run_id in a name. */
export const runOf = (serverId: string): string => serverId.split('.')[0]!;

/** The name of a server that nobody deals from, and from which it can still be told where the data come from. */
export const closedName = (serverId: string): string => ['none', ...serverId.split('.').slice(1)].join('.');

/**
 * What was acknowledged under the first name may be missing under the second: the data came by replication, which is behind.
 * Not so where nobody took over meanwhile (the same process under the same replication id; the same node under the same
 * configuration epoch, started again from its own log).
 */
export function mayLack(before: string, now: string): boolean {
  const [runId, replicationId, nodeId, configEpoch] = before.split('.');
  const [runIdNow, replicationIdNow, nodeIdNow, configEpochNow] = now.split('.');
  if (configEpochNow === undefined) return false;
  const isSameRun = runId === runIdNow && replicationId === replicationIdNow;
  const isSameLog = nodeId === nodeIdNow && configEpoch === configEpochNow;
  return !isSameRun && !isSameLog;
}
