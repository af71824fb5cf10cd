/**
 * Read access of front ends to the runs of request ids: their filters, the blocks that may contain an id, and
 * the time for which ids stay bound (domain/bindingTimes.ts).
 */
import { createHash } from 'node:crypto';
import { type BindingTime, BindingTimes } from '../../domain/bindingTimes.js';
import { firstIdAt } from '../../domain/entryId.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { type CopyRow, readRows } from '../../postgres/copy.js';
import { raw, rowsOf, safe } from '../../postgres/statements.js';
import { FencedError } from '../cells/cells.store.js';
import {
  FILTER_PIECE_BYTES,
  hashWord,
  type RequestRun,
  RUNS_VERSION,
  type RunsWatermark,
  requestRuns,
  runsWatermarks,
} from './requestRuns.store.js';

/** State of the request-id runs at one moment, as front ends read it. */
export interface RunsRead {
  readonly cells: readonly RunsWatermark[];
  /** Runs of request ids of all cells, oldest first. */
  readonly runs: readonly RequestRun[];
  readonly times: BindingTimes;
}

/** Receives the bytes of filters as they are read. */
export interface FilterReading {
  /** Runs whose filters are to be read, in this order. */
  readonly wanted: readonly RequestRun[];
  /** Receives the next bytes of a run's filter, which begin at offset `at`. */
  take(run: RequestRun, at: number, bits: Buffer): void;
  /** Called after all bytes of a filter have been received and their hash has been verified. */
  end(run: RequestRun): void;
}

/**
 * Maximum number of filter pieces that one statement reads, so that the statement ends within its usual
 * timeout. If the process is paused during a read, it does not delay a vacuum for long.
 */
const PIECES_A_READ = 8;

const notWhole = ({ runId }: RequestRun): Error => new Error(`The filter of run ${runId} is incomplete`);

const NOW_MS = raw('floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint');

export async function bindingTimes(sql: Sql | Transaction): Promise<BindingTimes> {
  return new BindingTimes(await timesOf(sql));
}

async function timesOf(sql: Sql | Transaction): Promise<BindingTime[]> {
  const rows = await sql<
    { sinceMs: bigint; seconds: number }[]
  >`SELECT since_ms, seconds FROM request_id_times ORDER BY since_ms`;
  return rows.map((row) => ({ sinceMs: safe(row.sinceMs), seconds: row.seconds }));
}

/**
 * Sets the time, in seconds, for which request ids stay bound from now on. Earlier times that no longer
 * affect any id are deleted.
 */
export async function setBindingSeconds(sql: Sql, seconds: number): Promise<void> {
  if ((await timesOf(sql)).at(-1)?.seconds === seconds) return;
  await sql.begin(async (tx) => {
    // The row locks keep the cells' binding cut-offs from advancing. Ids that were dropped under the old time
    // must not become bound again under the new one.
    const cells = await tx<{ bindingMs: bigint }[]>`
      SELECT binding_ms FROM cells ORDER BY cell FOR NO KEY UPDATE`;
    const known = await timesOf(tx);
    const newest = known.at(-1);
    if (newest?.seconds === seconds) return;
    const [clock] = await tx<{ nowMs: bigint }[]>`SELECT ${NOW_MS} AS now_ms`;
    const reached = cells.map((each) => safe(each.bindingMs));
    const sinceMs = newest === undefined ? 0 : Math.max(safe(clock!.nowMs), newest.sinceMs + 1, ...reached);
    await tx`INSERT INTO request_id_times (since_ms, seconds) VALUES (${sinceMs}, ${seconds})`;
    const [oldest] = new BindingTimes([...known, { sinceMs, seconds }]).since(Math.min(...reached));
    await tx`DELETE FROM request_id_times WHERE since_ms < ${oldest!.sinceMs}`;
  });
}

interface Owned {
  readonly cell: number;
  readonly fence: bigint;
}

export class RequestRunReads {
  constructor(private readonly sql: Sql) {}

