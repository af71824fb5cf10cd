/** Tests how the console groups the entries of the audit log that belong to one void. */
import { expect, test } from 'vitest';
import { auditRows } from '../../console/auditRows.js';

type Entry = Parameters<typeof auditRows>[0][number];

let auditId = 100;
const entry = (action: string, subject: string, after: object, actor = 'worker'): Entry => ({
  auditId: auditId--,
  at: '2026-11-27T06:00:00.000Z',
  actor,
  action,
  subject,
  before: null,
  after,
  hash: '',
});
const shown = (entries: readonly Entry[]) =>
  auditRows(entries).map((row) => [row.entry.action, row.subjects, row.counted]);

test('voids of rounds by one actor for one reason are one row with their number', () => {
  const restored = (round: string): Entry => entry('round.void', round, { reason: 'RESTORED' });
  expect(
    shown([
      restored('round:a'),
      restored('round:b'),
      restored('round:c'),
      entry('round.void', 'round:d', { reason: 'a fault' }, 'jane.doe'),
      entry('key.issue', 'key:1', {}),
      restored('round:e'),
    ]),
  ).toEqual([
    ['round.void', ['round:a', 'round:b', 'round:c'], '3 rounds'],
    ['round.void', ['round:d'], '1 round'],
    ['key.issue', ['key:1'], undefined],
    ['round.void', ['round:e'], '1 round'],
  ]);
});

test('a void of a raffle is one row with the number of its refunded tickets', () => {
  const voided = entry('raffle.void', 'game:4', { reason: 'a fault' }, 'jane.doe');
  expect(
    shown([
      entry('raffle.refund', 'game:4', { tickets: 1200, refunded: 1200, failed: 0 }),
      entry('raffle.refund', 'game:5', { tickets: 10, refunded: 8, failed: 2 }),
      voided,
    ]),
  ).toEqual([
    ['raffle.refund', ['game:5'], '8 of 10 tickets refunded'],
    ['raffle.void', ['game:4'], '1,200 tickets refunded'],
  ]);
  expect(shown([voided])).toEqual([['raffle.void', ['game:4'], undefined]]);
});
