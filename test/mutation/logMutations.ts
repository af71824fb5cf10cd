/** Deliberate faults of the public log, each with the test that must find it. */
import { type Fault, source } from './mutant.js';
import type { SuiteTest } from './suiteCopy.js';

const test = (file: string, title: string): SuiteTest => ({ file: `test/${file}.test.ts`, test: title });

const HELD_BACK = 'reads of the public log deals a block only once a published checkpoint covers it';
const ONCE =
  'reads of the public log logs each block and void of a game once, and holders of its label key can identify them';
const PROVEN =
  'proofs of dealt outcomes proves a slot spin with its PAR sheet and response, and that its block was logged before it was dealt';
const TAKEN_OVER = test(
  'publicLog/log/covered',
  'a worker loads blocks that a killed worker had leased, or opens its raffle, only behind a checkpoint',
);

export const LOG_MUTATIONS: readonly { name: string; faults: readonly Fault[]; foundBy: SuiteTest }[] = [
  {
    name: 'a block is loaded before a published checkpoint covers it',
    faults: [source('engine/blocks/keeper', 'await this.#published();', '')],
    foundBy: test('publicLog/log/log', HELD_BACK),
  },
  {
    name: 'an entry has the label of the one before',
    faults: [
      source(
        'publicLog/log/logAppend.store',
        'labelOf(opening.labelKey, opening.number)',
        'labelOf(opening.labelKey, Math.max(0, opening.number - 1))',
      ),
    ],
    foundBy: test('publicLog/log/log', ONCE),
  },
  {
    name: 'two outcomes of a block have the same nonce',
    faults: [
      source(
        'domain/publicLog/leaves',
        'counter.writeBigUInt64BE(BigInt(first) * 2n, 8);',
        'counter.writeBigUInt64BE(0n, 8);',
      ),
    ],
    foundBy: test('publicLog/log/log', PROVEN),
  },
  {
    name: 'all outcomes of a block have one nonce',
    faults: [
      source(
        'domain/publicLog/leaves',
        "return createCipheriv('aes-256-ctr', key, counter).update(Buffer.alloc(count * NONCE_BYTES));",
        `return Buffer.concat(Array.from({ length: count }, () =>
          createCipheriv('aes-256-ctr', key, COUNTER).update(Buffer.alloc(NONCE_BYTES))));`,
      ),
    ],
    foundBy: test('publicLog/log/log', PROVEN),
  },
  {
    name: 'entries that are appended together have one salt',
    faults: [
      source(
        'publicLog/log/logAppend.store',
        'const salts = entries.map(() => randomBytes(KEY_BYTES));',
        'const salt = randomBytes(KEY_BYTES); const salts = entries.map(() => salt);',
      ),
    ],
    foundBy: test(
      'publicLog/log/covered',
      'a checkpoint fetched before a spin, ticket or round covers it, wherever the worker is killed',
    ),
  },
  {
    name: 'the last entry of an append is logged twice',
    faults: [
      source(
        'publicLog/log/logAppend.store',
        '...entries.map((opening, at) => recordOf(opening, salts[at]!)),',
        `...entries.map((opening, at) => recordOf(opening, salts[at]!)),
          ...entries.slice(-1).map((opening) => recordOf(opening, randomBytes(KEY_BYTES))),`,
      ),
    ],
    foundBy: test('publicLog/log/log', ONCE),
  },
  {
    name: 'what another worker had leased is loaded before a checkpoint covers it',
    faults: [source('engine/blocks/readQueue', 'if (!isPublished && !isAwaited) await published();', '')],
    foundBy: TAKEN_OVER,
  },
  {
    name: 'a raffle is open before a checkpoint covers its pool',
    faults: [
      source(
        'engine/blocks/readQueue',
        'if (leaseEnd > loadedEnd) await leased(gameId, leaseEnd);',
        'if (leaseEnd > loadedEnd) await leased(gameId, leaseEnd).then(() => queue.supply.loaded());',
      ),
    ],
    foundBy: TAKEN_OVER,
  },
  {
    name: 'a tree is signed that lacks an older one',
    faults: [source('publicLog/log/forkEvidence', 'if (size > ours)', 'if (size > ours * 1e9)')],
    foundBy: test(
      'publicLog/log/restored',
      'detecting a restore of Postgres to an older state detects a restore of Postgres by the note in Redis, unless Redis was emptied as well',
    ),
  },
  {
    name: 'a halt is forgotten at the next append',
    faults: [
      source(
        'publicLog/log/logAppend.store',
        'if (before.halt !== null) throw',
        'if (before.size < 0) throw',
      ),
      source('publicLog/log/logAppend.store', 'AND halt IS NULL AND NOT is_replaced', 'AND NOT is_replaced'),
      source('publicLog/log/logWriter', 'this.#halted ?? problem()', 'problem()'),
    ],
    foundBy: test(
      'publicLog/log/restored',
      'a note of another tree halts the log permanently while a worker runs, but logged blocks are dealt',
    ),
  },
  {
    name: 'a tile is served before its tree is published',
    faults: [
      source(
        'api/server/logTileRoutes',
        'widthAt(place.level, place.index, published.size) < place.width',
        'place.width < 0',
      ),
    ],
    foundBy: test(
      'publicLog/log/log',
      "reads of the public log serves no part of the log's tree that is not published",
    ),
  },
];
