/**
 * Tests that the partners of a cell take turns and that no partner can use up the space of the others in the
 * waiting list.
 */
import { expect, test } from 'vitest';
import { WaitingList } from '../../../src/engine/cells/waitingList.js';

interface Command {
  readonly partner: number;
  readonly number: number;
}

const MAX = 1000;
const BATCH = 100;
const newList = () => new WaitingList<Command>(MAX, ({ partner }) => partner);

function fill(list: WaitingList<Command>, partner: number, count: number): Command[] {
  const refused: Command[] = [];
  for (let number = 0; number < count; number++) {
    const out = list.add({ partner, number });
    if (out !== undefined) refused.push(out);
  }
  return refused;
}
const countOf = (commands: readonly Command[], partner: number): number =>
  commands.filter((command) => command.partner === partner).length;
const ascends = (commands: readonly Command[], partner: number): boolean =>
  commands
    .filter((each) => each.partner === partner)
    .every(({ number }, i, all) => i === 0 || number > all[i - 1]!.number);

test('a partner with few waiting spins waits for at most one call, however many spins of another partner wait', () => {
  const list = newList();
  fill(list, 1, 900);
  fill(list, 2, 40);
  const first = list.take(BATCH);
  expect(first).toHaveLength(BATCH);
  expect(countOf(first, 2)).toBe(40);
  expect(ascends(first, 1)).toBe(true);
  expect(ascends(first, 2)).toBe(true);
  expect(list.length).toBe(840);
});

test('partners with many waiting spins have equal parts of each call and of all calls', () => {
  const list = newList();
  for (const partner of [1, 2, 3]) fill(list, partner, 300);
  const taken: Command[] = [];
  for (let call = 0; call < 6; call++) taken.push(...list.take(BATCH));
  for (const partner of [1, 2, 3]) {
    expect(Math.abs(countOf(taken, partner) - 200)).toBeLessThanOrEqual(2);
    expect(ascends(taken, partner)).toBe(true);
  }
});

test('if there are more partners than spins in a call, each partner is served once before any is served twice', () => {
  const list = newList();
  for (let partner = 0; partner < 2 * BATCH; partner++) fill(list, partner, 2);
  const served = [...list.take(BATCH), ...list.take(BATCH)].map(({ partner }) => partner);
  expect(new Set(served).size).toBe(2 * BATCH);
});

test('when the waiting list is full, the partner with the most spins loses some and no other partner is refused', () => {
  const list = newList();
  expect(fill(list, 1, 1200)).toHaveLength(200);
  const refused = fill(list, 2, 200);
  expect(countOf(refused, 2)).toBe(0);
  expect(countOf(refused, 1)).toBe(200);
  expect(list.length).toBe(MAX);
  // Neither of the two partners may have more than half of the waiting list.
  expect(countOf(fill(list, 2, 1000), 1)).toBeGreaterThanOrEqual(299);
  const all: Command[] = [];
  while (list.length > 0) all.push(...list.take(BATCH));
  expect(all).toHaveLength(MAX);
  expect(Math.abs(countOf(all, 1) - countOf(all, 2))).toBeLessThanOrEqual(2);
  expect(new Set(all).size).toBe(MAX);
});

test('a call takes all waiting spins if they fit, without losing or repeating any spin', () => {
  const list = newList();
  for (const partner of [1, 2]) fill(list, partner, 50);
  expect(list.take(BATCH)).toHaveLength(BATCH);
  expect(list.take(BATCH)).toEqual([]);
});
