/**
 * Deliberate faults in the handling of paused processes and of partners that have moved. A test of the suite
 * must find each of them.
 */
import { type Fault, source } from './mutant.js';
import type { SuiteTest } from './suiteCopy.js';

const test = (file: string, title: string): SuiteTest => ({ file: `test/${file}.test.ts`, test: title });

export const STALLED_MUTATIONS: readonly { name: string; faults: readonly Fault[]; foundBy: SuiteTest }[] = [
  {
    name: 'a session that waits for its client holds a cell for good',
    faults: [source('engine/cells/cells.store', "wait_event_type = 'Client'", "wait_event_type = 'Nothing'")],
    foundBy: test(
      'engine/ledger/stalledFlush',
      'a cell whose owner was paused during a flush gets a new owner, which commits its spins',
    ),
  },
  {
    name: 'a partner that has left is read where it was',
    faults: [source('engine/cells/partnerReads', 'if (!isAway) return found;', 'return found;')],
    foundBy: test(
      'engine/cells/partnerReads',
      'reads the data of a partner that has moved from its new cell',
    ),
  },
];
