/** Faults of which each is found by a test of the suite: what was once wrong, and must not come back unseen. */

import { LOG_MUTATIONS } from './logMutations.js';
import { type Fault, lua, source } from './mutant.js';
import { STALLED_MUTATIONS } from './stalledMutations.js';
import type { SuiteTest } from './suiteCopy.js';
import { VOID_MUTATIONS } from './voidMutations.js';

export interface SuiteMutation {
  readonly name: string;
  readonly faults: readonly Fault[];
  readonly foundBy: SuiteTest;
}

const test = (file: string, title: string): SuiteTest => ({ file: `test/${file}.test.ts`, test: title });

const BLOCKED_OWED = test(
  'engine/cells/playerStatus',
  'a blocked player who is still to be told of more shares than its record holds is neither spun nor dealt for',
);
const READERS = 'api/spins/readers';
const AFTER_MOVE = test(
  READERS,
  'after a move to an idle cell every reader has all that was made before, and what comes then',
);
const SAME_ROWS = test(
  READERS,
  'a row of CSV says of each kind of spin what its JSON says, and that is what was answered',
);
const ONE_MOMENT = test(
  READERS,
  'one answer shows one moment, while spins are made: budget and paid, queue and totals',
);
const REPEATED = 'on every route that takes one, the idempotency key';
const LIVE_NEIGHBOUR = test(
  'webhooks/webhookNeighbours',
  'a live webhook gets its delivery before three dead ones on its host have two more turns each',
);

/** What is read of players and of the ledger. */
const READS: readonly SuiteMutation[] = [
  {
    name: 'a blocked player with shares to be notified is not taken for blocked',
    faults: [lua('include/playerFlags', 'hasFlag(byte(tail), IS_BLOCKED)', 'byte(tail) == IS_BLOCKED')],
    foundBy: BLOCKED_OWED,
  },
  {
    name: 'a blocked player with shares to be notified is dealt a round',
    faults: [lua('roundDeal', 'refuse(playerTails[player],', 'refuse(nil,')],
    foundBy: BLOCKED_OWED,
  },
  {
    name: 'the ledger of a partner that has moved is complete up to the cursor of its new cell only',
    faults: [source('engine/catalog/partners.store', 'raw(`greatest(', 'raw(`coalesce(')],
    foundBy: AFTER_MOVE,
  },
  {
    name: 'a balance in CSV lacks the bonus that the spin fired',
    faults: [
      source(
        'api/contract/spinCsv',
        '({ balanceMicros }) => microsToUsdText(balanceMicros)',
        '({ entry }) => microsToUsdText(entry.balanceMicros)',
      ),
    ],
    foundBy: SAME_ROWS,
  },
  {
    name: 'CSV puts an apostrophe before ids that nobody asked it for',
    faults: [
      source('domain/csv', "=== 'true' ? escapedText : csvText", "=== 'true' ? csvText : escapedText"),
    ],
    foundBy: SAME_ROWS,
  },
  {
    name: 'shares are counted among the spins of a player',
    faults: [source('api/spins/spinHistory.store', ' - shares.count;', ';')],
    foundBy: test(
      READERS,
      "a player's history has its spins and tickets, page by page, and its shares are a list of their own",
    ),
  },
  {
    name: 'a forced spin is shown with a place among the sealed outcomes',
    faults: [source('api/spins/routes', 'ENTRY_KINDS[entry.kind].advancesGameIndex', 'true')],
    foundBy: test(READERS, 'a forced spin is marked, and has no place among the sealed outcomes'),
  },
  {
    name: 'the progress of a tier of few spins is its counter',
    faults: [source('domain/communal', 'SHOWN_FROM_SPINS = 1000', 'SHOWN_FROM_SPINS = 1')],
    foundBy: ONE_MOMENT,
  },
];

