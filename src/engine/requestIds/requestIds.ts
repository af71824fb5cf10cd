/**
 * What a front end knows of the request ids that Redis holds no more: filters that tell a fresh id from one that the ledger may
 * have, and the look-up of the few that it may have.
 *
 *   id ──filters of its cell──> none has it: fresh, as far as the filters reach ──> script
 *                │ one may have it
 *                └──> script, which answers what Redis binds and deals nothing ──> block of the run ──> entry: bound to it
 *                                                                                        │ not there
 *                                                                                        └──> script, as a fresh one
 *
 * A call tells the script how far the filters reach that were asked. Where more was released since, the script refuses
 * (BEHIND); the filters are read and the same call is made again, with its ids asked anew.
 */

import type { BindingTimes } from '../../domain/bindingTimes.js';
import { entryCell, entryTimeMs } from '../../domain/entryId.js';
import type { FormerCell, Partner } from '../../domain/game.js';
import type { LedgerEntry } from '../../domain/ledgerColumns.js';
import { ENTRY_KINDS, type EntryKind } from '../../domain/ledgerEntry.js';
import { RequestFilter } from '../../domain/requestFilter.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../../domain/requestKey.js';
import { findInBlock, REQUEST_HASH_BYTES } from '../../domain/requestRun.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { EngineStore } from '../engine.store.js';
import { coarsestBytes, FilterMemoryError, plannedFolds } from './filterMemory.js';
import { LookUps } from './lookUps.js';
import type { FilterReading, RunsRead } from './requestRunReads.store.js';
import type { RequestRun, RunsWatermark } from './requestRuns.store.js';
import type { FoundRequest } from './secondPass.js';

export interface RequestIdsOptions {
  /** For the filters. */
  readonly runs: Pick<EngineStore, 'requestRunReads'>;
  /** For what partners ask: its connections are others. */
  readonly store: Pick<EngineStore, 'requestRunReads' | 'ledgerEntries'>;
  /** Of all filters. Past it they are made coarser: more ids ask the ledger, and none is forgotten (filterMemory.ts). */
  readonly filterBytesMax: number;
  /** The newest version of the runs that the catalog knows. */
  readonly newestVersion: () => string;
  /** How often it is looked for new runs, milliseconds. */
  readonly everyMs: number;
  readonly onError: (error: unknown) => void;
}

interface CellFilters {
  /** Id of the entry up to which the filters reach, as a call tells it. */
  readonly reach: Buffer;
  readonly boundFromId: bigint;
  /** As of when it is decided whether an id binds. */
  readonly bindingMs: number;
  /** Another one each time that something is another. */
  readonly version: number;
  readonly runs: readonly KnownRun[];
}

interface KnownRun {
  readonly run: RequestRun;
  readonly filter: RequestFilter;
}

/** Whose request ids are asked for. */
export type IdHolder = Pick<Partner, 'partnerId' | 'cell' | 'formerCells'>;

const NOTHING: CellFilters = {
  reach: Buffer.alloc(0),
  boundFromId: 0n,
  bindingMs: 0,
  version: 0,
  runs: [],
};

/** Runs may be merged or dropped while one of them is read. */
const TRIES = 5;

export class RequestIds extends PeriodicService {
  readonly name = 'filters of request ids';
  readonly #options: RequestIdsOptions;
  readonly #lookUps = new LookUps();
  /** By {@link nameOf}. */
  readonly #filters = new Map<string, RequestFilter>();
  readonly #cells: (CellFilters | undefined)[] = [];
  #times: BindingTimes | undefined;
  #isStarting = false;
  #knownVersion = '';
  #versions = 0;
  #reading: Promise<void> | undefined;
  /** Ids that the filters know. */
  ids = 0;
  /** Of all filters. */
  bytes = 0;
  /** What they would take at the least when a process starts. */
  bytesNeeded = 0;
  /** No id that may still bind is older; undefined: none is in a run. Milliseconds since the epoch. */
  oldestMs: number | undefined;
  /** By what they came to. `fresh`: a filter was wrong. `refused`: the ledger could not be asked. */
  readonly lookUps = { bound: 0, fresh: 0, refused: 0 };

  constructor(options: RequestIdsOptions) {
    super({ everyMs: options.everyMs, firstAfterMs: options.everyMs });
    this.#options = options;
  }

  /**
   * Reads all filters: nothing may be dealt before.
   * @throws FilterMemoryError where they have no room; other errors, where Postgres does not answer.
   */
  override async start(): Promise<void> {
    this.#isStarting = true;
    await this.refresh().finally(() => {
      this.#isStarting = false;
    });
    await super.start();
  }

