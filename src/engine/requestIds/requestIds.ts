/**
 * The request ids that Redis has released, for a front end: filters that distinguish a fresh id from an id
 * that the ledger may have, and the look-up in the ledger for an id that it may have.
 *
 *   id ──filters of its cell──> no filter has it: fresh, up to the filters' watermark ──> script
 *                │ a filter may have it
 *                └──> script, which replays what Redis binds and deals nothing else
 *                       └──> block of the run ──> entry found: the id is bound to it
 *                                    └──> not found: the script again, as for a fresh id
 *
 * Each call passes the watermark of the filters to the script. If later ids have been released, the script
 * refuses (BEHIND). The filters are then loaded again, the ids of the call are checked against them again,
 * and the same call is repeated.
 */

import type { BindingTimes } from '../../domain/bindingTimes.js';
import { entryCell, entryTimeMs } from '../../domain/entryId.js';
import type { FormerCell, Partner } from '../../domain/game.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS, type EntryKind } from '../../domain/ledgerEntry.js';
import { RequestFilter } from '../../domain/requestFilter.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../../domain/requestKey.js';
import { findInBlock, REQUEST_HASH_BYTES } from '../../domain/requestRun.js';
import { type FairLimits, FairQueue } from '../../platform/runtime/fairQueue.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { EngineStore } from '../engine.store.js';
import { coarsestBytes, FilterMemoryError, plannedFolds } from './filterMemory.js';
import type { FilterReading, RunsRead } from './requestRunReads.store.js';
import type { RequestRun, RunsWatermark } from './requestRuns.store.js';
import type { FoundRequest } from './secondPass.js';

interface CellFilters {
  /** Watermark of the cell's filters: the id of an entry, in the byte format of a script call. */
  readonly reach: Buffer;
  readonly boundFromId: bigint;
  /**
   * Binding cut-off, in ms since the Unix epoch. Request ids whose binding period ended by this time are no
   * longer bound.
   */
  readonly bindingMs: number;
  /** Version of the cell's filters. It changes whenever any other field changes. */
  readonly version: number;
  readonly runs: readonly KnownRun[];
}

interface KnownRun {
  readonly run: RequestRun;
  readonly filter: RequestFilter;
}

/** The partner whose request ids are looked up, with its current and former cells. */
export type IdHolder = Pick<Partner, 'partnerId' | 'cell' | 'formerCells'>;

const NOTHING: CellFilters = {
  reach: Buffer.alloc(0),
  boundFromId: 0n,
  bindingMs: 0,
  version: 0,
  runs: [],
};

/** Maximum number of attempts of a look-up. Runs may be merged or dropped while one of them is read. */
const TRIES = 5;

const LOOK_UPS: FairLimits = { atOnce: 12, atOnceOfOwner: 4, held: 1024, heldOfOwner: 128 };

export class RequestIds extends PeriodicService {
  readonly name = 'filters of request ids';
  /** Look-ups in the ledger. A partner that keeps repeating old ids delays only its own requests. */
  readonly #lookUps = new FairQueue(LOOK_UPS);
  readonly #filters = new Map<string, RequestFilter>();
  readonly #cells: (CellFilters | undefined)[] = [];
  #times: BindingTimes | undefined;
  #isStarting = false;
  #knownVersion = '';
  #versions = 0;
  #reading: Promise<void> | undefined;
  /** Number of request ids in all filters. */
  ids = 0;
  /** Size of all loaded filters, in bytes. */
  bytes = 0;
  /** Minimum size of all request-id filters that a start would need, in bytes. */
  bytesNeeded = 0;
  /**
   * Time of the oldest id that may still be bound, in ms since the Unix epoch; undefined if the runs have no
   * such id.
   */
  oldestMs: number | undefined;
  /**
   * Number of look-ups by result. `fresh`: the ledger does not have the id, so the filter was wrong.
   * `refused`: the ledger could not be read.
   */
  readonly lookUps = { bound: 0, fresh: 0, refused: 0 };

  constructor(
    private readonly options: {
      readonly runs: Pick<EngineStore, 'requestRunReads'>;
      /** Store for the look-ups that requests of partners need, with its own connections. */
      readonly store: Pick<EngineStore, 'requestRunReads' | 'ledgerEntries'>;
      /**
       * Maximum size of all filters, in bytes. To stay below it, filters are made coarser. More ids then need
       * a look-up, but no id is forgotten (filterMemory.ts).
       */
      readonly filterBytesMax: number;
      /** Returns the newest version of the request-id runs that the catalog has read. */
      readonly newestVersion: () => string;
      readonly everyMs: number;
      readonly onError: (error: unknown) => void;
    },
  ) {
    super({ everyMs: options.everyMs });
  }

  /**
   * Loads all filters. No spin may be dealt before that.
   * @throws FilterMemoryError if they don't fit; the error of Postgres
   */
  override async start(): Promise<void> {
    this.#isStarting = true;
    await this.refresh().finally(() => {
      this.#isStarting = false;
    });
    await super.start();
  }

