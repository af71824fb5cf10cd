/**
 * Deliberate faults that a test of the suite must find. Each is a former defect that must not return
 * unnoticed.
 */

import { LOG_MUTATIONS } from './logMutations.js';
import { type Fault, lua, source } from './mutant.js';
import { STALLED_MUTATIONS } from './stalledMutations.js';
import type { SuiteTest } from './suiteCopy.js';
import { VOID_MUTATIONS } from './voidMutations.js';
import { WAIT_MUTATIONS } from './waitMutations.js';

export interface SuiteMutation {
  readonly name: string;
  readonly faults: readonly Fault[];
  readonly foundBy: SuiteTest;
}

const test = (file: string, title: string): SuiteTest => ({ file: `test/${file}.test.ts`, test: title });

const BLOCKED_OWED = test(
  'engine/cells/playerStatus',
  'refuses spins and deals of a blocked player with more pending shares than a player record can hold',
);
const READERS = 'api/spins/readers';
const AFTER_MOVE = test(
  READERS,
  'every reader still shows all earlier entries, and later ones, after a partner moves to an idle cell',
);
const SAME_ROWS = test(
  READERS,
  'shows each kind of spin in CSV as in JSON, and in both as in the response to the spin',
);
const ONE_MOMENT = test(
  READERS,
  'shows the state of one moment in each answer while spins are dealt: budget and paid, queue and totals',
);
const REPEATED = 'the idempotency key of other routes';
const LIVE_NEIGHBOUR = test(
  'webhooks/webhookNeighbours',
  'a live webhook gets its delivery before three failing ones on its host get two more turns each',
);

/** Faults in operations that read players or the ledger. */
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
      "pages through a player's spins and tickets, and lists the player's bonus shares separately",
    ),
  },
  {
    name: 'a forced spin is shown with a place among the sealed outcomes',
    faults: [source('api/spins/routes', 'ENTRY_KINDS[entry.kind].advancesGameIndex', 'true')],
    foundBy: test(READERS, 'marks a forced spin, and shows no sealed block or outcome index for it'),
  },
  {
    name: 'the progress of a tier of few spins is its counter',
    faults: [source('domain/communal', 'SHOWN_FROM_SPINS = 1000', 'SHOWN_FROM_SPINS = 1')],
    foundBy: ONE_MOMENT,
  },
];

/** Faults in the protection of calls, and of stores. */
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
    foundBy: test(
      'api/server/helpfulErrors',
      `${REPEATED} accepts the idempotency key in the header on every route, and executes the request once`,
    ),
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
      `${REPEATED} refuses a misspelled requestId on every route, names the right member, and changes nothing`,
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
      'a front end reloads the filter of a run whose bytes were replaced under the same run number',
    ),
  },
];

const MOVE_LOCKS = (what: string): SuiteTest =>
  test(
    'engine/cells/moveLocks',
    `a partner whose move waits for a lock of ${what} is dealt to in its old cell and moves afterwards`,
  );
const FREED = test(
  'engine/blocks/freedBlocks',
  'the scripts that load and free the blocks of a queue frees no blocks if the queue has grown, the epoch has changed, or another owner has claimed the cell',
);
const RESTORED = (title: string): SuiteTest =>
  test('engine/recovery/restored', `a restore of Postgres to an older state ${title}`);
const BESIDE_EMPTY = RESTORED(
  'after a restore with an empty Redis, games continue above all loaded indices and raffles are suspended',
);
const ANSWERED = 'engine/recovery/answeredEntries';

/** Makes the query of session settings return `on` for every setting, whatever the actual value. */
const OWN_COMMIT = [
  source(
    'postgres/sessionSettings',
    'SESSION_SQL = `',
    "SESSION_SQL = `SELECT 'on' AS synchronous_commit, 'on' AS fsync, 'on' AS full_page_writes, 0 AS different` ?? `",
  ),
];

/**
 * Faults in the handling of stores that are locked, restored, started with other settings or have a wrong
 * clock.
 */
