/**
 * Checks the contents of Redis and Postgres against each other and against sealed outcomes and certified PAR
 * sheets, while the service runs. The audit writes and locks nothing, and does not report commands in
 * progress as faults.
 *
 *   one snapshot of Postgres ──> blocks ──> ledger, one pass ──> postings
 *   Redis, after the snapshot ─> players, requestIds, blocks, counters, outboxes, epochs
 *
 * If a record in Redis names an entry that the snapshot lacks, the entry is looked up in the outbox and in
 * the current ledger.
 *
 * Memory: about 100 bytes for each player, and 60 bytes for each requestId of the last two idempotency
 * periods.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { GameType } from '../../domain/games/kindOfGame.js';
import { gamesWithoutOutcomes } from '../../engine/blocks/spentOutcomes.store.js';
import { sheetsOf } from '../../engine/catalog/catalog.store.js';
import { openPlayerStatusReads, type PlayerStatusReads } from '../../engine/cells/playerStatuses.store.js';
import { type MoveReads, openMoveReads } from '../../engine/recovery/partnerMoves.store.js';
import { openRedisAuditReads, type RedisAuditReads } from '../../engine/redis/auditReads.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import { auditChain } from '../../postgres/auditLog.js';
import type { Sql } from '../../postgres/connection.js';
import type { CopyRow } from '../../postgres/copy.js';
import { STRAY } from './auditColumns.js';
import { type AuditReads, type Facts, openAuditReads, type Snapshot } from './auditReads.store.js';
import { auditLoaded, auditSealed } from './blockAudit.js';
import { type CommunalReads, openCommunalReads } from './communalAuditReads.store.js';
import { CommunalStoresAudit } from './communalStores.js';
import { openRoundReads, type RoundReads } from './gameAuditReads.store.js';
import { type PassedLedger, passLedger } from './ledgerPass.js';
import { auditPlayerStatuses, SeenStatuses } from './playerStatusAudit.js';
import { auditPublicLog } from './publicLogAudit.js';
import { Redrawn } from './redrawn.js';
import { type AuditReport, Findings, type MovingPartner } from './report.js';
import { auditRequests } from './requestAudit.js';
import { auditOpenRounds, auditRounds } from './roundAudit.js';
import { auditCells, auditPlayers, type StoresAudit } from './storeAudit.js';

export type AuditPhase =
  | 'moves'
  | 'blocks'
  | 'ledger'
  | 'postings'
  | 'players'
  | 'requests'
  | 'loaded blocks'
  | 'cells';

export interface AuditOptions {
  /** Maximum number of violations listed for each check of the audit. */
  readonly limit: number;
  /**
   * If true, every block is drawn again and compared. Otherwise only blocks whose outcomes were removed are
   * drawn again.
   */
  readonly redraw?: boolean;
  /** Time to wait for running partner moves to end, in ms. Default: 0. */
  readonly movesWithinMs?: number;
  /** @param total number of items to check, or 0 if unknown */
  readonly onProgress: (phase: AuditPhase, done: number, total: number) => void;
}

const MOVES_LOOK_MS = 250;

/** Thrown if a store does not answer, or returns an invalid answer. */
class StoreError extends Error {}

/**
 * @param sql needs at least two connections
 * @returns all findings. If a store fails, the report has the findings until then and the reason why it is
 * incomplete.
 */
export async function audit(sql: Sql, nodes: RedisNodes, options: AuditOptions): Promise<AuditReport> {
  const startedAt = new Date();
  const started = performance.now();
  const findings = new Findings(options.limit);
  const speed = { rows: 0, seconds: 0 };
  let interrupted: string | undefined;
  let moving: readonly MovingPartner[] = [];
  try {
    moving = await run(sql, nodes, findings, speed, options);
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    interrupted = error.message;
  }
  const checks = findings.checks();
  return {
    startedAt,
    seconds: (performance.now() - started) / 1000,
    rows: speed.rows,
    rowsPerSecond: speed.seconds === 0 ? 0 : Math.round(speed.rows / speed.seconds),
    checks,
    violations: checks.reduce((sum, check) => sum + check.violations, 0),
    interrupted,
    moving,
  };
}

async function run(
  sql: Sql,
  nodes: RedisNodes,
  findings: Findings,
  speed: { rows: number; seconds: number },
  { redraw = false, movesWithinMs = 0, onProgress }: AuditOptions,
): Promise<readonly MovingPartner[]> {
  const postgres = guarded('Postgres', openAuditReads(sql));
  const redis = guarded('Redis', openRedisAuditReads(nodes));
  await redis.timeMs();
  const moves = guarded('Postgres', openMoveReads(sql));
  await movesEnded(moves, movesWithinMs, () => onProgress('moves', 0, 0));
  const begunAt = await moves.now();
  const { facts, pass, anchors } = await postgres.snapshot(async (snapshot) => {
    const { facts } = snapshot;
    let total = 0;
    for (const { spins } of facts.gameDays) total += Number(spins);
    for (const { players } of facts.openingDays) total += Number(players);
    const redrawn = new Redrawn(facts, (ids) => sheetsOf(sql, ids));
    await redrawn.load(redraw ? facts.games.map(({ gameId }) => gameId) : await gamesWithoutOutcomes(sql));
    const options = { redrawn, isEveryBlock: redraw };
    await auditSealed(snapshot, findings, options, (done) => onProgress('blocks', done, 0));
    const anchors = await auditPublicLog(snapshot, findings);
    const started = performance.now();
    const pass = await passLedger(snapshot, findings, redrawn.filling(postgres), (rows) =>
      onProgress('ledger', rows, total),
    );
    speed.rows = pass.rows;
    speed.seconds = (performance.now() - started) / 1000;
    onProgress('postings', 0, 0);
    await snapshot.unbalancedPostings((row) =>
      findings.found(
        'double-entry',
        'the postings of the entry do not sum to zero',
        { entry: row.big(0).toString() },
        '0 of 2 postings',
        `${row.text(1)} of ${row.big(2)} postings`,
      ),
    );
    findings.looked('double-entry', 'entries with their postings', pass.rows);
    for (const auditNotes of Object.values(NOTES)) await auditNotes(snapshot, findings);
    await auditStrayRequests(snapshot, findings);
    return { facts, pass, anchors };
  });

  const chain = await guarded('Postgres', { chain: () => auditChain(sql, anchors) }).chain();
  for (const { auditId, problem } of chain.faults) findings.found('audit-log', problem, { auditId });
  findings.looked('audit-log', 'entries', chain.entries);

  findings.beginComparing();
  await auditStores({ sql, nodes, postgres, redis, findings, onProgress }, facts, pass);
  const moved = await moves.movedSince(begunAt);
  for (const { partnerId, gameIds } of moved) findings.leaveOut(partnerId, gameIds);
  return moved.map(({ gameIds: _, ...moving }) => moving);
}

