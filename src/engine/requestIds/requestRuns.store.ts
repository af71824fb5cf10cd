/**
 * Stores the request ids that Redis has released: runs (domain/requestRun.ts), their filters, and, for each
 * cell, the watermark up to which its request ids are in runs. The cell's owner writes the runs, and the
 * front ends read them.
 */
import { createHash, type Hash } from 'node:crypto';
import { entryCellOfWords, entryCellSql } from '../../domain/entryId.js';
import { entryCodesSql } from '../../domain/ledgerEntry.js';
import { filterBytes } from '../../domain/requestFilter.js';
import { keyWord, requestKey } from '../../domain/requestKey.js';
import { PAIR_WORDS, RequestPairs } from '../../domain/requestPairs.js';
import { PAIRS_A_BLOCK, type RequestBlock, RunWriter } from '../../domain/requestRun.js';
import type { Sql, Transaction } from '../../postgres/connection.js';
import { CopyRows, readRows } from '../../postgres/copy.js';
import { arrayOf, raw, safe } from '../../postgres/statements.js';
import { FencedError } from '../cells/cells.store.js';
import { columnsSql, fieldsOf } from '../ledger/ledgerRow.store.js';

/** Maximum number of ids that one transaction writes to runs. Such a transaction takes a second or two. */
const IDS_A_STEP = 2 ** 20;
export const FILTER_PIECE_BYTES = 1_048_576;
const COPY_BYTES = 1_048_576;
const BLOCKS_A_PAGE = 256;
const PAIRS_OF_PAGE = BLOCKS_A_PAGE * PAIRS_A_BLOCK;

export interface RequestRun {
  readonly runId: number;
  readonly cell: number;
  /** Entry after which the entries of the run begin. */
  readonly fromId: bigint;
  /** Last ledger entry whose request id may be in the run. */
  readonly toId: bigint;
  readonly ids: number;
  readonly filterBytes: number;
  /** After a restore, another run can exist with the same number; the hash distinguishes the two. */
  readonly filterHash: bigint;
}

/** Watermarks of a cell's request ids in runs. */
export interface RunsWatermark {
  readonly cell: number;
  /** Watermark of the runs: request ids of all entries up to this one are in runs. */
  readonly runsReachId: bigint;
  /** Entry before which request ids may no longer be bound. */
  readonly boundFromId: bigint;
  /**
   * Binding cut-off, in ms since the Unix epoch. Request ids whose binding period ended by this time are no
   * longer bound.
   */
  readonly bindingMs: number;
  /** The newest committed entry of the cell. */
  readonly cursorId: bigint;
}

type RunRow = Omit<RequestRun, 'ids' | 'filterBytes'> & Record<'ids' | 'filterBytes', bigint>;

const runOfRow = (row: RunRow): RequestRun => ({
  ...row,
  ids: safe(row.ids),
  filterBytes: safe(row.filterBytes),
});

export async function runsWatermarks(sql: Sql | Transaction): Promise<RunsWatermark[]> {
  const rows = await sql<(Omit<RunsWatermark, 'bindingMs'> & { bindingMs: bigint })[]>`
    SELECT cell, handed_over_id AS runs_reach_id, bound_from_id, binding_ms, cursor_id FROM cells`;
  return rows.map((row) => ({ ...row, bindingMs: safe(row.bindingMs) }));
}

/** Returns the watermark of the cell's runs: request ids of all entries up to this one are in runs. */
export async function runsWatermarkOf(sql: Sql, cell: number): Promise<bigint> {
  const [row] = await sql<{ handedOverId: bigint }[]>`SELECT handed_over_id FROM cells WHERE cell = ${cell}`;
  return row?.handedOverId ?? 0n;
}

export async function requestRuns(sql: Sql | Transaction): Promise<RequestRun[]> {
  const rows = await sql<RunRow[]>`
    SELECT run_id, cell, from_id, to_id, ids, filter_bytes, filter_hash FROM request_runs ORDER BY to_id, cell`;
  return rows.map(runOfRow);
}

/**
 * SQL for a version that identifies the set of runs. The version need not depend on the contents of runs,
 * because a run never changes.
 */
export const RUNS_VERSION =
  raw(`SELECT concat_ws(':', (SELECT concat_ws(':', max(run_id), count(*), sum(filter_hash)) FROM request_runs),
      (SELECT concat_ws(':', sum(handed_over_id), sum(bound_from_id), sum(binding_ms)) FROM cells),
      (SELECT max(since_ms) FROM request_id_times)) AS version`);

