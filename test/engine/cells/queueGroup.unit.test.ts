import { expect, test } from 'vitest';
import { CellQueue } from '../../../src/engine/cells/cellQueue.js';
import type { CellCommand, CellOperation } from '../../../src/engine/cells/operation.js';
import { QueueGroup } from '../../../src/engine/cells/queueGroup.js';
import type { CellStations } from '../../../src/engine/cells/spinPath.js';

const OVERLAP_MIN = 16;
const BATCH_MAX = 40;
const SLOTS = 3;

/** Operation for the queues. These tests never send its commands. */
const OPERATION = {
  slots: 0,
  batchMax: BATCH_MAX,
  overlapMin: OVERLAP_MIN,
  partnerOf: () => 1,
} as unknown as CellOperation<CellCommand<never>, never>;
const STATIONS = { limits: { waitingMax: 100 } } as CellStations;

/** Makes a group of two queues that do not send calls but record them. */
function group() {
  let flushes = 0;
  const sent: string[] = [];
  const waiting = { a: 0, b: 0 };
  const leaving = { batchMax: BATCH_MAX, slots: SLOTS, overlapMin: OVERLAP_MIN };
  let fullFlushes = 0;
  const made = new QueueGroup(leaving, (ready, isFull) => {
    flushes++;
    if (isFull) fullFlushes++;
    ready.send();
  });
  for (const name of ['a', 'b']) made.add({ send: (isMuch) => sent.push(`${name} ${isMuch}`) });
  return {
    made,
    sent,
    wait: (commands: number, queue: 'a' | 'b' = 'a'): void => {
      made.changed(waiting[queue], waiting[queue] + commands);
      waiting[queue] += commands;
      made.schedule();
    },
    get flushes() {
      return flushes;
    },
    get fullFlushes() {
      return fullFlushes;
    },
  };
}

test('sends all waiting commands of all cells while no call is in flight', () => {
  const { wait, sent } = group();
  wait(1);
  expect(sent).toEqual(['a false', 'b false']);
});

test('while a call of one cell is in flight, the other cells gather as many commands as a single cell would', () => {
  const { made, wait, sent } = group();
  made.firstTries = 1;
  wait(OVERLAP_MIN - 1);
  expect(sent).toEqual([]);
  wait(1);
  expect(sent).toEqual(['a true', 'b true']);
});

test('while a call is in flight, the calls of two cells must reach the minimum size on average', () => {
  const { made, wait, sent } = group();
  made.firstTries = 1;
  wait(1, 'a');
  wait(2 * OVERLAP_MIN - 2, 'b');
  expect(sent).toEqual([]);
  wait(1, 'b');
  expect(sent).toEqual(['a true', 'b true']);
});

test('sends a few waiting commands as soon as the call in flight has ended', () => {
  const { made, wait, sent } = group();
  made.firstTries = 1;
  wait(1);
  made.firstTries = 0;
  made.schedule();
  expect(sent).toEqual(['a false', 'b false']);
});

test('sends a full call at once as long as a slot may be free for it', () => {
  const its = group();
  its.made.firstTries = SLOTS - 1;
  its.wait(BATCH_MAX - 1);
  expect(its.fullFlushes).toBe(0);
  its.wait(1);
  expect(its.fullFlushes).toBe(1);
  its.made.firstTries = SLOTS;
  its.wait(1);
  expect(its.fullFlushes).toBe(1);
});

test('does not send a full call at once if the calls of other cells would be small', () => {
  const its = group();
  its.made.firstTries = 1;
  its.made.changed(0, 1);
  its.made.changed(0, 1);
  its.wait(BATCH_MAX - 2);
  expect(its.fullFlushes).toBe(0);
  its.wait(3 * OVERLAP_MIN - BATCH_MAX);
  expect(its.fullFlushes).toBe(1);
});

test('sends nothing while no command waits in the queues', () => {
  const its = group();
  its.made.schedule();
  expect(its.flushes).toBe(0);
});

test('a queue whose cell moves to another node takes its commands to the group of that node', () => {
  const before = group();
  const after = group();
  before.made.firstTries = 1;
  after.made.firstTries = 1;
  const nodes = { of: before.made };
  const queue = new CellQueue(0, OPERATION, STATIONS, 'client', nodes.of);
  const command = {
    cell: 0,
    newestMove: undefined,
    waitsForLedger: false,
    resolve: () => {},
    fail: () => {},
  };
  for (let i = 1; i < OVERLAP_MIN; i++) queue.submit(command);
  queue.moveTo(after.made);
  expect(after.sent).toEqual([]);
  queue.submit(command);
  expect(after.sent).toEqual(['a true', 'b true']);
  expect(before.sent).toEqual([]);
  // The moved command is no longer counted in the old group.
  before.made.firstTries = 0;
  before.made.schedule();
  expect(before.sent).toEqual([]);
});