  /**
   * Reads the state of the runs, and then the wanted filters.
   * @throws Error if Postgres fails, or if a filter differs from the bytes that were written
   */
  async read(begin: (read: RunsRead) => FilterReading): Promise<void> {
    await this.sql.begin(async (tx) => {
      const times = await bindingTimes(tx);
      const reading = begin({ cells: await runsWatermarks(tx), runs: await requestRuns(tx), times });
      for (const run of reading.wanted) {
        const digest = createHash('sha256');
        let at = 0;
        const take = (row: CopyRow): void => {
          const bits = row.bytes(1);
          if (row.int(0) !== at / FILTER_PIECE_BYTES || at + bits.length > run.filterBytes)
            throw notWhole(run);
          digest.update(bits);
          reading.take(run, at, bits);
          at += bits.length;
        };
        const pieces = Math.ceil(run.filterBytes / FILTER_PIECE_BYTES);
        for (let piece = 0; piece < pieces; piece += PIECES_A_READ)
          await readRows(
            tx.read(`
              COPY (SELECT piece, bits FROM request_filters
                    WHERE run_id = ${run.runId} AND piece >= ${piece} AND piece < ${piece + PIECES_A_READ} ORDER BY piece)
              TO STDOUT (FORMAT binary)`),
            take,
          );
        if (at !== run.filterBytes) throw notWhole(run);
        if (hashWord(digest) !== run.filterHash)
          throw new Error(`The filter of run ${run.runId} differs from the filter that was written`);
        reading.end(run);
      }
    }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
  }

  /**
   * Returns, for each run of request ids, the block in which a hash would be; no block if the run can't have
   * the hash. Undefined if one of the runs no longer exists: it was merged or dropped, or its number belongs
   * to another run now.
   * @param hash 8 bytes
   */
  async blocksOf(
    runs: readonly Pick<RequestRun, 'runId' | 'filterHash'>[],
    hash: Buffer,
  ): Promise<Buffer[] | undefined> {
    const rows = await this.sql<{ pairs: Buffer }[]>`
      SELECT pairs FROM ${rowsOf(runs, { runId: 'int', filterHash: 'bigint' }, 'r')}
      JOIN request_runs USING (run_id, filter_hash)
      CROSS JOIN LATERAL (
        SELECT pairs FROM request_blocks b WHERE b.run_id = r.run_id AND first_hash <= ${hash}
        ORDER BY first_hash DESC LIMIT 1) AS b`;
    return rows.length === runs.length ? rows.map(({ pairs }) => pairs) : undefined;
  }

  /**
   * Returns a version that identifies the set of runs. The version need not depend on the contents of runs,
   * because a run never changes.
   */
  async version(): Promise<string> {
    const [row] = await this.sql<{ version: string }[]>`${RUNS_VERSION}`;
    return row!.version;
  }
}

/**
 * Advances the binding cut-off of a cell, at most to the current time by Postgres's clock. A request id whose
 * binding period ended by the cut-off is never bound again.
 * @returns the new cut-off, in ms since the Unix epoch
 */
export async function moveBinding(sql: Sql, { cell, fence }: Owned, toMs: number): Promise<number> {
  return sql.begin(async (tx) => {
    const [row] = await tx<{ bindingMs: bigint; nowMs: bigint }[]>`
      SELECT binding_ms, ${NOW_MS} AS now_ms FROM cells WHERE cell = ${cell} AND fence = ${fence} FOR NO KEY UPDATE`;
    if (row === undefined) throw fenced(cell, fence);
    const bindingMs = Math.max(safe(row.bindingMs), Math.min(toMs, safe(row.nowMs)));
    const fromId = firstIdAt((await bindingTimes(tx)).allBoundFromMs(bindingMs));
    await tx`
      UPDATE cells SET binding_ms = ${bindingMs}, bound_from_id = greatest(bound_from_id, ${fromId}) WHERE cell = ${cell}`;
    return bindingMs;
  });
}

/**
 * Drops a whole run of a cell, whose ids are no longer bound.
 * @throws FencedError if the cell has another owner, or if the run was dropped or merged; nothing was done
 */
export async function dropRun(sql: Sql, { cell, fence }: Owned, { runId }: RequestRun): Promise<void> {
  await sql.begin(async (tx) => {
    await tx.patiently();
    const gone = await tx`DELETE FROM request_runs WHERE cell = ${cell} AND run_id = ${runId} RETURNING 1`;
    // The cell's row is locked last, because flushes of the cell wait for it.
    const held = await tx`SELECT 1 FROM cells WHERE cell = ${cell} AND fence = ${fence} FOR NO KEY UPDATE`;
    if (held.length !== 1 || gone.length !== 1) throw fenced(cell, fence);
  });
}

const TIME_MS_MAX = 2 ** 41;
const ID_MAX = 2n ** 63n - 1n;

/**
 * Returns, for the audit, which request ids of all cells are bound at the cell's binding cut-off, or at the
 * current time if that is earlier. If a run with such ids no longer exists, it was dropped too early.
 */
export async function boundIds(
  tx: Transaction,
  binding: BindingTimes,
): Promise<Omit<BoundIds, 'keptFromId'>> {
  const cells = await tx<{ cell: number; bindingMs: bigint }[]>`
    SELECT cell, least(binding_ms, floor(extract(epoch FROM now()) * 1000)::bigint) AS binding_ms FROM cells`;
  const [oldest] = await tx<{ fromId: bigint | null }[]>`SELECT min(from_id) AS from_id FROM request_runs`;
  const ranges = cells.flatMap(({ cell, bindingMs }) =>
    binding.boundAt(safe(bindingMs)).map(({ fromMs, beforeMs }) => ({
      cell,
      fromId: BigInt(fromMs) << 22n,
      beforeId: beforeMs >= TIME_MS_MAX ? ID_MAX : BigInt(beforeMs) << 22n,
    })),
  );
  const begins = ranges.map(({ fromId }) => fromId);
  if (oldest?.fromId != null) begins.push(oldest.fromId);
  return { ranges, oldestId: begins.reduce((least, id) => (id < least ? id : least), ID_MAX) };
}

const fenced = (cell: number, fence: bigint): FencedError =>
  new FencedError(
    `Fencing token ${fence} of cell ${cell} is no longer valid, because the cell has another owner`,
  );

/** Request ids that are bound, as ranges of the ids of their entries. */
export interface BoundIds {
  /** Ranges of entry ids. Each begins with `fromId` and ends before `beforeId`. */
  readonly ranges: readonly { readonly cell: number; readonly fromId: bigint; readonly beforeId: bigint }[];
  /** Entry before which no entry has a request id that is bound or in a run. */
  readonly oldestId: bigint;
  /**
   * Oldest entry that the ledger keeps. Ids of earlier entries in the runs can't be compared with the ledger.
   */
  readonly keptFromId: bigint;
}
