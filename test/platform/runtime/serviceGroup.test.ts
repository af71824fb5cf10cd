import { describe, expect, test } from 'vitest';
import { PeriodicService } from '../../../src/platform/runtime/periodicService.js';
import { closing, HEALTHY, type Service, unhealthy } from '../../../src/platform/runtime/service.js';
import { ServiceGroup } from '../../../src/platform/runtime/serviceGroup.js';

/** A log that stores its lines. */
function memoryLog() {
  const lines: { service?: string; err?: Error; msg: string }[] = [];
  return {
    lines,
    error: (fields: object, msg: string): void => void lines.push({ ...fields, msg }),
  };
}

/** Makes services that record their calls. */
function recorder() {
  const done: string[] = [];
  const service = (name: string, more: Partial<Service> = {}): Service => ({
    name,
    start: async () => void done.push(`start ${name}`),
    stop: async () => void done.push(`stop ${name}`),
    health: () => HEALTHY,
    ...more,
  });
  return { done, service };
}

const failing = async (): Promise<never> => {
  throw new Error('broken');
};
const never = (): Promise<void> => new Promise(() => {});

describe('groups of services', () => {
  test('starts the services of a group in order and stops them in reverse order', async () => {
    const { done, service } = recorder();
    const group = new ServiceGroup('group', memoryLog(), [service('a'), service('b')]);
    await group.start();
    await group.add(service('c'));
    await group.stop();
    expect(done).toEqual(['start a', 'start b', 'start c', 'stop c', 'stop b', 'stop a']);
  });

  test('logs a service that fails to stop, and stops the other services of the group', async () => {
    const { done, service } = recorder();
    const log = memoryLog();
    const group = new ServiceGroup('group', log, [
      service('a'),
      service('b', { stop: failing }),
      service('c'),
    ]);
    await group.start();
    await group.stop();
    expect(done.slice(3)).toEqual(['stop c', 'stop a']);
    expect(log.lines).toMatchObject([{ service: 'b', err: { message: 'broken' } }]);
  });

  test('names the services that the stop of a group waits for, also in nested groups', async () => {
    const { service } = recorder();
    let release = (): void => {};
    const slow = service('slow', {
      stop: () =>
        new Promise((resolve) => {
          release = resolve;
        }),
    });
    const within = new ServiceGroup('within', memoryLog(), [service('a'), slow]);
    const group = new ServiceGroup('group', memoryLog(), [service('b'), within]);
    await group.start();
    expect(group.waitsFor).toEqual([]);
    const stopped = group.stop();
    await new Promise(setImmediate);
    expect(group.waitsFor).toEqual(['slow']);
    release();
    await stopped;
    expect(group.waitsFor).toEqual([]);
  });

  test('the stop of a group continues without a service that does not stop within its time limit', async () => {
    const { done, service } = recorder();
    const log = memoryLog();
    const hanging = service('b', { stop: never, stopTimeoutMs: 5 });
    const group = new ServiceGroup('group', log, [service('a'), hanging]);
    await group.start();
    await group.stop();
    expect(done.at(-1)).toBe('stop a');
    expect(log.lines).toMatchObject([{ service: 'b', err: { name: 'TimeoutError' } }]);
  });

  test("stops a service that can't start and all services started before it, and reports the reason", async () => {
    const { done, service } = recorder();
    const group = new ServiceGroup('group', memoryLog(), [
      service('a'),
      service('b', { start: failing }),
      service('c'),
    ]);
    await expect(group.start()).rejects.toThrow('broken');
    expect(done).toEqual(['start a', 'stop b', 'stop a']);
    await group.stop();
    expect(done.length).toBe(3);
  });

  test('stops a nested group as one service, with the time limits of its services', async () => {
    const { done, service } = recorder();
    const log = memoryLog();
    const timed = (name: string, stopTimeoutMs: number) => service(name, { stopTimeoutMs });
    const writers = new ServiceGroup('writers', log, [timed('a', 30), timed('b', 40)]);
    const jobs = new ServiceGroup('jobs', log, [timed('c', 50), timed('d', 20)], 'together');
    const both = new ServiceGroup('both', log, [writers, jobs]);
    expect([writers, jobs, both].map(({ stopTimeoutMs }) => stopTimeoutMs)).toEqual([70, 50, 120]);
    await both.start();
    await both.stop();
    expect(done).toEqual(
      ['a', 'b', 'c', 'd']
        .map((name) => `start ${name}`)
        .concat(['d', 'c', 'b', 'a'].map((name) => `stop ${name}`)),
    );
  });

  test('a group that stops its services together does not wait between them', async () => {
    const { done, service } = recorder();
    let release = (): void => {};
    const slow = service('slow', { stop: () => new Promise((resolve) => (release = resolve)) });
    const group = new ServiceGroup('group', memoryLog(), [service('a'), slow], 'together');
    await group.start();
    const stopped = group.stop();
    await Promise.resolve();
    await Promise.resolve();
    expect(done.at(-1)).toBe('stop a');
    release();
    await stopped;
  });

  test('stops the services of a group once if stop is called twice, and both calls wait for the end', async () => {
    let closed = 0;
    const group = new ServiceGroup('group', memoryLog(), [closing('a', () => closed++)]);
    await group.start();
    await Promise.all([group.stop(), group.stop()]);
    expect(closed).toBe(1);
  });

  test('reports a group as healthy if all its services are, and names the unhealthy ones', async () => {
    const { service } = recorder();
    let health = HEALTHY;
    const group = new ServiceGroup('group', memoryLog(), [
      service('a'),
      service('b', { health: () => health }),
    ]);
    await group.start();
    expect(group.health()).toEqual(HEALTHY);
    health = unhealthy('Postgres does not respond');
    expect(group.health()).toEqual({ isHealthy: false, problem: 'b: Postgres does not respond' });
  });
});