  get bytesMax(): number {
    return this.options.filterBytesMax;
  }

  /**
   * Time for which the request id of a new spin or deal stays bound, in seconds. Available after {@link
   * start}.
   */
  get bindsSeconds(): number {
    return this.#times!.seconds;
  }

  /**
   * Returns the watermark of a cell's filters. It must be read in the same turn of the event loop in which
   * ids are checked against the filters.
   */
  reachOf(cell: number): Buffer {
    return this.#of(cell).reach;
  }

  versionOf(cell: number): number {
    return this.#of(cell).version;
  }

  /** Returns the entry before which request ids may no longer be bound. */
  boundFromId(cell: number): bigint {
    return this.#of(cell).boundFromId;
  }

  /**
   * True if the ledger may have the id of a partner, whose hash begins at `at`. A result of false is certain
   * for entries up to the watermark of the cell's filters. If a former cell's filters do not reach the entry
   * at which the partner left that cell, the result is true.
   */
  mayHave({ cell, formerCells }: IdHolder, hash: Buffer, at: number): boolean {
    if (this.#cellMayHave(cell, hash, at)) return true;
    if (formerCells === undefined) return false;
    for (const former of formerCells)
      if (!this.#reaches(former) || this.#cellMayHave(former.cell, hash, at)) return true;
    return false;
  }

  #reaches({ cell, untilId }: FormerCell): boolean {
    const { reach } = this.#of(cell);
    return reach.length > 0 && reach.readBigUInt64LE(0) >= untilId;
  }

  #cellMayHave(cell: number, hash: Buffer, at: number): boolean {
    const { runs } = this.#of(cell);
    if (runs.length === 0) return false;
    const high = hash.readUInt32BE(at);
    const low = hash.readUInt32BE(at + 4);
    for (let i = 0; i < runs.length; i++) if (runs[i]!.filter.mayHave(high, low)) return true;
    return false;
  }

