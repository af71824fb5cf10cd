/** Provides a cell that is open for dealing, in a Redis that is emptied before each test of the file. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { BatchItem } from '../../../src/engine/cells/batch.js';
import { cellToken } from '../../../src/engine/redis/cellRecords.js';
import { cellKey } from '../../../src/engine/redis/keys.js';
import { Scripts } from '../../../src/engine/redis/scripts.js';
import { freshStores } from '../../setup/freshStores.js';
import { CELL, dealOnce, GAME_ID, OUTBOX_MAX } from '../../support/dealing.js';
import { type OpenNodes, openNodes, rawRedis } from '../../support/redis.js';
import { CLAIMED, openedAt } from '../../support/requestSegments.js';
import type { TestStores } from '../../support/stores.js';

class OpenedCell {
  stores!: TestStores;
  redis!: Redis;
  nodes!: OpenNodes;
  /** Scripts of the cell. A test may replace them temporarily. */
  scripts!: Scripts;

  run(items: BatchItem[], options = {}) {
    return dealOnce(this.scripts, items, options);
  }

  load(from: number, ...codes: number[]): Promise<void> {
    const outcomes = Buffer.from(Uint16Array.from(codes).buffer);
    return this.nodes.nodes.cell(CELL).loadBlock(CLAIMED, GAME_ID, from, outcomes);
  }
}

/** Registers the hooks for one file and returns the cell. The cell can be used only within tests. */
export function openedCell(): OpenedCell {
  const opened = new OpenedCell();
  beforeAll(async () => {
    opened.stores = await freshStores();
    opened.redis = rawRedis(opened.stores.redisUrl);
    opened.nodes = await openNodes(opened.stores.redisUrl);
    opened.scripts = new Scripts(opened.nodes.nodes, { outboxMax: OUTBOX_MAX });
  });
  beforeEach(async () => {
    await opened.redis.flushdb();
    await opened.redis.hset(cellKey(CELL), openedAt(cellToken('1', opened.nodes.node.serverId!)));
  });
  afterAll(async () => {
    opened.redis.disconnect();
    opened.nodes.close();
    await opened.stores.drop();
  });
  return opened;
}
