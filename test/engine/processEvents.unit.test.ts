import { expect, test } from 'vitest';
import { EventEmitter } from '../../src/engine/processEvents.js';

const silent = (): void => {};

test("calls every handler of an event at once, in the order of subscription, with the event's data", () => {
  const events = new EventEmitter(silent);
  const heard: string[] = [];
  events.on('CommitAwaited', ({ cell }) => heard.push(`first ${cell}`));
  events.on('CommitAwaited', ({ cell }) => heard.push(`second ${cell}`));
  events.on('FormatUnreadable', ({ reason }) => heard.push(reason));
  events.emit('CommitAwaited', { cell: 3 });
  expect(heard).toEqual(['first 3', 'second 3']);
});

test('reports an event handler that throws, and still calls the other handlers', () => {
  const reported: unknown[] = [];
  const events = new EventEmitter((error, event) => reported.push([event, error]));
  const heard: string[] = [];
  const defect = new Error('a defect');
  events.on('FormatUnreadable', () => {
    throw defect;
  });
  events.on('FormatUnreadable', ({ reason }) => heard.push(reason));
  events.emit('FormatUnreadable', { reason: 'one' });
  events.emit('FormatUnreadable', { reason: 'two' });
  expect(heard).toEqual(['one', 'two']);
  expect(reported).toEqual([
    ['FormatUnreadable', defect],
    ['FormatUnreadable', defect],
  ]);
});

test('ignores an event without a handler', () => {
  const events = new EventEmitter(() => expect.unreachable());
  events.emit('CommitAwaited', { cell: 1 });
});
