/** Faults of the public log, and the test that finds each. */
import { type Fault, source } from './mutant.js';
import type { SuiteTest } from './suiteCopy.js';

const test = (file: string, title: string): SuiteTest => ({ file: `test/${file}.test.ts`, test: title });

const HELD_BACK =
  'the log holds back what it does not have yet: nothing is loaded before a checkpoint covers it, and what is loaded is dealt';
export const LOG_MUTATIONS: readonly { name: string; faults: readonly Fault[]; foundBy: SuiteTest }[] = [
  {
    name: 'a block is loaded before a published checkpoint covers it',
    faults: [source('blocks/keeper', 'await this.#published();', '')],
    foundBy: test('transparency/log', HELD_BACK),
  },
  {
    name: 'an entry has the label of the one before',
    faults: [
      source(
        'postgres/publicLog',
        'labelOf(opening.labelKey, opening.number)',
        'labelOf(opening.labelKey, Math.max(0, opening.number - 1))',
      ),
    ],
    foundBy: test(
      'transparency/log',
      'the log has each entry of a game once, and shows who has its key which they are',
    ),
  },
  {
    name: 'two outcomes of a block have the same nonce',
    faults: [
      source(
        'domain/transparency/leaves',
        'counter.writeBigUInt64BE(BigInt(first) * 2n, 8);',
        'counter.writeBigUInt64BE(0n, 8);',
      ),
    ],
    foundBy: test(
      'transparency/log',
      'a proof of a slot spin holds, with the sheet and the answer, and was fixed before it was dealt',
    ),
  },
  {
    name: 'a tile is served before its tree is published',
    faults: [
      source(
        'http/publicLog',
        'widthAt(place.level, place.index, published.size) < place.width',
        'place.width < 0',
      ),
    ],
    foundBy: test('transparency/log', 'the log shows nothing of a tree that is not published'),
  },
];
