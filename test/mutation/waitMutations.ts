/** Former defects of requests that wait: judged once, sent too late, or in front of others. */
import { type Fault, source } from './mutant.js';
import type { SuiteTest } from './suiteCopy.js';

const PAUSED = 'test/api/server/pausedFrontEnd.test.ts';

export const WAIT_MUTATIONS: readonly { name: string; faults: readonly Fault[]; foundBy: SuiteTest }[] = [
  {
    name: 'a key is judged only when its request arrives',
    faults: [
      source('api/server/admission', 'if (version === this.#version) return;', 'if (version > 0) return;'),
    ],
    foundBy: {
      file: PAUSED,
      test: 'a spin that waits for Redis is refused once its key is revoked',
    },
  },
  {
    name: 'a spin that waited until its deadline is sent all the same',
    faults: [
      source(
        'engine/cells/cellQueue',
        '(command.deadline !== undefined && command.deadline <= earliest) || isGone(command)',
        'isGone(command)',
      ),
      source(
        'engine/cells/cellQueue',
        'for (const { deadline = latest } of commands)',
        'for (const deadline of commands.map(() => latest))',
      ),
    ],
    foundBy: { file: PAUSED, test: 'a spin that was not sent to Redis by its deadline gets KS-5002' },
  },
  {
    name: 'two Idempotency-Key headers make one id',
    faults: [source('api/spins/idempotencyKey', 'if (header.includes(REPEATED))', "if (header === '')")],
    foundBy: {
      file: 'test/api/server/helpfulErrors.test.ts',
      test: 'the idempotency key of a spin refuses a spin with two Idempotency-Key headers, but not one whose key has a comma',
    },
  },
  {
    name: 'a partner may take all connections to Postgres',
    faults: [source('api/server/serverRoutes', 'atOnceOfOwner: 6', 'atOnceOfOwner: 256')],
    foundBy: {
      file: 'test/api/server/neighbours.test.ts',
      test: 'while the requests of one partner hang in Postgres, others and operators are answered',
    },
  },
  {
    name: 'an adjustment before the day of its partner is in no report',
    faults: [
      source(
        'books/settlement/settledDays.store',
        "'game_days', 'sandbox_days', 'communal_days', 'opening_days', 'adjustment_days'",
        "'game_days'",
      ),
    ],
    foundBy: {
      file: 'test/books/settlement/settlementMidnight.test.ts',
      test: 'a partner that is created just after midnight gets a report of the adjustment that Redis booked before midnight',
    },
  },
  {
    name: 'an outbox entry that can not be read is tried for ever',
    faults: [source('engine/ledger/flusher', ' || error instanceof UnreadableEntryError', '')],
    foundBy: {
      file: 'test/engine/ledger/money.test.ts',
      test: 'an outbox entry that can not be read halts its cell with an alarm',
    },
  },
];
