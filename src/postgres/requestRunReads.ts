/** What front ends read of the runs of request ids: their filters, and the blocks in which an id may be. */
import { createHash } from 'node:crypto';
import type { BindingTimes } from '../domain/bindingTimes.js';
import { bindingTimes } from './bindingTimes.js';
import { arrayOf, type Sql } from './client.js';
import {
  FILTER_PIECE_BYTES,
  type HandedOver,
  handedOver,
  hashWord,
  type RequestRun,
  requestRuns,
} from './requestRuns.js';

/** What the front ends know of handed-over ids, as of one moment. */
export interface RunsRead {
  readonly cells: readonly HandedOver[];
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

/**
 * Reads what there is, then those filters that are wanted.
 * @throws where Postgres does not answer, or a filter is not what was written
 */
export async function readRuns(sql: Sql, begin: (read: RunsRead) => FilterReading): Promise<void> {
  await sql.begin(async (tx) => {
    const times = await bindingTimes(tx);
    const reading = begin({ cells: await handedOver(tx), runs: await requestRuns(tx), times });
    for (const run of reading.wanted) {
      const digest = createHash('sha256');
      for (let at = 0; at < run.filterBytes; at += FILTER_PIECE_BYTES) {
        const [piece] = await tx<{ bits: Buffer }[]>`
          SELECT bits FROM request_filters WHERE run_id = ${run.runId} AND piece = ${at / FILTER_PIECE_BYTES}`;
        if (piece === undefined) throw new Error(`The filter of run ${run.runId} is not whole`);
        digest.update(piece.bits);
        reading.take(run, at, piece.bits);
      }
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
export async function requestBlocksOf(
  sql: Sql,
  runs: readonly Pick<RequestRun, 'runId' | 'filterHash'>[],
  hash: Buffer,
): Promise<Buffer[] | undefined> {
  const rows = await sql<{ pairs: Buffer }[]>`
    SELECT pairs FROM unnest(${arrayOf(runs.map(({ runId }) => runId))}::int[], ${arrayOf(runs.map(({ filterHash }) => filterHash))}::bigint[]) AS r(run_id, filter_hash)
    JOIN request_runs USING (run_id, filter_hash)
    CROSS JOIN LATERAL (
      SELECT pairs FROM request_blocks b WHERE b.run_id = r.run_id AND first_hash <= ${hash}
      ORDER BY first_hash DESC LIMIT 1) AS b`;
  return rows.length === runs.length ? rows.map(({ pairs }) => pairs) : undefined;
}
