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
import type { FormerCell, Partner } from '../domain/game.js';
import { ENTRY_KINDS, type EntryKind } from '../domain/ledgerEntry.js';
import { RequestFilter } from '../domain/requestFilter.js';
import { REQUEST_KEY_BYTES, writeRequestKey } from '../domain/requestKey.js';
import { findInBlock, HASH_BYTES } from '../domain/requestRun.js';
import type { LedgerEntry } from '../postgres/ledger.js';
import type { HandedOver, RequestRun } from '../postgres/requestRuns.js';
import type { Store } from '../postgres/store.js';
import { PeriodicService } from '../runtime/periodicService.js';
import { LookUps } from './lookUps.js';

export interface HandedOverOptions {
  /** For the filters. */
  readonly runs: Pick<Store, 'readRuns' | 'runsVersion'>;
  /** For what partners ask: its connections are others. */
  readonly store: Pick<Store, 'requestBlocksOf' | 'findEntry'>;
  /** Of all filters. Past it they are folded: more ids ask the ledger, and none is forgotten. */
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
  /** Another one each time that something is another. */
  readonly version: number;
  readonly runs: readonly { readonly runId: number; readonly filter: RequestFilter }[];
}

/** Whose request ids are asked for. */
export type IdHolder = Pick<Partner, 'partnerId' | 'cell' | 'formerCells'>;

const NOTHING: CellFilters = { reach: Buffer.alloc(0), boundFromId: 0n, version: 0, runs: [] };
/** Runs may be merged while one of them is read. */
const TRIES = 5;
/** A filter that is as small is not folded any more. */
const FILTER_BYTES_MIN = 64;

export class HandedOverIds extends PeriodicService {
  readonly name = 'filters of request ids';
  readonly #options: HandedOverOptions;
  readonly #lookUps = new LookUps();
  readonly #filters = new Map<number, RequestFilter>();
  #cells: readonly (CellFilters | undefined)[] = [];
  #knownVersion = '';
  #versions = 0;
  #reading: Promise<void> | undefined;
  /** Of all filters. */
  bytes = 0;
  /** By what they came to. `fresh`: a filter was wrong. `refused`: the ledger could not be asked. */
  readonly lookUps = { bound: 0, fresh: 0, refused: 0 };

  constructor(options: HandedOverOptions) {
    super({ everyMs: options.everyMs, firstAfterMs: options.everyMs });
    this.#options = options;
  }

  /** Reads all filters: nothing may be dealt before. @throws where Postgres does not answer. */
  override async start(): Promise<void> {
    await this.refresh();
    await super.start();
  }

  /** How far the filters of a cell reach; to be read in the same turn of the loop as the filters are asked. */
  reachOf(cell: number): Buffer {
    return this.#of(cell).reach;
  }

  /** What is known of a cell is another each time that this is another. */
  versionOf(cell: number): number {
    return this.#of(cell).version;
  }

  /** Request ids of entries before this one bind no more. */
  boundFromId(cell: number): bigint {
    return this.#of(cell).boundFromId;
  }

  /**
   * The ledger may have the id of a partner whose hash begins at `at`; if not, it has not, as far as the filters of its cell reach.
   * Those of cells that it lived in before reach to where it left them, or it is asked for.
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
  async find(
    holder: IdHolder,
    requestId: string,
  ): Promise<{ readonly entry: LedgerEntry | undefined; readonly version: number }> {
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
      const hit = runs.filter(({ filter }) => filter.mayHave(high, low)).map(({ runId }) => runId);
      if (hit.length === 0) return { entry: undefined, version };
      const blocks = await store.requestBlocksOf(hit, hash.subarray(0, HASH_BYTES));
      if (blocks === undefined) {
        await this.refresh();
        continue;
      }
      const ids = blocks.flatMap((block) => findInBlock(block, hash)).sort((a, b) => (a < b ? -1 : 1));
      for (const id of ids) {
        const entry = await store.findEntry(id);
        if (entry?.partnerId === partnerId && entry.requestId === requestId && bindsSpin(entry.kind))
          return { entry, version };
      }
      return { entry: undefined, version };
    }
    throw new Error('The runs of request ids are merged each time that they are looked into');
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
    const store = this.#options.runs;
    const version = await store.runsVersion();
    const known = this.#filters;
    const { cells, runs } = await store.readRuns(new Set(known.keys()), (run, bytes) => {
      known.set(run.runId, new RequestFilter(bytes));
      foldTo(known, this.#options.filterBytesMax);
    });
    const current = new Set(runs.map(({ runId }) => runId));
    for (const runId of known.keys()) if (!current.has(runId)) known.delete(runId);
    const next: (CellFilters | undefined)[] = [];
    for (const each of cells) next[each.cell] = this.#next(each, runs);
    this.#cells = next;
    this.#knownVersion = version;
    this.bytes = bytesOf(known);
  }

  #next({ cell, handedOverId, boundFromId }: HandedOver, all: readonly RequestRun[]): CellFilters {
    const reach = Buffer.alloc(8);
    reach.writeBigUInt64LE(handedOverId);
    // The newest first: an id that is repeated is seldom old.
    const runs = all
      .filter((run) => run.cell === cell)
      .reverse()
      .map(({ runId }) => ({ runId, filter: this.#filters.get(runId)! }));
    const before = this.#of(cell);
    const isSame =
      before.reach.equals(reach) &&
      before.runs.length === runs.length &&
      before.runs.every(({ runId }, i) => runId === runs[i]!.runId);
    return { reach, boundFromId, runs, version: isSame ? before.version : ++this.#versions };
  }

  #of(cell: number): CellFilters {
    return this.#cells[cell] ?? NOTHING;
  }
}

const bytesOf = (filters: ReadonlyMap<number, RequestFilter>): number => {
  let bytes = 0;
  for (const filter of filters.values()) bytes += filter.bytes.length;
  return bytes;
};

/** Makes filters half as large, those first that were folded least and are the oldest, until all of them have room. */
function foldTo(filters: Map<number, RequestFilter>, bytesMax: number): void {
  for (let bytes = bytesOf(filters); bytes > bytesMax; ) {
    let least: [number, RequestFilter] | undefined;
    for (const each of filters)
      if (each[1].bytes.length > FILTER_BYTES_MIN && (least === undefined || each[1].folds < least[1].folds))
        least = each;
    if (least === undefined) return;
    const [runId, filter] = least;
    const folded = filter.folded();
    filters.set(runId, folded);
    bytes -= filter.bytes.length - folded.bytes.length;
  }
}

const bindsSpin = (kind: EntryKind): boolean => ENTRY_KINDS[kind].requestIds === 'spins';
