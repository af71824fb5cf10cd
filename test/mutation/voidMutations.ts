/** Faults in the void of a raffle, of which each is found by a test of the suite. */
import { type Fault, source } from './mutant.js';
import type { SuiteTest } from './suiteCopy.js';

const test = (file: string, title: string): SuiteTest => ({ file: `test/${file}.test.ts`, test: title });

const UNDER_WAY =
  'refunds every ticket that was under way, and Redis sells none any more, also when it is rebuilt';
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
];
