/** Tests that a sealed secret can be opened only with its key, and only if no byte of it was changed. */
import { expect, test } from 'vitest';
import { newBoxKey, SecretBox, UnknownKeyError } from '../../src/domain/secretBox.js';

const SECRET = 'whsec_c2VjcmV0';
const [a, b] = [newBoxKey(), newBoxKey()];

test('opens a secret with the key that sealed it, and seals it differently each time', () => {
  const box = new SecretBox([a]);
  const sealed = [box.seal(SECRET), box.seal(SECRET)];
  expect(sealed.map((text) => box.open(text))).toEqual([SECRET, SECRET]);
  expect(sealed[0]).not.toBe(sealed[1]);
  expect(sealed.join()).not.toContain('whsec');
  expect(new SecretBox([b, a]).open(sealed[0]!)).toBe(SECRET);
  expect(() => new SecretBox([b]).open(sealed[0]!)).toThrow(UnknownKeyError);
  expect(() => new SecretBox([]).open(sealed[0]!)).toThrow(UnknownKeyError);
});

test('refuses to open a sealed secret with any byte changed', () => {
  const box = new SecretBox([a]);
  const sealed = box.seal(SECRET);
  const from = sealed.lastIndexOf('.') + 1;
  const bytes = Buffer.from(sealed.slice(from), 'base64url');
  for (let i = 0; i < bytes.length; i++) {
    const changed = Buffer.from(bytes);
    changed[i]! ^= 1;
    expect(() => box.open(sealed.slice(0, from) + changed.toString('base64url')), `byte ${i}`).toThrow();
  }
});

test('stores secrets in plain text if there is no key, and reads plain secrets of earlier versions', () => {
  expect(new SecretBox([]).seal(SECRET)).toBe(SECRET);
  expect(new SecretBox([a]).open(SECRET)).toBe(SECRET);
  expect(() => new SecretBox(['dG9vIHNob3J0'])).toThrow(RangeError);
});
