/**
 * Tests the tokens of console sessions. The service distinguishes them from forged tokens without reading the
 * store.
 */
import { expect, test } from 'vitest';
import { SessionTokens } from '../../../src/api/server/sessionTokens.js';

const tokens = new SessionTokens('ks_first');

test('recognizes a session token in every process with the same operator key, and makes unique tokens', () => {
  const made = Array.from({ length: 100 }, () => tokens.make());
  expect(new Set(made).size).toBe(100);
  for (const token of made) {
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(new SessionTokens('ks_first').isOwn(token)).toBe(true);
  }
});

test('rejects a session token that was forged, altered in any byte, or made with another operator key', () => {
  const token = tokens.make();
  const bytes = Buffer.from(token, 'base64url');
  for (let at = 0; at < bytes.length; at++) {
    const changed = Buffer.from(bytes);
    changed[at]! ^= 1;
    expect(tokens.isOwn(changed.toString('base64url'))).toBe(false);
  }
  for (const other of [
    '',
    'A'.repeat(43),
    `${token}AA`,
    token.slice(0, 40),
    new SessionTokens('ks_other').make(),
  ])
    expect(tokens.isOwn(other)).toBe(false);
});