/**
 * Request ids to be written to a run: those of a cell's entries after `from`, up to and including `to`. All
 * of them are committed.
 */
export interface DueIds {
  readonly cell: number;
  readonly fence: bigint;
  readonly from: bigint;
  readonly to: bigint;
  /**
   * All of these ids in the order of their entries, if the worker that committed them still has them.
   * Otherwise the ids are read from the ledger.
   */
  readonly pairs?: RequestPairs | undefined;
}

/**
 * Writes the request ids of cells to runs in one transaction. If there are too many, only the oldest are
 * written. The ledger is scanned at most once.
 * @param pause awaited regularly, so that the caller can do other work
 * @returns the number of written ids, and whether some are left
 */
export async function writeRun(
  sql: Sql,
  cells: readonly DueIds[],
  pause: () => Promise<void>,
  onFailpoint: (step: 'release.copied' | 'release.marked') => void,
): Promise<{ ids: number; isMore: boolean }> {
  return sql.begin(async (tx) => {
    const unread = cells.filter(({ pairs }) => pairs === undefined);
    const ledger = unread.length === 0 ? undefined : await readLedger(tx, unread, pause);
    let ids = 0;
    const moves: [cell: DueIds, to: bigint][] = [];
    for (const each of cells) {
      const pairs = each.pairs ?? ledger!.taken[each.cell]!.pairs;
      const reached = each.pairs === undefined && ledger!.last < each.to ? ledger!.last : each.to;
      if (reached <= each.from) continue;
      moves.push([each, reached]);
      const { count } = pairs;
      ids += count;
      if (count === 0) continue;
      const run = await beginRun(tx, { cell: each.cell, fromId: each.from, toId: reached, ids: count });
      await pairs.writeTo(run.writer, run.pause(pause));
      await run.finish();
    }
    onFailpoint('release.copied');
    // The rows of `cells` are updated last, because flushes wait for these rows. Flushes lock several of the
    // rows, too, so both kinds of transactions must lock them in the order of the cells.
    moves.sort(([a], [b]) => a.cell - b.cell);
    for (const [cell, reached] of moves) await moveReach(tx, cell, reached);
    onFailpoint('release.marked');
    return { ids, isMore: ledger?.isMore ?? false };
  });
}

interface LedgerRead {
  readonly taken: readonly Taken[];
  readonly isMore: boolean;
  /** Entry up to which the ledger was read. If everything was read, this is the last requested entry. */
  readonly last: bigint;
}

const ID_MEMBERS = ['id', 'partnerId', 'requestId'] as const;
const IDS = fieldsOf(ID_MEMBERS);

async function readLedger(
  tx: Transaction,
  cells: readonly DueIds[],
  pause: () => Promise<void>,
): Promise<LedgerRead> {
  const taken: Taken[] = [];
  for (const each of cells) taken[each.cell] = takenOf(each);
  const from = cells.reduce((least, each) => (each.from < least ? each.from : least), cells[0]!.from);
  const to = cells.reduce((most, each) => (each.to > most ? each.to : most), 0n);
  await tx.patiently();
  const rows = tx.read(`
    COPY (SELECT ${columnsSql(ID_MEMBERS)} FROM ledger
          WHERE entry_id > ${from} AND entry_id <= ${to} AND request_id IS NOT NULL
            AND kind IN ${entryCodesSql(({ requestIds }) => requestIds === 'spins')}
            AND ${entryCellSql('entry_id')} = ANY('${arrayOf(cells.map(({ cell }) => cell))}'::int[])
          ORDER BY entry_id LIMIT ${IDS_A_STEP})
    TO STDOUT (FORMAT binary)`);
  let read = 0;
  let lastHigh = 0;
  let lastLow = 0;
  await readRows(
    rows,
    (row) => {
      read++;
      lastHigh = row.word(IDS.id, 0);
      lastLow = row.word(IDS.id, 4);
      const { pairs, fromHigh, fromLow, toHigh, toLow } = taken[entryCellOfWords(lastLow)]!;
      const isAfter = lastHigh > fromHigh || (lastHigh === fromHigh && lastLow > fromLow);
      const isWithin = lastHigh < toHigh || (lastHigh === toHigh && lastLow <= toLow);
      if (!isAfter || !isWithin) return;
      // The key is computed in this process, because Postgres would need twice the time.
      const key = requestKey(row.int(IDS.partnerId), row.text(IDS.requestId));
      pairs.add(keyWord(key, 0), keyWord(key, 4), lastHigh, lastLow);
    },
    pause,
  );
  const isMore = read === IDS_A_STEP;
  return { taken, isMore, last: isMore ? (BigInt(lastHigh) << 32n) | BigInt(lastLow) : to };
}

