/**
 * Tests the keys of request ids that a batch writes with its entries, so that the worker need not hash each
 * requestId again.
 */
import { expect, test } from 'vitest';
import { Transcoder } from '../../../src/engine/ledger/transcoder.js';
import { forcedKey, outboxKey } from '../../../src/engine/redis/keys.js';
import { SPIN_STATUS } from '../../../src/engine/redis/statuses.js';
import { CELL, GAME_ID, item, partner } from '../../support/dealing.js';
import { openedCell } from './openedCell.js';

const cell = openedCell();

/** Returns the pairs of hash and entry that are written to the runs. */
function pairsOf(records: Buffer, requestKeys: Buffer): number[] {
  const transcoder = new Transcoder(() => undefined);
  transcoder.begin();
  transcoder.add(records, requestKeys);
  const { requestIds } = transcoder;
  return [...requestIds.slice(0, requestIds.count)];
}

async function written(): Promise<{ records: Buffer; requestKeys: Buffer }> {
  const [[, fields]] = (await cell.redis.xrangeBuffer(outboxKey(CELL), '-', '+')) as [[Buffer, Buffer[]]];
  return { records: fields![1]!, requestKeys: fields![5]! };
}

test('a batch writes the keys of the request ids that it dealt, in the order of their entries', async () => {
  await cell.load(0, 1, 0, 2, 1);
  // A spin whose outcome a tester has forced also has its key in the order of the entries.
  const chosen = Buffer.alloc(8);
  chosen.writeUInt16LE(2, 0);
  chosen.writeUIntLE(Date.now() + 3_600_000, 2, 6);
  await cell.redis.set(`{c${CELL}}:forced`, '1');
  await cell.redis.hset(forcedKey(CELL, partner.partnerId), `${GAME_ID}:${partner.partnerId}:bob`, chosen);
  const { statuses } = await cell.run([
    item({ requestId: 'first' }),
    item(),
    item({ requestId: 'refused', isDenied: true }),
    item({ requestId: 'first' }),
    item({ playerId: 'bob', requestId: 'zweite für Bob' }),
    item({ playerId: 'carol', requestId: 'x'.repeat(128) }),
    item({ playerId: 'carol' }),
    item({ requestId: 'none left' }),
  ]);
  expect(statuses.filter((status) => status === SPIN_STATUS.dealt)).toHaveLength(5);

  const { records, requestKeys } = await written();
  const pairs = pairsOf(records, requestKeys);
  expect(pairs).toHaveLength(3 * 4);
  expect(pairsOf(records, Buffer.alloc(0))).toEqual(pairs);
});

test('refuses to commit a batch whose request keys do not match its entries', async () => {
  await cell.load(0, 1, 0, 2);
  await cell.run([item({ requestId: 'first' }), item({ requestId: 'second' })]);
  const { records, requestKeys } = await written();
  expect(() => pairsOf(records, requestKeys.subarray(0, 16))).toThrow(RangeError);
  expect(() => pairsOf(records, Buffer.concat([requestKeys, requestKeys]))).toThrow(RangeError);
});

test('a batch without request ids writes no request keys', async () => {
  await cell.load(0, 1);
  await cell.run([item()]);
  const { records, requestKeys } = await written();
  expect(requestKeys).toHaveLength(0);
  expect(pairsOf(records, requestKeys)).toEqual([]);
});