/** Waits until no partner is moving to another cell, but at most `withinMs` milliseconds. */
async function movesEnded(
  moves: Pick<MoveReads, 'movedSince'>,
  withinMs: number,
  onWait: () => void,
): Promise<void> {
  for (const deadline = performance.now() + withinMs; performance.now() < deadline; ) {
    if ((await moves.movedSince(undefined)).length === 0) return;
    onWait();
    await pause(MOVES_LOOK_MS);
  }
}

/**
 * For each kind of game, compares the tables that every flush writes beside the ledger (ledger.store.ts) with
 * the ledger.
 */
const NOTES: { readonly [T in GameType]: (snapshot: Snapshot, findings: Findings) => Promise<void> } = {
  slot: (snapshot, findings) =>
    snapshot.strayCommunal((row) => {
      const problem = `a record of a communal progressive (${row.text(0)}) names no entry of the ledger`;
      findings.found('communal', problem, { entry: row.big(1).toString(), game: row.int(2) });
    }),
  raffle: (snapshot, findings) =>
    snapshot.strayTickets(
      strayRequest(
        findings,
        'the requestId of a ticket has no record of its own',
        'a requestId is recorded for a ticket that is not in the ledger',
      ),
    ),
  blackjack: auditRounds,
};

/** Compares the stored runs of released requestIds with the requestIds of the ledger. */
const auditStrayRequests = (snapshot: Snapshot, findings: Findings): Promise<void> =>
  snapshot.strayRequests(
    strayRequest(
      findings,
      "a released requestId is missing in the runs, or can't be found there",
      'a run has a requestId that is not in the ledger',
    ),
  );

const strayRequest =
  (findings: Findings, lacking: string, strange: string) =>
  (row: CopyRow): void =>
    findings.found('requests', row.int(STRAY.ofLedger) === 1 ? lacking : strange, {
      entry: row.big(STRAY.entryId).toString(),
      game: row.int(STRAY.gameId),
      request: row.text(STRAY.requestId),
    });

interface Stores extends Pick<StoresAudit, 'postgres' | 'redis' | 'findings'> {
  readonly sql: Sql;
  readonly nodes: RedisNodes;
  readonly onProgress: AuditOptions['onProgress'];
}

/** Compares the contents of Redis with the snapshot of Postgres and with everything committed since. */
async function auditStores(
  { sql, nodes, postgres, redis, findings, onProgress }: Stores,
  facts: Facts,
  pass: PassedLedger,
): Promise<void> {
  const communal = new CommunalStoresAudit(facts, findings, {
    postgres: guarded('Postgres', openCommunalReads(sql)),
    redis,
    findPot: (cell, gameId) => nodes.cell(cell).findPot(gameId),
  });
  const stores: StoresAudit = { facts, findings, postgres, redis, communal, onProgress };
  const seen = new SeenStatuses();
  await auditPlayers(stores, pass.players, seen);
  const onRecord = guarded('Postgres', openPlayerStatusReads(sql));
  await auditPlayerStatuses({ facts, findings, onRecord, redis, seen });
  const reads = guarded('Postgres', openRoundReads(sql));
  await auditOpenRounds({ facts, findings, reads, redis });
  await auditRequests(stores, pass.requests);
  onProgress('loaded blocks', 0, 0);
  await auditLoaded(facts, findings, postgres, redis);
  await auditCells(stores);
  await communal.finish();
}

type Reads =
  | AuditReads
  | CommunalReads
  | MoveReads
  | PlayerStatusReads
  | RedisAuditReads
  | RoundReads
  | { chain: () => ReturnType<typeof auditChain> };

/** Wraps read functions so that their errors name the store that failed. */
function guarded<T extends Reads>(store: string, reads: T): T {
  const failed = (error: unknown): never => {
    // A programming error in the audit is rethrown as it is, because it is not a failure of the store.
    const isOurs =
      error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError;
    if (error instanceof StoreError || isOurs) throw error;
    const message = error instanceof Error ? error.message || error.name : String(error);
    throw new StoreError(`${store} does not respond: ${message}`, { cause: error });
  };
  async function* pages(source: AsyncIterable<unknown>): AsyncGenerator<unknown> {
    try {
      yield* source;
    } catch (error) {
      failed(error);
    }
  }
  return Object.fromEntries(
    Object.entries(reads).map(([name, run]: [string, (...args: unknown[]) => unknown]) => [
      name,
      (...args: unknown[]) => {
        const answer = run(...args);
        return answer instanceof Promise ? answer.catch(failed) : pages(answer as AsyncIterable<unknown>);
      },
    ]),
  ) as unknown as T;
}
