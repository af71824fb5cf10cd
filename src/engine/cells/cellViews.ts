/**
 * Reports the state of the cells and their Redis servers to operators. The report says which servers do not
 * respond in time.
 */

import { withTimeout } from '../../platform/runtime/withTimeout.js';
import type { RedisNodes } from '../redis/nodes.js';
import { slotOfCell } from '../redis/slots.js';

const REDIS_WITHIN_MS = 1000;

const ofRedis = <T>(asked: Promise<T>): Promise<T | null> =>
  withTimeout(asked, REDIS_WITHIN_MS).catch(() => null);

export class CellViews {
  constructor(private readonly nodes: Pick<RedisNodes, 'all' | 'cell' | 'isCluster'>) {}

  /**
   * Returns the node of a cell and the backlog of its outbox. The values of the outbox are null if the server
   * does not respond.
   */
  async of(cell: number) {
    const store = this.nodes.cell(cell);
    const [outboxAgeSeconds, totals] = await Promise.all([
      ofRedis(store.outboxAgeSeconds()),
      ofRedis(store.outboxTotals()),
    ]);
    return {
      node: store.node.address,
      /** Hash slot of the cell; null if Redis is not a cluster. */
      slot: this.nodes.isCluster ? slotOfCell(cell) : null,
      outboxAgeSeconds,
      outboxEntries: totals?.entries ?? null,
    };
  }

  servers() {
    return Promise.all(
      this.nodes.all.map(async (node) => {
        const use = await ofRedis(node.use());
        return {
          isReady: node.isReady,
          volatile: [...node.durability.volatile],
          memoryBytes: use?.memoryBytes ?? null,
          maxMemoryBytes: use?.maxMemoryBytes ?? null,
        };
      }),
    );
  }
}
