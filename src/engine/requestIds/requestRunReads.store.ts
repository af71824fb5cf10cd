/**
 * What front ends read of the runs of request ids: their filters, the blocks in which an id may be, and for how long ids bind
 * (domain/bindingTimes.ts).
 */
import { createHash } from 'node:crypto';
import { type BindingTime, BindingTimes } from '../../domain/bindingTimes.js';
import { firstIdAt } from '../../domain/entryId.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { type CopyRow, readRows } from '../../postgres/copy.js';
import { arrayOf, raw, safe } from '../../postgres/statements.js';
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

/** What the front ends know of the runs, as of one moment. */
export interface RunsRead {
  readonly cells: readonly RunsWatermark[];
  /** Oldest first. */
  readonly runs: readonly RequestRun[];
  readonly times: BindingTimes;
}

/** Takes the bytes of filters, piece by piece. */
export interface FilterReading {
  /** Runs whose filters are read, in this order. */
  readonly wanted: readonly RequestRun[];
  /** The next bytes of a run's filter, which begin at `at`. */
  take(run: RequestRun, at: number, bits: Buffer): void;
  /** All bytes of a filter were taken, and they are what was written. */
  end(run: RequestRun): void;
}

/** A statement reads no more, so that it ends within the time that any may take: a process that was stopped in the middle holds up no vacuum. */
const PIECES_A_READ = 8;

const notWhole = ({ runId }: RequestRun): Error => new Error(`The filter of run ${runId} is not whole`);

const NOW_MS = raw('floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint');

export async function bindingTimes(sql: Sql | Transaction): Promise<BindingTimes> {
  return new BindingTimes(await timesOf(sql));
}

async function timesOf(sql: Sql | Transaction): Promise<BindingTime[]> {
  const rows = await sql<
    { since_ms: bigint; seconds: number }[]
  >`SELECT since_ms, seconds FROM request_id_times ORDER BY since_ms`;
  return rows.map((row) => ({ sinceMs: safe(row.since_ms), seconds: row.seconds }));
}

/** From now on request ids bind for so long. Times that say nothing of an id any more go. */
export async function setBindingSeconds(sql: Sql, seconds: number): Promise<void> {
  if ((await timesOf(sql)).at(-1)?.seconds === seconds) return;
  await sql.begin(async (tx) => {
    // No cell moves on meanwhile: what was dropped by the old time does not bind by the new one.
    const cells = await tx<{ binding_ms: bigint }[]>`
      SELECT binding_ms FROM cells ORDER BY cell FOR NO KEY UPDATE`;
    const known = await timesOf(tx);
    const newest = known.at(-1);
    if (newest?.seconds === seconds) return;
    const [clock] = await tx<{ now_ms: bigint }[]>`SELECT ${NOW_MS} AS now_ms`;
    const reached = cells.map((each) => safe(each.binding_ms));
    const sinceMs = newest === undefined ? 0 : Math.max(safe(clock!.now_ms), newest.sinceMs + 1, ...reached);
    await tx`INSERT INTO request_id_times (since_ms, seconds) VALUES (${sinceMs}, ${seconds})`;
    const [oldest] = new BindingTimes([...known, { sinceMs, seconds }]).since(Math.min(...reached));
    await tx`DELETE FROM request_id_times WHERE since_ms < ${oldest!.sinceMs}`;
  });
}

/** A cell that is owned. */
interface Owned {
  readonly cell: number;
  readonly fence: bigint;
}

/** Runs of request ids, as front ends read them. */
export class RequestRunReads {
  readonly #sql: Sql;

  constructor(sql: Sql) {
    this.#sql = sql;
  }