  get bytesMax(): number {
    return this.#options.filterBytesMax;
  }

  /** For how long an id of a spin or deal binds that is bound now. Known once {@link start} is done. */
  get bindsSeconds(): number {
    return this.#times!.seconds;
  }

  /** How far the filters of a cell reach; to be read in the same turn of the loop as the filters are asked. */
  reachOf(cell: number): Buffer {
    return this.#of(cell).reach;
  }

  /** Changes whenever the cell's filters change. */
  versionOf(cell: number): number {
    return this.#of(cell).version;
  }

  /** Request ids of entries before this one may bind no more. */
  boundFromId(cell: number): bigint {
    return this.#of(cell).boundFromId;
  }

  /**
   * The ledger may have the id of a partner whose hash begins at `at`. False is definitive up to the filters' reach: that of its cell's
   * filters, and for a cell that the partner has left, where it left it. Where they do not reach that far, it is true.
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
   * The entry that a requestId of a partner was bound to when Redis let it go, and as of which {@link versionOf} that is known.
   * @throws where the ledger can't be asked now, or too many wait for it.
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
    const { store } = this.#options;
    const hash = Buffer.alloc(REQUEST_KEY_BYTES);
    writeRequestKey(hash, 0, partnerId, requestId);
    const high = hash.readUInt32BE(0);
    const low = hash.readUInt32BE(4);
    for (let tries = 0; tries < TRIES; tries++) {
      if (!formerCells.every((former) => this.#reaches(former))) {
        await this.refresh();
        if (!formerCells.every((former) => this.#reaches(former)))
          throw new Error("The filters of a partner's former cell do not reach to where it left");
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
      // The newest first: an earlier one bound no more when it was dealt.
      for (const id of ids.sort((a, b) => (a < b ? 1 : -1))) {
        const entry = await store.ledgerEntries.find(id);
        if (entry?.partnerId === partnerId && entry.requestId === requestId && bindsSpin(entry.kind))
          return { entry, version };
      }
      return { entry: undefined, version };
    }
    throw new Error('The runs of request ids are merged each time that they are looked into');
  }

  /** The request id of an entry binds, as far as is known here: nobody deals it again who knows less. */
  #binds(entryId: bigint): boolean {
    return this.#times!.untilMs(entryTimeMs(entryId)) > this.#of(entryCell(entryId)).bindingMs;
  }

  /** Reads what is new. All who ask meanwhile share it. @throws where Postgres does not answer. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  protected async turn(): Promise<void> {
    if (this.#options.newestVersion() !== this.#knownVersion) await this.refresh();
  }

  protected onTurnFailed(error: unknown): void {
    this.#options.onError(error);
  }

  async #read(): Promise<void> {
    const { runs: store, filterBytesMax } = this.#options;
    const version = await store.requestRunReads.version();
    await store.requestRunReads.read((read) => {
      const { runs } = read;
      this.bytesNeeded = coarsestBytes(runs.map(({ filterBytes }) => ({ bytes: filterBytes })));
      const ids = runs.reduce((sum, run) => sum + run.ids, 0);
      // Later a front end deals on: with filters that are coarser still.
      if (this.#isStarting && this.bytesNeeded > filterBytesMax)
        throw new FilterMemoryError(ids, this.bytesNeeded, filterBytesMax);
      return this.#take(read);
    });
    this.#knownVersion = version;
  }

  /** Cell by cell, so that what one has no more is gone before the next is read. */
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

  /** Makes those filters coarser that must be, and says how coarse the others will be. */
  #plannedFolds(runs: readonly RequestRun[]): ReadonlyMap<RequestRun, number> {
    const sizes = runs.map((run) => ({
      bytes: run.filterBytes,
      folds: this.#filters.get(nameOf(run))?.folds ?? 0,
    }));
    const planned = plannedFolds(sizes, this.#options.filterBytesMax);
    runs.forEach((run, place) => {
      const filter = this.#filters.get(nameOf(run));
      while (filter !== undefined && filter.folds < planned[place]!) filter.fold();
    });
    return new Map(runs.map((run, place) => [run, planned[place]!]));
  }

  /** Lets go of the filters of runs that a cell has no more. */
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
    // The newest first: an id that is repeated is seldom old.
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

/** Everything that the bytes of a run's filter depend on: numbers come again where a database is restored. */
const nameOf = ({ cell, runId, fromId, toId, ids, filterBytes, filterHash }: RequestRun): string =>
  [cell, runId, fromId, toId, ids, filterBytes, filterHash].join(':');

const bindsSpin = (kind: EntryKind): boolean => ENTRY_KINDS[kind].requestIds === 'spins';