/** How calls and stores are guarded. */
const GUARDS: readonly SuiteMutation[] = [
  {
    name: 'a deal takes no notice of Idempotency-Key',
    faults: [
      source(
        'api/server/readRequest',
        'if (takesRequestId(route.body))',
        "if (takesRequestId(route.body) && !route.path.endsWith('/deal'))",
      ),
    ],
    foundBy: test('api/server/helpfulErrors', `${REPEATED} may be in the header, and is done once`),
  },
  {
    name: 'a misspelt requestId is taken for none',
    faults: [
      source(
        'api/server/readRequest',
        'if (takesRequestId(route.body))',
        "if (takesRequestId(route.body) && 'requestId' in body)",
      ),
    ],
    foundBy: test(
      'api/server/helpfulErrors',
      `${REPEATED} is told its name where it is misspelt, and nothing is done`,
    ),
  },
  {
    name: 'filters of request ids are known by the number of their run',
    faults: [
      source(
        'engine/requestIds/requestIds',
        '[cell, runId, fromId, toId, ids, filterBytes, filterHash].join',
        '[runId].join',
      ),
    ],
    foundBy: test(
      'engine/cells/bindingTimes',
      'other bytes under the number of a known run are read, and nothing is looked up in them by the old ones',
    ),
  },
];

const MOVE_LOCKS = (what: string): SuiteTest =>
  test(
    'engine/cells/moveLocks',
    `behind a lock of ${what} the partner is dealt for in its old cell; then it moves`,
  );
const FREED = test(
  'engine/blocks/freedBlocks',
  'the scripts of a queue nothing is freed of a queue that has grown meanwhile, nor at another epoch, nor by another owner than has claimed the cell',
);
const RESTORED = (title: string): SuiteTest =>
  test('engine/recovery/restored', `after a restore to an older state ${title}`);
const BESIDE_EMPTY = RESTORED(
  'beside an empty Redis, slots and tables go on above all that may have been loaded, and raffles are suspended',
);
const ANSWERED = 'engine/recovery/answeredEntries';

/** It says `on`, whatever it finds. */
const OWN_COMMIT = [
  source(
    'postgres/sessionSettings',
    'SESSION_SQL = `',
    "SESSION_SQL = `SELECT 'on' AS synchronous_commit, 'on' AS fsync, 'on' AS full_page_writes, 0 AS different` ?? `",
  ),
];