  /**
   * Reads what there is, then those filters that are wanted.
   * @throws where Postgres does not answer, or a filter is not what was written
   */
  async read(begin: (read: RunsRead) => FilterReading): Promise<void> {
    await this.#sql.begin(async (tx) => {
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
          throw new Error(`The filter of run ${run.runId} is not what was written`);
        reading.end(run);
      }
    }, 'ISOLATION LEVEL REPEATABLE READ READ ONLY');
  }

  /**
   * The block of each run in which a hash is, if it is in the run. Undefined where one of the runs is no more: it was merged or
   * dropped, or its number is another run's.
   * @param hash 8 bytes
   */
  async blocksOf(
    runs: readonly Pick<RequestRun, 'runId' | 'filterHash'>[],
    hash: Buffer,
  ): Promise<Buffer[] | undefined> {
    const rows = await this.#sql<{ pairs: Buffer }[]>`
      SELECT pairs FROM unnest(${arrayOf(runs.map(({ runId }) => runId))}::int[], ${arrayOf(runs.map(({ filterHash }) => filterHash))}::bigint[]) AS r(run_id, filter_hash)
      JOIN request_runs USING (run_id, filter_hash)
      CROSS JOIN LATERAL (
        SELECT pairs FROM request_blocks b WHERE b.run_id = r.run_id AND first_hash <= ${hash}
        ORDER BY first_hash DESC LIMIT 1) AS b`;
    return rows.length === runs.length ? rows.map(({ pairs }) => pairs) : undefined;
  }

  /** Whoever knows these knows all runs: none is ever changed. */
  async version(): Promise<string> {
    const [row] = await this.#sql<{ version: string }[]>`${RUNS_VERSION}`;
    return row!.version;
  }
}

/**
 * Decides from now on as of a later moment which request ids of a cell bind: at most as of now by Postgres's clock. None is bound
 * again that was not.
 * @returns the moment
 * @throws FencedError where another owner came; nothing was done.
 */
export async function moveBinding(sql: Sql, { cell, fence }: Owned, toMs: number): Promise<number> {
  return sql.begin(async (tx) => {
    const [row] = await tx<{ binding_ms: bigint; now_ms: bigint }[]>`
      SELECT binding_ms, ${NOW_MS} AS now_ms FROM cells WHERE cell = ${cell} AND fence = ${fence} FOR NO KEY UPDATE`;
    if (row === undefined) throw fenced(cell, fence);
    const bindingMs = Math.max(safe(row.binding_ms), Math.min(toMs, safe(row.now_ms)));
    const fromId = firstIdAt((await bindingTimes(tx)).allBoundFromMs(bindingMs));
    await tx`
      UPDATE cells SET binding_ms = ${bindingMs}, bound_from_id = greatest(bound_from_id, ${fromId}) WHERE cell = ${cell}`;
    return bindingMs;
  });
}

/**
 * Drops a run of a cell whole: its ids do not bind any more.
 * @throws FencedError where another owner came, or somebody has dropped or merged it; nothing was done.
 */
export async function dropRun(sql: Sql, { cell, fence }: Owned, { runId }: RequestRun): Promise<void> {
  await sql.begin(async (tx) => {
    await tx.patiently();
    const gone = await tx`DELETE FROM request_runs WHERE cell = ${cell} AND run_id = ${runId} RETURNING 1`;
    // Last of all: flushes of the cell wait for this row.
    const held = await tx`SELECT 1 FROM cells WHERE cell = ${cell} AND fence = ${fence} FOR NO KEY UPDATE`;
    if (held.length !== 1 || gone.length !== 1) throw fenced(cell, fence);
  });
}

const TIME_MS_MAX = 2 ** 41;
const ID_MAX = 2n ** 63n - 1n;

/**
 * For the audit: which ids bind in all cells as of when that was decided, or now: what would be decided of later moments only was dropped before
 * its time.
 */
export async function boundIds(
  tx: Transaction,
  binding: BindingTimes,
): Promise<Omit<BoundIds, 'keptFromId'>> {
  const cells = await tx<{ cell: number; binding_ms: bigint }[]>`
    SELECT cell, least(binding_ms, floor(extract(epoch FROM now()) * 1000)::bigint) AS binding_ms FROM cells`;
  const [oldest] = await tx<{ from_id: bigint | null }[]>`SELECT min(from_id) AS from_id FROM request_runs`;
  const ranges = cells.flatMap(({ cell, binding_ms }) =>
    binding.boundAt(safe(binding_ms)).map(({ fromMs, beforeMs }) => ({
      cell,
      fromId: BigInt(fromMs) << 22n,
      beforeId: beforeMs >= TIME_MS_MAX ? ID_MAX : BigInt(beforeMs) << 22n,
    })),
  );
  const begins = ranges.map(({ fromId }) => fromId);
  if (oldest?.from_id != null) begins.push(oldest.from_id);
  return { ranges, oldestId: begins.reduce((least, id) => (id < least ? id : least), ID_MAX) };
}

const fenced = (cell: number, fence: bigint): FencedError =>
  new FencedError(`Cell ${cell} is no longer written by fence ${fence}`);

/** Request ids that bind, as ids of their entries. */
export interface BoundIds {
  /** From `fromId` on, before `beforeId`. */
  readonly ranges: readonly { readonly cell: number; readonly fromId: bigint; readonly beforeId: bigint }[];
  /** No entry before it has one that binds or is in a run. */
  readonly oldestId: bigint;
  /** No entry before it is kept: what runs have of earlier ones can't be compared. */
  readonly keptFromId: bigint;
}