  /**
   * Looks up the entry that a released requestId of a partner is bound to, and the version of the filters
   * ({@link versionOf}) for which the result holds.
   * @throws Error if the ledger can't be read now, or too many look-ups wait
   */
  async find(holder: IdHolder, requestId: string): Promise<FoundRequest<LedgerEntry>> {
    const found = await this.#lookUps
      .run(holder.partnerId, () => this.#find(holder, requestId))
      .catch((error: unknown) => {
        this.lookUps.refused++;
        throw error;
      });
    this.lookUps[found.entry === undefined ? 'fresh' : 'bound']++;
    return found;
  }

  async #find({ cell, formerCells = [], partnerId }: IdHolder, requestId: string) {
    const { store } = this.options;
    const hash = Buffer.alloc(REQUEST_KEY_BYTES);
    writeRequestKey(hash, 0, partnerId, requestId);
    const high = hash.readUInt32BE(0);
    const low = hash.readUInt32BE(4);
    for (let tries = 0; tries < TRIES; tries++) {
      if (!formerCells.every((former) => this.#reaches(former))) {
        await this.refresh();
        if (!formerCells.every((former) => this.#reaches(former)))
          throw new Error(
            "The request id filters of a partner's former cell do not cover its time in that cell yet",
          );
      }
      const { version } = this.#of(cell);
      const runs = [cell, ...formerCells.map((former) => former.cell)].flatMap((each) => this.#of(each).runs);
      const hit = runs.filter(({ filter }) => filter.mayHave(high, low)).map(({ run }) => run);
      if (hit.length === 0) return { entry: undefined, version };
      const blocks = await store.requestRunReads.blocksOf(hit, hash.subarray(0, REQUEST_HASH_BYTES));
      if (blocks === undefined) {
        await this.refresh();
        continue;
      }
      const ids = blocks.flatMap((block) => findInBlock(block, hash)).filter((id) => this.#binds(id));
      // The newest entry comes first. If an earlier entry has the same id, the id was no longer bound to it
      // when the newest entry was dealt.
      for (const id of ids.sort((a, b) => (a < b ? 1 : -1))) {
        const entry = await store.ledgerEntries.find(id);
        if (entry?.partnerId === partnerId && entry.requestId === requestId && bindsSpin(entry.kind))
          return { entry, version };
      }
      return { entry: undefined, version };
    }
    throw new Error('The runs of request ids were merged during every attempt to read them');
  }

  /**
   * True if the request id of an entry is still bound, according to the binding times that this process has
   * read. A front end that has read older binding times can't deal a spin with the id again.
   */
  #binds(entryId: bigint): boolean {
    return this.#times!.untilMs(entryTimeMs(entryId)) > this.#of(entryCell(entryId)).bindingMs;
  }

  /** Loads new runs of request ids. Concurrent callers share one load. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  protected async turn(): Promise<void> {
    if (this.options.newestVersion() !== this.#knownVersion) await this.refresh();
  }

  protected override onTurnFailed(error: unknown): void {
    this.options.onError(error);
  }

  async #read(): Promise<void> {
    const { runs: store, filterBytesMax } = this.options;
    const version = await store.requestRunReads.version();
    await store.requestRunReads.read((read) => {
      const { runs } = read;
      this.bytesNeeded = coarsestBytes(runs.map(({ filterBytes }) => ({ bytes: filterBytes })));
      const ids = runs.reduce((sum, run) => sum + run.ids, 0);
      // Only a start fails if the filters need too much memory. A front end that is already dealing continues
      // with filters that are made even coarser.
      if (this.#isStarting && this.bytesNeeded > filterBytesMax)
        throw new FilterMemoryError(ids, this.bytesNeeded, filterBytesMax);
      return this.#take(read);
    });
    this.#knownVersion = version;
  }

  /**
   * Replaces the filters cell by cell. The old filters of one cell are thus released before the next cell's
   * new filters are loaded.
   */
  #take({ cells, runs, times }: RunsRead): FilterReading {
    const folds = this.#plannedFolds(runs);
    this.#times = times;
    const wanted: RequestRun[] = [];
    const isLast = new Set<RequestRun>();
    for (const { cell } of cells) {
      const unknown = runs.filter((run) => run.cell === cell && !this.#filters.has(nameOf(run)));
      wanted.push(...unknown);
      if (unknown.length > 0) isLast.add(unknown.at(-1)!);
    }
    const finish = (each: RunsWatermark): void => {
      this.#cells[each.cell] = this.#next(each, runs);
      this.#forget(runs, each.cell);
    };
    for (const each of cells) if (!wanted.some(({ cell }) => cell === each.cell)) finish(each);
    let filter: RequestFilter | undefined;
    return {
      wanted,
      take: (run, at, bits) => {
        filter ??= new RequestFilter(run.filterBytes, folds.get(run)!);
        filter.take(at, bits);
      },
      end: (run) => {
        this.#filters.set(nameOf(run), filter!);
        filter = undefined;
        if (isLast.has(run)) finish(cells.find(({ cell }) => cell === run.cell)!);
      },
    };
  }

  /** Folds loaded filters as far as necessary, and returns the planned folds of all filters. */
  #plannedFolds(runs: readonly RequestRun[]): ReadonlyMap<RequestRun, number> {
    const sizes = runs.map((run) => ({
      bytes: run.filterBytes,
      folds: this.#filters.get(nameOf(run))?.folds ?? 0,
    }));
    const planned = plannedFolds(sizes, this.options.filterBytesMax);
    runs.forEach((run, place) => {
      const filter = this.#filters.get(nameOf(run));
      while (filter !== undefined && filter.folds < planned[place]!) filter.fold();
    });
    return new Map(runs.map((run, place) => [run, planned[place]!]));
  }

  /** Releases the filters of runs that a cell no longer has. */
  #forget(runs: readonly RequestRun[], cell: number): void {
    const current = new Set(runs.map(nameOf));
    for (const name of this.#filters.keys())
      if (name.startsWith(`${cell}:`) && !current.has(name)) this.#filters.delete(name);
    const known = this.#cells.flatMap((each) => each?.runs ?? []);
    this.bytes = known.reduce((sum, { filter }) => sum + filter.bytes.length, 0);
    this.ids = known.reduce((sum, { run }) => sum + run.ids, 0);
    const oldest = known.map(({ run }) => entryTimeMs(run.fromId));
    this.oldestMs = oldest.length === 0 ? undefined : Math.min(...oldest);
  }

  #next(
    { cell, runsReachId, boundFromId, bindingMs }: RunsWatermark,
    all: readonly RequestRun[],
  ): CellFilters {
    const reach = Buffer.alloc(8);
    reach.writeBigUInt64LE(runsReachId);
    // The filter of the newest run is checked first, because a repeated id is seldom old.
    const runs = all
      .filter((run) => run.cell === cell)
      .reverse()
      .map((run) => ({ run, filter: this.#filters.get(nameOf(run))! }));
    const before = this.#of(cell);
    const isSame =
      before.reach.equals(reach) &&
      before.runs.length === runs.length &&
      before.runs.every(({ run }, i) => nameOf(run) === nameOf(runs[i]!.run));
    return { reach, boundFromId, bindingMs, runs, version: isSame ? before.version : ++this.#versions };
  }

  #of(cell: number): CellFilters {
    return this.#cells[cell] ?? NOTHING;
  }
}

/**
 * Returns a name for a filter that contains everything that determines its bytes. A run's number alone is not
 * unique, because a restored database assigns the same numbers again.
 */
const nameOf = ({ cell, runId, fromId, toId, ids, filterBytes, filterHash }: RequestRun): string =>
  [cell, runId, fromId, toId, ids, filterBytes, filterHash].join(':');

const bindsSpin = (kind: EntryKind): boolean => ENTRY_KINDS[kind].requestIds === 'spins';