const STORES: readonly SuiteMutation[] = [
  {
    name: 'a session takes synchronous_commit from the database',
    faults: OWN_COMMIT,
    foundBy: test(
      'engine/ledger/postgresDurability',
      'if synchronous_commit is off, each session sets it to on; behind a pooler, each writing transaction does',
    ),
  },
  {
    name: 'spins that are answered are not waited for on the disk of Postgres',
    faults: OWN_COMMIT,
    foundBy: test(
      'engine/ledger/postgresDurability',
      'every answered spin is in the ledger after a kill of Postgres with synchronous_commit off for the database',
    ),
  },
  {
    name: 'a Postgres without fsync is served from',
    faults: [
      source(
        'postgres/postgresDurability',
        'fsync,\n    full_page_writes: fullPageWrites',
        'full_page_writes: fullPageWrites',
      ),
    ],
    foundBy: test(
      'engine/ledger/postgresDurability',
      'with fsync off the service does not start, and if it is turned off later, spins are refused until it is on again',
    ),
  },
  {
    name: 'a flush waits for the partition of tomorrow',
    faults: [
      source(
        'engine/ledger/partitions',
        'has(day)) return;\n    await ensureDay(this.sql, ',
        'has(day)) return;\n    for (const ahead of [0, DAY_MS]) await ensureDay(this.sql, ahead + ',
      ),
    ],
    foundBy: test(
      'engine/ledger/partitionsAhead',
      "commits spins to today's partition while a lock like that of ANALYZE or DETACH CONCURRENTLY is on the ledger",
    ),
  },
  {
    name: 'a flush does not make the partition that it needs',
    faults: [
      source('engine/ledger/flusher', 'for (const day of days) await this.#partitions.ensure(day);', ';'),
    ],
    foundBy: test('engine/ledger/partitionsAhead', "a flush that needs today's missing partition creates it"),
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
      'a Redis that is emptied while its clock is two hours ahead is rebuilt and dealt from once the clocks agree',
    ),
  },
  {
    name: 'a cell that lacks what was answered is taken for ready',
    faults: [source('engine/recovery/handshake', 'if (answered > cursorId && ', 'if (cursorId < 0n && ')],
    foundBy: test(
      ANSWERED,
      'the worker rebuilds a cell with an older copy of Redis after its front ends were stopped',
    ),
  },
  {
    name: 'a front end keeps to itself that a cell lacks what was answered',
    faults: [
      source('app/roles/dealing', 'if (error instanceof LacksError) answered?.marks.lacks(cell);', ''),
    ],
    foundBy: test(
      ANSWERED,
      'a running front end causes the rebuild of a cell with an older copy, and its lost spins are reported with their ids',
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
    foundBy: RESTORED('after a restore, games continue at the lowest indices that the operator gives'),
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
    foundBy: RESTORED(
      'after a restore, if a Redis that is ahead of Postgres is replaced, its counters stay lower limits for new indices',
    ),
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
    foundBy: RESTORED('after a restore, games continue at the lowest indices that the operator gives'),
  },
  {
    name: 'a round that is to be voided takes an action before',
    faults: [source('engine/blackjack/roundPlay', "if (known.isToVoid) return 'refused';", '')],
    foundBy: BESIDE_EMPTY,
  },
];

/** Faults in the handling of the position file outside the two stores. */
const POSITION = (title: string): SuiteTest => test('engine/recovery/positionFile', title);
const POSITIONS: readonly SuiteMutation[] = [
  {
    name: 'a block is loaded before the position file has its lease',
    faults: [
      source(
        'engine/blocks/keeper',
        '    await this.options.leased(queue.gameId, leased.at(-1)!.toIndex);\n',
        '',
      ),
      source(
        'engine/blocks/keeper',
        'await this.#load(queue, block);\n',
        'await this.#load(queue, block);\n    await this.options.leased(queue.gameId, queue.leaseEnd!);\n',
      ),
    ],
    foundBy: POSITION('the position file has the lease of a block that a killed worker had loaded'),
  },
  {
    name: 'nobody compares the position file with Postgres',
    faults: [
      source(
        'engine/recovery/positionKeeper',
        'file === undefined ? undefined : await differenceOf(sql, this.options, file)',
        '(await differenceOf(sql, this.options, file!).catch(() => undefined)) && undefined',
      ),
    ],
    foundBy: POSITION(
      'deals nothing after both stores were restored to the same moment, and no revealed outcome after spindle recover',
    ),
  },
  {
    name: 'giving up the position file settles no finding of a worker',
    faults: [
      source(
        'engine/recovery/outsideCopies.store',
        "setting === 'POSITION_FILE' ? await settlePositions(tx, positionId) : 0",
        "(setting === 'POSITION_FILE' ? settlePositions.length + (positionId?.length ?? 0) : 0) * 0",
      ),
    ],
    foundBy: POSITION('a running worker continues once the position file of another timeline is given up'),
  },
  {
    name: 'a position file that is cut off makes the worker fail without a word',
    faults: [
      source(
        'engine/recovery/positionKeeper',
        'if (error instanceof UnreadableFileError) return',
        'if (error instanceof UnreadableFileError && error.path.length === 0) return',
      ),
    ],
    foundBy: POSITION('recover --restored replaces a damaged position file'),
  },
  {
    name: 'a Postgres that went on from another point in time is taken for the one before',
    faults: [
      source(
        'engine/recovery/positionDifference',
        '&& before !== now)',
        "&& before !== now && field !== 'timeline')",
      ),
    ],
    foundBy: POSITION(
      'deals nothing from a Postgres with another identity, timeline or database until an operator accepts it',
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
      'deactivates a webhook only after five days of failures and a delivery without attempts left',
    ),
  },
  {
    name: 'the feed has test events',
    faults: [source('postgres/partnerEvents', ' AND NOT is_test', '')],
    foundBy: test(
      UPKEEP,
      'the event feed omits test events, can continue after the id of a test event, and has all digits of large numbers',
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
      "gives a partner's last attempt to a host to a webhook that never failed, even if failing ones wait longer",
    ),
  },
  {
    name: 'the webhooks of a partner do not share its limit of concurrent attempts',
    faults: [source('webhooks/deliveries.store', 'WHERE turn <= room_of_partner', 'WHERE turn > 0')],
    foundBy: test(
      'webhooks/webhookConcurrency',
      'makes 64 attempts for a partner at a time, and names this limit while more deliveries wait',
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
      "shows a failing webhook to its partner, to operators and in the overview's list of problems",
    ),
  },
];

export const SUITE_MUTATIONS: readonly SuiteMutation[] = [
  ...READS,
  ...VOID_MUTATIONS,
  ...WAIT_MUTATIONS,
  ...LOG_MUTATIONS,
  ...STALLED_MUTATIONS,
  ...GUARDS,
  ...STORES,
  ...POSITIONS,
  ...WEBHOOKS,
];
