/**
 * Deliberate faults in the void of a raffle and in the rotation of a game. A test of the suite must find each
 * of them.
 */
import { type Fault, lua, source } from './mutant.js';
import type { SuiteTest } from './suiteCopy.js';

const test = (file: string, title: string): SuiteTest => ({ file: `test/${file}.test.ts`, test: title });

const UNDER_WAY =
  'a void refunds every ticket that was being sold, and Redis sells no more, also after a rebuild';
const ROTATED =
  'a slot game that is rotated during spins and block making deals no outcome that was sealed before';
export const VOID_MUTATIONS: readonly { name: string; faults: readonly Fault[]; foundBy: SuiteTest }[] = [
  {
    name: 'the void of a raffle does not wait for tickets under way',
    faults: [
      source('engine/raffles/raffleVoids', '(await committedIdOf(sql, lease.cell)) < newest', 'false'),
    ],
    foundBy: test('engine/raffles/raffleVoid', `voiding a raffle ${UNDER_WAY}`),
  },
  {
    name: 'a rebuild sells the tickets of a voided raffle',
    faults: [
      source('engine/recovery/recoveries.store', 'if (row.voidedPool !== null)', 'if (row.voidedPool === 0)'),
    ],
    foundBy: test('engine/raffles/raffleVoid', `voiding a raffle ${UNDER_WAY}`),
  },
  {
    name: 'a ticket is refunded twice',
    faults: [
      source('engine/raffles/raffleVoids', 'spinIds.encodeOne(entryId, partnerId)', 'String(Math.random())'),
    ],
    foundBy: test(
      'engine/raffles/raffleVoid',
      'the void of a raffle while its worker is down voids an unsealed raffle without a worker, and refunds each ticket once at whatever step workers are killed',
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
    faults: [source('engine/blocks/blocks.store', 'if (here.isRotating) return false;', '')],
    foundBy: test('engine/blocks/rotate', ROTATED),
  },
  {
    name: 'a rotation voids less than what is sealed',
    faults: [lua('rotate', 'tonumber(ARGV[10])', 'tonumber(ARGV[10]) - 1')],
    foundBy: test(
      'engine/blocks/rotate',
      'a suspended game that is rotated deals new outcomes once resumed, and rotating it again voids nothing',
    ),
  },
];
