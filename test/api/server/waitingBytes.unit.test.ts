/** Tests the limits of unread answer bytes on node:http, for one client and for all clients together. */
import { expect, test } from 'vitest';
import { WaitingBytes } from '../../../src/api/server/nodeConnection.js';

const MB = 1_048_576;

test('lets one client hold at most 8 MB of unread answers, and keeps room for other clients', () => {
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

test('lets all clients together hold at most 64 MB of unread answers, including those behind proxies', () => {
  const waiting = new WaitingBytes();
  for (let held = 0; held < 64; held++) waiting.add(undefined, MB);
  expect(waiting.hasRoom(undefined, MB)).toBe(false);
  expect(waiting.hasRoom('192.0.2.1', MB)).toBe(false);
});
