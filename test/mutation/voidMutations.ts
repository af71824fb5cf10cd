/** Faults in the void of a raffle and in the rotation of a game, of which each is found by a test of the suite. */
import { type Fault, lua, source } from './mutant.js';
import type { SuiteTest } from './suiteCopy.js';

const test = (file: string, title: string): SuiteTest => ({ file: `test/${file}.test.ts`, test: title });

const UNDER_WAY =
  'refunds every ticket that was under way, and Redis sells none any more, also when it is rebuilt';
const ROTATED =
  'a game that is rotated while it is spun, and while blocks are made, deals nothing that was sealed before';
export const VOID_MUTATIONS: readonly { name: string; faults: readonly Fault[]; foundBy: SuiteTest }[] = [
  {
    name: 'the void of a raffle does not wait for tickets under way',
    faults: [
      source('engine/raffles/raffleVoids', '(await committedIdOf(sql, lease.cell)) < newest', 'false'),
    ],
    foundBy: test('engine/raffles/raffleVoid', `a raffle that is voided ${UNDER_WAY}`),
  },
  {
    name: 'a rebuild sells the tickets of a voided raffle',
    faults: [
      source(
        'engine/recovery/recoveries.store',
        'if (row.voided_pool !== null)',
        'if (row.voided_pool === 0)',
      ),
    ],
    foundBy: test('engine/raffles/raffleVoid', `a raffle that is voided ${UNDER_WAY}`),
  },
  {
    name: 'a ticket is refunded twice',
    faults: [
      source('engine/raffles/raffleVoids', 'spinIds.encodeOne(entryId, partnerId)', 'String(Math.random())'),
    ],
    foundBy: test(
      'engine/raffles/raffleVoid',
      'a worker that is away leaves a raffle voided that was never sealed, and each ticket is refunded once wherever workers are killed',
    ),
  },
  {
    name: 'a rotation leaves the counter of its game where it was',
    faults: [lua('rotate', 'pack(GAME_FORMAT, toIndex,', 'pack(GAME_FORMAT, nextIndex,')],
    foundBy: test('engine/blocks/rotate', ROTATED),
  },
  {
    name: 'a rotation is not booked as a void',
    faults: [source('engine/ledger/ledger.store', '[addVoids(tx, rotations)]', '[]')],
    foundBy: test('engine/blocks/rotate', ROTATED),
  },
  {
    name: 'a block is leased while the void of a rotation is not booked',
    faults: [source('engine/blocks/blocks.store', 'if (here.is_rotating) return false;', '')],
    foundBy: test('engine/blocks/rotate', ROTATED),
  },
  {
    name: 'a rotation voids less than what is sealed',
    faults: [lua('rotate', 'tonumber(ARGV[10])', 'tonumber(ARGV[10]) - 1')],
    foundBy: test(
      'engine/blocks/rotate',
      'a suspended game whose blocks are freed goes on with other outcomes than it had, and a game of which nothing is left voids nothing',
    ),
  },
];
