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
    faults: [source('cells/raffleVoids', '(await bookedIdOf(sql, lease.cell)) < newest', 'false')],
    foundBy: test('raffles/raffleVoid', `a raffle that is voided ${UNDER_WAY}`),
  },
  {
    name: 'a rebuild sells the tickets of a voided raffle',
    faults: [source('postgres/recoveries', 'if (row.voided_pool !== null)', 'if (row.voided_pool === 0)')],
    foundBy: test('raffles/raffleVoid', `a raffle that is voided ${UNDER_WAY}`),
  },
  {
    name: 'a ticket is refunded twice',
    faults: [source('cells/raffleVoids', 'spinIds.encodeOne(entryId, partnerId)', 'String(Math.random())')],
    foundBy: test(
      'raffles/raffleVoid',
      'a worker that is away leaves a raffle voided that was never sealed, and each ticket is refunded once wherever workers are killed',
    ),
  },
  {
    name: 'a rotation leaves the counter of its game where it was',
    faults: [lua('rotate', 'pack(GAME_FORMAT, toIndex,', 'pack(GAME_FORMAT, nextIndex,')],
    foundBy: test('blocks/rotate', ROTATED),
  },
  {
    name: 'a rotation is not booked as a void',
    faults: [source('postgres/ledger', '[addVoids(tx, rotations)]', '[]')],
    foundBy: test('blocks/rotate', ROTATED),
  },
  {
    name: 'a block is leased while the void of a rotation is not booked',
    faults: [source('postgres/blocks', 'if (here.is_rotating) return false;', '')],
    foundBy: test('blocks/rotate', ROTATED),
  },
  {
    name: 'a rotation voids less than what is sealed',
    faults: [lua('rotate', 'tonumber(ARGV[10])', 'tonumber(ARGV[10]) - 1')],
    foundBy: test(
      'blocks/rotate',
      'a suspended game whose blocks are freed goes on with other outcomes than it had, and a game of which nothing is left voids nothing',
    ),
  },
];
