/**
 * Tests the outbox reader after an outage: the amount of data that it holds in memory is limited, whatever
 * the size of the backlog.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { firstIdAt } from '../../../src/domain/entryId.js';
import { cellKey, outboxKey } from '../../../src/engine/redis/keys.js';
import { type OutboxPosition, OutboxReader, READ_BYTES_MAX } from '../../../src/engine/redis/outboxReader.js';
import { freshStores } from '../../setup/freshStores.js';
import { Cleanup } from '../../support/cleanup.js';
import { openNodes, rawRedis } from '../../support/redis.js';
import type { TestStores } from '../../support/stores.js';
import { until } from '../../support/wait.js';

/**
 * Size in bytes of a batch of 128 spins whose player ids and request ids have 128 characters of four bytes
 * each.
 */
const BATCH_BYTES = 128 * 1100;
const FIRST_MS = Date.UTC(2026, 0, 1);

const cleanup = new Cleanup();
let stores: TestStores;
let reader: OutboxReader;

beforeAll(async () => {
  stores = await freshStores();
  cleanup.add(() => stores.drop());
  const { nodes, node, close } = await openNodes(stores.redisUrl);
  cleanup.add(close);
  reader = new OutboxReader(node, nodes, () => {});
  cleanup.add(() => reader.close());
  await until(() => reader.isAtNode, 'the reader is connected');
});

afterAll(() => cleanup.run());

const u48s = (...values: number[]): Buffer => {
  const buffer = Buffer.alloc(values.length * 6);
  values.forEach((value, i) => void buffer.writeUIntLE(value, i * 6, 6));
  return buffer;
};

/** Fills the outbox of a cell with batches. The first batch is one millisecond after {@link FIRST_MS}. */
async function fill(cell: number, batches: number): Promise<void> {
  const redis = rawRedis(stores.redisUrl);
  const records = Buffer.alloc(BATCH_BYTES, cell);
  for (let i = 0; i < batches; i++) {
    const totals = u48s(i * 128, i * BATCH_BYTES);
    await redis.xadd(outboxKey(cell), `${FIRST_MS + 1 + i}-0`, 'b', records, 't', totals);
  }
  const last = Buffer.concat([
    u48s(FIRST_MS + batches),
    Buffer.alloc(2),
    u48s(batches * 128, batches * BATCH_BYTES),
  ]);
  await redis.hset(cellKey(cell), 'last', last);
  redis.disconnect();
}

test('reads a backlog of 256 cells with ids of 128 characters completely and in order, 32 MB at a time', async () => {
  const cells = new Map(Array.from({ length: 256 }, (_, cell) => [cell, 3]));
  // One of the 256 cells has more batches than a single read takes.
  cells.set(7, 300);
  for (const [cell, batches] of cells) await fill(cell, batches);
  const positions = new Map<number, OutboxPosition>();
  for (const cell of cells.keys()) positions.set(cell, { cell, cursor: firstIdAt(FIRST_MS), epoch: 'none' });
  const counts = new Map<number, number>();
  let largest = 0;
  let reads = 0;
  for (let isMore = true; isMore; reads++) {
    const read = await reader.read([...positions.values()], 0);
    isMore = read.isMore;
    let bytes = 0;
    for (const { cell, batches } of read.cells) {
      const count = counts.get(cell) ?? 0;
      batches.forEach(({ records, before }, i) => {
        bytes += records.length;
        expect(before).toEqual({ entries: (count + i) * 128, bytes: (count + i) * BATCH_BYTES });
      });
      counts.set(cell, count + batches.length);
      // Marks the entries as committed, as the flusher does.
      const redis = rawRedis(stores.redisUrl);
      const done = counts.get(cell)!;
      await redis.hset(
        cellKey(cell),
        'booked',
        Buffer.concat([Buffer.alloc(8), u48s(done * 128, done * BATCH_BYTES)]),
      );
      redis.disconnect();
      positions.set(cell, { cell, cursor: firstIdAt(FIRST_MS + done), epoch: 'none' });
    }
    largest = Math.max(largest, bytes);
  }
  expect(counts).toEqual(cells);
  expect(largest).toBeLessThanOrEqual(READ_BYTES_MAX);
  expect(reads).toBeLessThan(40);
});
