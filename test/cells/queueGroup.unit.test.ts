import { expect, test } from 'vitest';
import { QueueGroup } from '../../src/cells/queueGroup.js';

const OVERLAP_MIN = 16;

/** A group of two queues that only write down what they are told. */
function group() {
  let flushes = 0;
  const sent: string[] = [];
  const waiting = { a: 0, b: 0 };
  const made = new QueueGroup(OVERLAP_MIN, (ready) => {
    flushes++;
    ready.flush();
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
  };
}

test('while no call is under way, whatever waits is sent, of all cells', () => {
  const { wait, sent } = group();
  wait(1);
  expect(sent).toEqual(['a false', 'b false']);
});

test('while a call of one cell is under way, the others gather as much as one cell would', () => {
  const { made, wait, sent } = group();
  made.firstTries = 1;
  wait(OVERLAP_MIN - 1);
  expect(sent).toEqual([]);
  wait(1);
  expect(sent).toEqual(['a true', 'b true']);
});

test('while a call is under way, the calls of two cells have as much on average', () => {
  const { made, wait, sent } = group();
  made.firstTries = 1;
  wait(1, 'a');
  wait(2 * OVERLAP_MIN - 2, 'b');
  expect(sent).toEqual([]);
  wait(1, 'b');
  expect(sent).toEqual(['a true', 'b true']);
});

test('what waited for a call is sent once that has ended, though it is little', () => {
  const { made, wait, sent } = group();
  made.firstTries = 1;
  wait(1);
  made.firstTries = 0;
  made.schedule();
  expect(sent).toEqual(['a false', 'b false']);
});

test('nothing is sent where nothing waits', () => {
  const its = group();
  its.made.schedule();
  expect(its.flushes).toBe(0);
});
