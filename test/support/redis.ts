/** How tests reach Redis: past the service, to look at its data or to damage it, and through the nodes of src/redis. */
import { Redis } from 'ioredis';
import { RedisNode } from '../../src/redis/node.js';
import { RedisNodes } from '../../src/redis/nodes.js';

/** A raw connection. Streams have one shape on every server. */
export const rawRedis = (url: string): Redis => new Redis(url, { protocol: 2 }).on('error', () => {});

export interface OpenNodes {
  readonly nodes: RedisNodes;
  readonly node: RedisNode;
  close(): void;
}

/** One node that holds all cells. @param luaDir other operations than those of lua/ @throws where the server can't be reached. */
export async function openNodes(url: string, luaDir?: string): Promise<OpenNodes> {
  const node = new RedisNode(url, () => {}, luaDir);
  try {
    await node.open();
  } catch (error) {
    node.close();
    throw error;
  }
  return { nodes: new RedisNodes([node]), node, close: () => node.close() };
}
