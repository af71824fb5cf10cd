/** Bytes of answers that nobody reads, on node:http: what one client may hold of what all may. */
import { expect, test } from 'vitest';
import { WaitingBytes } from '../../../src/api/server/nodeConnection.js';

const MB = 1_048_576;

test('one client holds 8 MB at the most, and leaves the others their room', () => {
  const waiting = new WaitingBytes();
  for (let held = 0; held < 8; held++) {
    expect(waiting.hasRoom('192.0.2.1', MB)).toBe(true);
    waiting.add('192.0.2.1', MB);
  }
  expect(waiting.hasRoom('192.0.2.1', MB)).toBe(false);
  expect(waiting.hasRoom('192.0.2.2', MB)).toBe(true);
  waiting.add('192.0.2.1', -MB);
  expect(waiting.hasRoom('192.0.2.1', MB)).toBe(true);
});

test('all together hold 64 MB at the most, those behind proxies included', () => {
  const waiting = new WaitingBytes();
  for (let held = 0; held < 64; held++) waiting.add(undefined, MB);
  expect(waiting.hasRoom(undefined, MB)).toBe(false);
  expect(waiting.hasRoom('192.0.2.1', MB)).toBe(false);
});
