/** Tests which database URLs lead to the machine of the worker, whose disk can be measured. */
import { expect, test } from 'vitest';
import { isOnThisMachine } from '../../../src/books/archive/ledgerStorage.js';

test.each([
  [undefined, true],
  ['postgresql://spindle@localhost:5432/spindle', true],
  ['postgresql://spindle@127.0.0.1/spindle', true],
  ['postgresql://spindle@[::1]:5432/spindle', true],
  ['postgresql:///spindle?host=/run/postgresql', true],
  // `new URL` refuses a user without a host.
  ['postgresql://spindle@/spindle?host=/run/postgresql', true],
  ['postgresql://db.example:5432/spindle', false],
  ['postgresql://10.0.0.5/spindle', false],
])('the database %s is on this machine: %s', (url, isLocal) => {
  expect(isOnThisMachine(url)).toBe(isLocal);
});
