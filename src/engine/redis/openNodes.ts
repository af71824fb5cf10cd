/**
 * Opens the nodes that REDIS_URL names: a single server, or a Redis Cluster if the URL has several addresses.
 */
import { seedsOf } from '../../domain/storeUrl.js';
import { ClusterMap } from './clusterMap.js';
import { RedisNode } from './node.js';
import { fixedMap, RedisNodes } from './nodes.js';

/** @throws Error if the server, or every server of the cluster, is unreachable */
export async function openNodes(
  url: string,
  onError: (error: Error) => void,
  luaDir?: string,
): Promise<RedisNodes> {
  const seeds = seedsOf(url);
  if (seeds.length > 1) {
    if (!/^\/?(0)?$/.test(new URL(seeds[0]!).pathname))
      throw new Error('a Redis Cluster has only database 0');
    return new RedisNodes(await ClusterMap.open(seeds, onError, luaDir));
  }
  const node = new RedisNode(url, onError, luaDir);
  try {
    await node.open();
  } catch (error) {
    node.close();
    throw error;
  }
  return new RedisNodes(fixedMap([node]));
}