/**
 * The request ids of one cell that one transaction has read. The first and last entry id of their range are
 * stored as 32-bit words, because a BigInt for each row would take most of the time.
 */
interface Taken {
  readonly pairs: RequestPairs;
  readonly fromHigh: number;
  readonly fromLow: number;
  readonly toHigh: number;
  readonly toLow: number;
}

const takenOf = ({ from, to }: DueIds): Taken => ({
  pairs: new RequestPairs(),
  fromHigh: Number(from >> 32n),
  fromLow: Number(from & 0xffff_ffffn),
  toHigh: Number(to >> 32n),
  toLow: Number(to & 0xffff_ffffn),
});

/**
 * Advances the watermark of a cell's runs.
 * @throws FencedError if the cell has another owner, or its watermark is not the expected one
 */
async function moveReach(tx: Transaction, { cell, fence, from }: DueIds, to: bigint): Promise<void> {
  const rows = await tx`
    UPDATE cells SET handed_over_id = ${to}
    WHERE cell = ${cell} AND fence = ${fence} AND handed_over_id = ${from} AND cursor_id >= ${to} RETURNING cell`;
  if (rows.length !== 1)
    throw new FencedError(
      `Fencing token ${fence} of cell ${cell} is no longer valid, because the cell has another owner`,
    );
}

interface NewRun {
  readonly writer: RunWriter;
  /** Writes the blocks that are complete, and then lets other work run. */
  pause(after: () => Promise<void>): () => Promise<void>;
  /** Writes the remaining blocks of the run, and the run's filter. */
  finish(): Promise<void>;
}

/** Begins an empty run of request ids. Returns its writer, which accepts ids only in sorted order. */
async function beginRun(
  tx: Transaction,
  run: Omit<RequestRun, 'runId' | 'filterBytes' | 'filterHash'>,
): Promise<NewRun> {
  const [row] = await tx<{ runId: number }[]>`
    INSERT INTO request_runs (cell, from_id, to_id, ids, filter_bytes)
    VALUES (${run.cell}, ${run.fromId}, ${run.toId}, ${run.ids}, ${filterBytes(run.ids)}) RETURNING run_id`;
  const runId = row!.runId;
  const blocks = new CopyRows();
  const writer = new RunWriter(run.ids, ({ firstHash, pairs }: RequestBlock) =>
    blocks.add(runId, firstHash, pairs),
  );
  const write = async (): Promise<void> => {
    if (blocks.isEmpty) return;
    await tx.copy('COPY request_blocks (run_id, first_hash, pairs) FROM STDIN (FORMAT binary)', blocks.end());
  };
  return {
    writer,
    pause: (after) => async () => {
      if (blocks.length >= COPY_BYTES) await write();
      await after();
    },
    finish: async () => {
      await write();
      const bits = Buffer.from(writer.filter.bytes.buffer);
      const digest = createHash('sha256').update(bits);
      await tx`UPDATE request_runs SET filter_hash = ${hashWord(digest)} WHERE run_id = ${runId}`;
      for (let at = 0; at < bits.length; at += FILTER_PIECE_BYTES) {
        const piece = Buffer.alloc(4);
        piece.writeInt32BE(at / FILTER_PIECE_BYTES);
        const part = new CopyRows();
        part.add(runId, piece, bits.subarray(at, at + FILTER_PIECE_BYTES));
        await tx.copy('COPY request_filters (run_id, piece, bits) FROM STDIN (FORMAT binary)', part.end());
      }
    },
  };
}

/** Returns the hash of a filter that is stored with its run. */
export const hashWord = (digest: Hash): bigint => digest.digest().readBigInt64BE(0);

/**
 * Merges neighbouring runs into one, in one transaction.
 * @param runs adjacent runs of one cell
 * @throws FencedError if the cell has another owner, or if one of the runs was merged; nothing was done
 */
