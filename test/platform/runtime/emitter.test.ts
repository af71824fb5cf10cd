import { expect, test } from 'vitest';
import { Emitter } from '../../../src/platform/runtime/emitter.js';

interface Happenings {
  Opened: { readonly cell: number };
  Closed: { readonly reason: string };
}

const silent = (): void => {};

test("calls every handler of an event at once, in the order of subscription, with the event's data", () => {
  const events = new Emitter<Happenings>(silent);
  const heard: string[] = [];
  events.on('Opened', ({ cell }) => heard.push(`first ${cell}`));
  events.on('Opened', ({ cell }) => heard.push(`second ${cell}`));
  events.on('Closed', ({ reason }) => heard.push(reason));
  events.emit('Opened', { cell: 3 });
  expect(heard).toEqual(['first 3', 'second 3']);
});

test('reports an event handler that throws, and still calls the other handlers', () => {
  const reported: unknown[] = [];
  const events = new Emitter<Happenings>((error, event) => reported.push([event, error]));
  const heard: string[] = [];
  const defect = new Error('a defect');
  events.on('Closed', () => {
    throw defect;
  });
  events.on('Closed', ({ reason }) => heard.push(reason));
  events.emit('Closed', { reason: 'one' });
  events.emit('Closed', { reason: 'two' });
  expect(heard).toEqual(['one', 'two']);
  expect(reported).toEqual([
    ['Closed', defect],
    ['Closed', defect],
  ]);
});

test('ignores an event without a handler', () => {
  const events = new Emitter<Happenings>(() => expect.unreachable());
  events.emit('Opened', { cell: 1 });
});
