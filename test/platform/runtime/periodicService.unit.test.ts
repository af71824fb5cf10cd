/**
 * Tests that a periodic service without work waits longer and longer, up to a maximum, and returns to its
 * normal interval once there is work.
 */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { IDLE, PeriodicService } from '../../../src/platform/runtime/periodicService.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

class Poll extends PeriodicService {
  readonly name = 'poll';
  readonly turns: number[] = [];
  hasWork = false;
  isFailing = false;

  constructor() {
    super({ everyMs: 100, firstAfterMs: 0, idleMs: 350 });
  }

  wake(): void {
    this.hurry();
  }

  protected async turn(): Promise<typeof IDLE | undefined> {
    this.turns.push(Date.now());
    if (this.isFailing) throw new Error('away');
    return this.hasWork ? undefined : IDLE;
  }

  protected override onTurnFailed(): void {}
}

/** Returns the pauses between the turns within a number of ms. */
async function restsIn(poll: Poll, ms: number): Promise<number[]> {
  const from = Math.max(0, poll.turns.length - 1);
  await vi.advanceTimersByTimeAsync(ms);
  const turns = poll.turns.slice(from);
  return turns.slice(1).map((at, place) => at - turns[place]!);
}

test('doubles the pauses of a periodic service without work, and shortens them once there is work', async () => {
  const poll = new Poll();
  await poll.start();
  expect(await restsIn(poll, 1300)).toEqual([200, 350, 350, 350]);
  poll.hasWork = true;
  expect(await restsIn(poll, 500)).toEqual([350, 100, 100]);
  poll.hasWork = false;
  expect(await restsIn(poll, 400)).toEqual([100, 200]);
  await poll.stop();
});

test('a turn that fails or is requested ends the long pauses of a periodic service', async () => {
  const poll = new Poll();
  await poll.start();
  await restsIn(poll, 700);
  poll.isFailing = true;
  expect(await restsIn(poll, 450)).toEqual([350, 100, 100]);
  poll.isFailing = false;
  await restsIn(poll, 1000);
  const taken = poll.turns.length;
  poll.wake();
  await vi.advanceTimersByTimeAsync(0);
  expect(poll.turns.length).toBe(taken + 1);
  await poll.stop();
});