export async function mergeRuns(
  sql: Sql,
  lease: { readonly cell: number; readonly fence: bigint },
  runs: readonly RequestRun[],
  pause: () => Promise<void>,
): Promise<void> {
  const ids = runs.reduce((sum, run) => sum + run.ids, 0);
  await sql.begin(async (tx) => {
    await tx.patiently();
    // Makes Postgres use the primary key and read one page after the other on demand. It would otherwise read
    // a whole run at once.
    await tx`SELECT set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)`;
    const sources = runs.map(({ runId }) => new RunReader(tx, runId));
    // Until the runs that it replaces are deleted, the merged run has a start below all ids, because no two
    // runs of a cell may begin at the same entry.
    const merged = await beginRun(tx, { cell: lease.cell, fromId: -1n, toId: runs.at(-1)!.toId, ids });
    const turn = merged.pause(pause);
    const together = new RequestPairs(sources.length * PAIRS_OF_PAGE);
    for (;;) {
      for (const source of sources) if (source.isDry) await source.read();
      const open = sources.filter((each) => !each.isDry);
      if (open.length === 0) break;
      takeTogether(open, together);
      await together.writeTo(merged.writer, turn);
      await turn();
    }
    await merged.finish();
    const held = await tx`
      SELECT 1 FROM cells WHERE cell = ${lease.cell} AND fence = ${lease.fence} FOR NO KEY UPDATE`;
    const gone = await tx`
      DELETE FROM request_runs WHERE run_id = ANY(${arrayOf(runs.map(({ runId }) => runId))}::int[]) RETURNING 1`;
    if (held.length !== 1 || gone.length !== runs.length)
      throw new FencedError(
        `Fencing token ${lease.fence} of cell ${lease.cell} is no longer valid, because the cell has another owner`,
      );
    await tx`
      UPDATE request_runs SET from_id = ${runs[0]!.fromId} WHERE cell = ${lease.cell} AND from_id = -1`;
  });
}

/** Reads the blocks of a run page by page. */
class RunReader {
  /**
   * Pairs (request id hash, entry id) of the run that were read and have not been taken yet. A page is read
   * only after all pairs of the page before it were taken.
   */
  readonly #pairs = new RequestPairs(PAIRS_OF_PAGE);
  #taken = 0;
  #after = '';
  #isEnded = false;

  constructor(
    private readonly tx: Transaction,
    private readonly runId: number,
  ) {}

  /** True if all pairs that were read of the run have been taken. */
  get isDry(): boolean {
    return this.#taken === this.#pairs.count;
  }

  /** The last pair of the run that was read. All later pages have higher hashes. */
  get last(): Uint32Array {
    return this.#pairs.slice(this.#pairs.count - 1, this.#pairs.count);
  }

  async read(): Promise<void> {
    if (this.#isEnded) return;
    const page = this.#pairs;
    page.count = 0;
    this.#taken = 0;
    let blocks = 0;
    const rows = this.tx.read(`
      COPY (SELECT first_hash, pairs FROM request_blocks
            WHERE run_id = ${this.runId} AND first_hash > '\\x${this.#after}' ORDER BY first_hash LIMIT ${BLOCKS_A_PAGE})
      TO STDOUT (FORMAT binary)`);
    await readRows(rows, (row) => {
      page.addBlock(row.lengthOf(1), (target, at) => row.copy(1, target, at));
      if (++blocks === BLOCKS_A_PAGE) this.#after = row.bytes(0).toString('hex');
    });
    this.#isEnded = blocks < BLOCKS_A_PAGE;
  }

  /** Takes the pairs of the run up to and including the hash of the given pair. */
  takeTo(pair: Uint32Array, into: RequestPairs): void {
    const { words } = this.#pairs;
    let from = this.#taken;
    let to = this.#pairs.count;
    while (from < to) {
      const middle = (from + to) >>> 1;
      if (isHigher(words.subarray(middle * PAIR_WORDS), pair)) to = middle;
      else from = middle + 1;
    }
    into.addWords(this.#pairs.slice(this.#taken, from));
    this.#taken = from;
  }
}

/** True if the hash of the first pair (request id hash and entry id) is higher than that of the second. */
const isHigher = (one: Uint32Array, other: Uint32Array): boolean =>
  one[0]! > other[0]! || (one[0] === other[0] && one[1]! > other[1]!);

/**
 * Takes the pairs of all runs up to a certain hash. Each run's current page ends at some hash, and the lowest
 * of these is used, because all later pages have higher hashes.
 */
function takeTogether(sources: readonly RunReader[], into: RequestPairs): void {
  const lasts = sources.map(({ last }) => last);
  const bound = lasts.reduce((least, last) => (isHigher(least, last) ? last : least));
  into.count = 0;
  for (const source of sources) source.takeTo(bound, into);
}