/** A periodic service whose turns are ended by the test. */
class Turns extends PeriodicService {
  readonly name = 'turns';
  readonly failures: unknown[] = [];
  begun = 0;
  ends: { done: () => void; fail: (error: Error) => void }[] = [];

  takeOne(): Promise<void> {
    return this.takeTurn();
  }
  protected turn(): Promise<void> {
    this.begun++;
    return new Promise((done, fail) => this.ends.push({ done, fail }));
  }
  protected override onTurnFailed(error: unknown): void {
    this.failures.push(error);
  }
}

const HOURLY = { everyMs: 3_600_000, firstAfterMs: 3_600_000 };
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('periodic services', () => {
  test('a periodic service never takes two turns at the same time', async () => {
    const turns = new Turns(HOURLY);
    const both = Promise.all([turns.takeOne(), turns.takeOne()]);
    await settled();
    expect(turns.begun).toBe(1);
    turns.ends[0]!.done();
    await settled();
    expect(turns.begun).toBe(2);
    turns.ends[1]!.done();
    await both;
  });

  test('a periodic service is unhealthy from a failed turn until the next successful one', async () => {
    const turns = new Turns(HOURLY);
    const failed = turns.takeOne();
    await settled();
    turns.ends[0]!.fail(new Error('away'));
    await failed;
    expect(turns.failures).toEqual([new Error('away')]);
    expect(turns.health()).toEqual(unhealthy('away'));
    const succeeded = turns.takeOne();
    await settled();
    turns.ends[1]!.done();
    await succeeded;
    expect(turns.health()).toEqual(HEALTHY);
  });

  test('a stopped periodic service ends after its current turn, ignores its failure, and takes no other turn', async () => {
    const turns = new Turns({ everyMs: 0, firstAfterMs: 0 });
    await turns.start();
    while (turns.begun === 0) await settled();
    let hasStopped = false;
    const stopped = turns.stop().then(() => {
      hasStopped = true;
    });
    await settled();
    expect(hasStopped).toBe(false);
    turns.ends[0]!.fail(new Error('The connection is closed'));
    await stopped;
    await turns.takeOne();
    expect([turns.begun, turns.failures]).toEqual([1, []]);
  });
});