/** Stores that are locked, restored, started with other settings or by a wrong clock. */
const STORES: readonly SuiteMutation[] = [
  {
    name: 'a session takes synchronous_commit from the database',
    faults: OWN_COMMIT,
    foundBy: test(
      'engine/ledger/postgresDurability',
      'where it is off a session sets on, behind a pooler each transaction that writes',
    ),
  },
  {
    name: 'spins that are answered are not waited for on the disk of Postgres',
    faults: OWN_COMMIT,
    foundBy: test(
      'engine/ledger/postgresDurability',
      'synchronous_commit off for the database, Postgres killed: each spin that was answered is in the ledger',
    ),
  },
  {
    name: 'a Postgres without fsync is served from',
    faults: [
      source(
        'postgres/postgresDurability',
        "(['fsync', 'full_page_writes', 'synchronous_commit']",
        "(['full_page_writes', 'synchronous_commit']",
      ),
    ],
    foundBy: test(
      'engine/ledger/postgresDurability',
      'fsync off: the start is refused; turned off later, spins stop until it is on again',
    ),
  },
  {
    name: 'a flush waits for the partition of tomorrow',
    faults: [
      source(
        'engine/ledger/partitions',
        'has(day)) return;\n    await ensureDay(this.#sql, ',
        'has(day)) return;\n    for (const ahead of [0, DAY_MS]) await ensureDay(this.#sql, ahead + ',
      ),
    ],
    foundBy: test(
      'engine/ledger/partitionsAhead',
      'while the ledger is locked as ANALYZE and DETACH CONCURRENTLY do it, spins are booked in the partition of today',
    ),
  },
  {
    name: 'a flush does not make the partition that it needs',
    faults: [
      source('engine/ledger/flusher', 'for (const day of days) await this.#partitions.ensure(day);', ';'),
    ],
    foundBy: test(
      'engine/ledger/partitionsAhead',
      'the partition of today that is missing is made by the flush that needs it',
    ),
  },
  ...['the row of the partner', 'the number of changes', 'the checkpoints of players'].map((what) => ({
    name: `a move waits for a lock of ${what} as long as a statement may`,
    faults: [source('postgres/limits', 'String(Math.floor(leftMs))', "'600000'")],
    foundBy: MOVE_LOCKS(what),
  })),
  {
    name: 'clocks are not compared before a cell is prepared',
    faults: [
      source('engine/recovery/agreedTime', 'if (Math.abs(skewMs) > skewMaxMs)', 'if (skewMs === Infinity)'),
    ],
    foundBy: test(
      'engine/recovery/preparedClocks',
      'a Redis that is emptied while its clock is two hours ahead is rebuilt once the clocks agree, and deals',
    ),
  },
  {
    name: 'a cell that lacks what was answered is taken for ready',
    faults: [source('engine/recovery/handshake', 'if (answered > cursorId && ', 'if (cursorId < 0n && ')],
    foundBy: test(ANSWERED, 'after front ends that were stopped the worker rebuilds the cell'),
  },
  {
    name: 'a front end keeps to itself that a cell lacks what was answered',
    faults: [
      source('app/roles/dealing', 'if (error instanceof LacksError) answered?.marks.lacks(cell);', ''),
    ],
    foundBy: test(
      ANSWERED,
      'a front end that lives has the cell rebuilt, and its lost spins are known by name',
    ),
  },
  {
    name: 'a queue is freed by who owns the cell no more',
    faults: [lua('include/ownerFence', 'if claimedBy ~= (ownFence or fence) or', 'if not claimedBy and')],
    foundBy: FREED,
  },
  {
    name: 'a raffle is sold on after a restore',
    faults: [
      source(
        'engine/recovery/positions.store',
        'AND r.closed_at IS NULL AND r.voided_at IS NULL\n    RETURNING',
        'AND r.closed_at > now()\n    RETURNING',
      ),
    ],
    foundBy: BESIDE_EMPTY,
  },
  {
    name: 'shoes are dealt again after a restore',
    faults: [
      source(
        'engine/recovery/positions.store',
        "::boolean AND g.game_type <> 'raffle'",
        '::boolean AND false',
      ),
    ],
    foundBy: BESIDE_EMPTY,
  },
  {
    name: 'outcomes go on at what the restored Postgres has leased',
    faults: [
      source(
        'engine/recovery/positions.store',
        'THEN greatest(leased_to, coalesce(floor',
        'THEN least(leased_to, coalesce(floor',
      ),
    ],
    foundBy: RESTORED('games go on at the floors that are known'),
  },
  {
    name: 'nobody looks how far the Redis is that is given up',
    faults: [
      source(
        'engine/recovery/prepare',
        "const isAhead = state === 'foreign' && token !== undefined;",
        'const isAhead = false;',
      ),
    ],
    foundBy: RESTORED('a Redis that is ahead and given up has its counters honoured'),
  },
  {
    name: 'an open round of a state that was restored goes on with its shoe',
    faults: [
      source(
        'engine/recovery/recoveries.store',
        'if (restored !== undefined) await voidOpenRounds',
        'if (false) await voidOpenRounds',
      ),
    ],
    foundBy: RESTORED('games go on at the floors that are known'),
  },
  {
    name: 'a round that is to be voided takes an action before',
    faults: [source('engine/blackjack/roundPlay', "if (known.isToVoid) return 'refused';", '')],
    foundBy: BESIDE_EMPTY,
  },
];

