/** Tests how many queues are filled at the same time and which queue is next. */
import { expect, test } from 'vitest';
import { FillingTurns, retryMs } from '../../../src/engine/blocks/filling.js';
import { newQueue, type Queue } from '../../../src/engine/blocks/queue.js';

const queueOf = (gameId: number, partnerId: number): Queue =>
  newQueue({ gameId, partnerId }, undefined as never, undefined as never);

/**
 * Fills all queues as the block keeper does.
 * @returns the highest number of queues that were filled at once, in total and per partner
 */
function fillAll(
  turns: FillingTurns,
  queues: readonly Queue[],
): { total: number; partner: number; order: number[] } {
  const underWay: Queue[] = [];
  const order: number[] = [];
  const most = { total: 0, partner: 0 };
  const begin = (queue: Queue): void => {
    turns.begin(queue);
    underWay.push(queue);
    order.push(queue.gameId);
    most.total = Math.max(most.total, underWay.length);
    const ofPartner = underWay.filter(({ partnerId }) => partnerId === queue.partnerId).length;
    most.partner = Math.max(most.partner, ofPartner);
  };
  for (const queue of queues) {
    if (turns.hasTurn(queue)) begin(queue);
    else turns.wait(queue);
  }
  while (underWay.length > 0) {
    turns.end(underWay.shift()!);
    for (let next = turns.next(); next !== undefined; next = turns.next()) begin(next);
  }
  return { ...most, order };
}

test('fills the queue of each of 1,300 games once and limits how many are filled at once, for any number of partners', () => {
  for (const partners of [1, 10, 1300]) {
    const queues = Array.from({ length: 1300 }, (_, i) => queueOf(i, i % partners));
    const { total, partner, order } = fillAll(new FillingTurns(), queues);
    expect(new Set(order).size).toBe(1300);
    expect(order.length).toBe(1300);
    expect(total).toBeLessThanOrEqual(64);
    expect(partner).toBeLessThanOrEqual(16);
  }
});

test('gives a free turn to the partner with the fewest queues being filled, and to its game that runs dry first', () => {
  const turns = new FillingTurns();
  const many = Array.from({ length: 100 }, (_, i) => queueOf(i, i % 4));
  for (const queue of many) {
    if (turns.hasTurn(queue)) turns.begin(queue);
    else turns.wait(queue);
  }
  expect(turns.underWay).toBe(64);
  const [later, soon] = [queueOf(200, 9), queueOf(201, 9)];
  later.leaseEnd = 100;
  soon.leaseEnd = 10;
  turns.wait(later);
  turns.wait(soon);
  expect(turns.next()).toBeUndefined();
  turns.end(many[0]!);
  expect(turns.next()).toBe(soon);
});

test('doubles the wait before a queue is filled again after each consecutive failure, up to a limit', () => {
  for (let failures = 1; failures < 40; failures++) {
    const nominal = Math.min(8000, 250 * 2 ** (failures - 1));
    const ms = retryMs(failures);
    expect(ms).toBeLessThanOrEqual(nominal);
    expect(ms).toBeGreaterThan(nominal / 2);
  }
});
