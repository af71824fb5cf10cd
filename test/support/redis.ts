/** How tests reach Redis: past the service, to look at its data or to damage it, and through the nodes of src/redis. */
import { Redis } from 'ioredis';
import type { RedisNode } from '../../src/redis/node.js';
import type { RedisNodes } from '../../src/redis/nodes.js';
import { openNodes as open } from '../../src/redis/openNodes.js';

/** A raw connection. Streams have one shape on every server. */
export const rawRedis = (url: string): Redis => new Redis(url, { protocol: 2 }).on('error', () => {});

export interface OpenNodes {
  readonly nodes: RedisNodes;
  /** The only one, or the first of a cluster. */
  readonly node: RedisNode;
  close(): void;
}

/** @param luaDir other operations than those of lua/ @throws where no server can be reached. */
export async function openNodes(url: string, luaDir?: string): Promise<OpenNodes> {
  const nodes = await open(url, () => {}, luaDir);
  return { nodes, node: nodes.all[0]!, close: () => nodes.close() };
}