/** The file outside both stores. */
const POSITION = (title: string): SuiteTest => test('engine/recovery/positionFile', title);
const POSITIONS: readonly SuiteMutation[] = [
  {
    name: 'a block is loaded before the position file has its lease',
    faults: [
      source(
        'engine/blocks/keeper',
        '    await this.#options.leased(queue.gameId, leased.at(-1)!.toIndex);\n',
        '',
      ),
      source(
        'engine/blocks/keeper',
        'await this.#load(queue, block);\n',
        'await this.#load(queue, block);\n    await this.#options.leased(queue.gameId, queue.leaseEnd!);\n',
      ),
    ],
    foundBy: POSITION('of a worker that is killed when it has loaded a block the file has the lease'),
  },
  {
    name: 'nobody compares the position file with Postgres',
    faults: [
      source(
        'engine/recovery/positionKeeper',
        'file === undefined ? undefined : await this.#difference(file, postgres)',
        '(await this.#difference(file!, postgres).catch(() => undefined)) && undefined',
      ),
    ],
    foundBy: POSITION(
      'both stores restored together to the same older moment are not dealt from; after the command nothing that was shown is dealt again',
    ),
  },
  {
    name: 'a Postgres that went on from another point in time is taken for the one before',
    faults: [
      source(
        'engine/recovery/positionKeeper',
        '&& before !== now)',
        "&& before !== now && field !== 'timeline')",
      ),
    ],
    foundBy: POSITION(
      'a Postgres that is another one, whatever tells it, is not dealt from before the command',
    ),
  },
];

const UPKEEP = 'webhooks/webhookUpkeep';

const WEBHOOKS: readonly SuiteMutation[] = [
  {
    name: 'a single failed attempt sets a webhook inactive',
    faults: [source('webhooks/deliveries.store', 'SELECT has_ended AND last_at >=', 'SELECT last_at >=')],
    foundBy: test(
      UPKEEP,
      'a webhook is set inactive once it failed for five days and a delivery used up its attempts; no single attempt does it',
    ),
  },
  {
    name: 'the feed has test events',
    faults: [source('postgres/partnerEvents', ' AND NOT is_test', '')],
    foundBy: test(
      UPKEEP,
      'the feed has no test events, begins after one all the same, and shows every digit',
    ),
  },
  {
    name: 'the oldest due delivery of a host is always next',
    faults: [
      source(
        'webhooks/deliveries.store',
        'ORDER BY (begun + number - 1) * (1 + failures), failures, next_attempt_at)',
        'ORDER BY next_attempt_at)',
      ),
    ],
    foundBy: test(
      'webhooks/webhookNeighbours',
      'the last attempt that a partner has left on a host is of a webhook that has not failed, however long others have been due',
    ),
  },
  {
    name: 'a host rests for all of its webhooks',
    faults: [
      source(
        'webhooks/deliveries.store',
        'AND coalesce(e.not_before <= now(), true)',
        `AND NOT EXISTS (SELECT 1 FROM webhooks n JOIN webhook_endpoints r USING (webhook_id)
          WHERE n.host = w.host AND n.partner_id = w.partner_id AND r.not_before > now())`,
      ),
    ],
    foundBy: LIVE_NEIGHBOUR,
  },
  {
    name: 'deliveries that are late are not counted',
    faults: [
      source('api/overview/overviewReads.store', "next_attempt_at < now() - interval '5 minutes'", 'false'),
    ],
    foundBy: test(
      'api/overview/operatorReads',
      'a webhook that fails is named to its partner, to the operator and in what needs attention',
    ),
  },
];

export const SUITE_MUTATIONS: readonly SuiteMutation[] = [
  ...READS,
  ...VOID_MUTATIONS,
  ...LOG_MUTATIONS,
  ...STALLED_MUTATIONS,
  ...GUARDS,
  ...STORES,
  ...POSITIONS,
  ...WEBHOOKS,
];
