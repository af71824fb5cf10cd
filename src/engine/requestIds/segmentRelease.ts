/**
 * Moves request ids from Redis to runs in Postgres, for the cells that this worker owns. A segment of ids
 * passes through these states:
 *
 * 1. open: scripts add ids to the segment
 * 2. closed: a segment is closed once its oldest id is older than the window
 * 3. written: all its entries are committed and its ids are in a run; one transaction writes the run and
 *    the watermark. Ids that this process has committed are in memory (committedRequestIds.ts), and all other
 *    ids are read from the ledger.
 * 4. released: the segment is older than the window, and is deleted from Redis
 * 5. dropped: no id of the run is bound any more (domain/bindingTimes.ts), and the run is deleted
 *
 * The watermark, cells.handed_over_id, is always advanced before the release. Front ends can't deal until
 * their filters include everything that has been released, so every id is always in Redis or in the filters.
 * Each step is fenced and may be repeated. After an interruption the next owner continues.
 *
 * Runs are merged, so that a front end needs to check only few filters.
 */
import type { Span } from '../../domain/bindingTimes.js';
import { entryTimeMs } from '../../domain/entryId.js';
import type { OnFailpoint } from '../../platform/failpoints.js';
import { DutyCycle } from '../../platform/runtime/dutyCycle.js';
import { PeriodicService } from '../../platform/runtime/periodicService.js';
import type { Sql } from '../../postgres/connection.js';
import { type CellLease, FencedError } from '../cells/cells.store.js';
import type { EventEmitter } from '../processEvents.js';
import type { RedisNodes } from '../redis/nodes.js';
import {
  type CellSegments,
  closeSegment,
  releaseSegment,
  requestSegments,
} from '../redis/requestSegments.js';
import { OutrunError } from '../redis/scriptErrors.js';
import type { CommittedRequestIds } from './committedRequestIds.js';
import { bindingTimes, dropRun, moveBinding } from './requestRunReads.store.js';
import {
  type DueIds,
  mergeRuns,
  type RequestRun,
  type RunsWatermark,
  requestRuns,
  runsWatermarks,
  writeRun,
} from './requestRuns.store.js';
import { runsToMerge } from './runMerging.js';

const TURN_MS_MAX = 5000;
/**
 * Maximum number of closed segments that wait to be written. At this number the open segment stays open, so
 * that scripts have to read only few segments.
 */
const CLOSED_MAX = 2;
const MERGES_A_TURN = 16;
/**
 * Divisor for the time span of a merged run: the span is at most a quarter of the time for which request ids
 * stay bound. A run can be dropped only when its newest id is no longer bound, so the run must not span too
 * much time.
 */
const MERGED_SHARE = 4;
/**
 * Maximum fraction of the time that is spent on writing runs, so that spins do not have to wait for a core.
 * At 1 us per id, this fraction allows more than 200,000 ids a second.
 */
const WORKED_SHARE = 0.25;
/**
 * Time between writing a run and releasing its ids, in ms. By the release, front ends have loaded the new
 * filters, so they can continue even if Postgres becomes unreachable.
 */
const RELEASE_AFTER_MS = 5000;

export class SegmentRelease extends PeriodicService {
  readonly name = 'release of request ids';
  readonly #leases = new Map<number, CellLease>();
  readonly #seenMs = new Map<number, number>();
  readonly #aged = new Map<number, AgedMark>();
  /** Number of request ids written to runs since this process started. */
  ids = 0;

  constructor(
    private readonly sql: Sql,
    private readonly nodes: RedisNodes,
    private readonly options: {
      /** Minimum time that Redis holds a request id, in ms. */
      readonly windowMs: number;
      readonly committedIds: CommittedRequestIds;
      readonly events: EventEmitter;
      readonly onFailpoint: OnFailpoint;
    },
  ) {
    const everyMs = Math.min(TURN_MS_MAX, options.windowMs / 4);
    super({ everyMs });
  }

  own(lease: CellLease): void {
    this.#leases.set(lease.cell, lease);
  }

  disown(cell: number): void {
    this.#leases.delete(cell);
  }

  protected override onTurnFailed(error: unknown): void {
    if (!isOutrun(error)) this.options.events.emit('TaskFailed', { task: 'request id release', error });
  }

  protected async turn(): Promise<void> {
    const started = performance.now();
    const failures: unknown[] = [];
    /**
     * Does the work for all cells concurrently, so that a cell whose Redis is unreachable does not delay the
     * other cells.
     */
    const ofEach = async <T>(cells: Iterable<T>, work: (each: T) => Promise<void>): Promise<void> => {
      for (const done of await Promise.allSettled(Array.from(cells, work)))
        if (done.status === 'rejected') failures.push(done.reason);
    };
    const held = new Map<number, CellSegments>();
    await ofEach(this.#leases.values(), async (lease) => {
      const segments = await this.#closed(lease);
      if (segments !== undefined) held.set(lease.cell, segments);
    });
    let ids = 0;
    let marks = await this.#marks();
    for (let isMore = true; isMore && !this.isStopped; ) {
      const step = await this.#copy(held, marks);
      if (step === undefined) break;
      isMore = step.isMore;
      ids += step.ids;
      marks = await this.#marks();
    }
    this.ids += ids;
    if (ids > 0) {
      const seconds = (performance.now() - started) / 1000;
      this.options.events.emit('RunWritten', { ids, seconds });
    }
    await ofEach(held, ([cell, segments]) =>
      this.#release(cell, segments, marks.get(cell)?.runsReachId ?? 0n),
    );
    await ofEach(this.#leases.values(), (lease) => this.#drop(lease, marks.get(lease.cell)?.bindingMs ?? 0));
    await this.#merge();
    if (failures.length > 0) throw failures.find((error) => !isOutrun(error)) ?? failures[0];
  }

  async #marks(): Promise<ReadonlyMap<number, RunsWatermark>> {
    return new Map((await runsWatermarks(this.sql)).map((each) => [each.cell, each]));
  }

  /**
   * Interrupts long work when the service stops. The cell's next owner repeats work that is not committed.
   */
  #pauses(cycle: DutyCycle): () => Promise<void> {
    return async () => {
      if (this.isStopped) throw new Error('The release of request ids is stopped');
      await cycle.pieceEnded();
    };
  }

  /** Closes the open segment if it has an entry and is older than the window. */
  async #closed(lease: CellLease): Promise<CellSegments | undefined> {
    const { windowMs, onFailpoint } = this.options;
    const segments = await requestSegments(this.nodes, lease.cell);
    if (segments === undefined) return undefined;
    const { closed, newestEntryId, releasedId } = segments;
    const begin = closed.at(-1) ?? releasedId;
    if (closed.length >= CLOSED_MAX || newestEntryId <= begin) return segments;
    const nowMs = await this.nodes.of(lease.cell).timeMs();
    const beganMs = begin === 0n ? this.#firstSeen(lease.cell, nowMs) : entryTimeMs(begin);
    if (nowMs - beganMs < windowMs) return segments;
    const now = await closeSegment(this.nodes, lease, segments);
    onFailpoint('release.closed');
    return now;
  }

  /** Returns the time at which this process first saw entries in a cell that has no runs of request ids. */
  #firstSeen(cell: number, nowMs: number): number {
    const known = this.#seenMs.get(cell) ?? nowMs;
    this.#seenMs.set(cell, known);
    return known;
  }

  /**
   * Writes the committed ids of closed segments to runs, with one scan of the ledger for all cells. If too
   * many ids are in memory, all committed ids are written.
   * @returns undefined if there was nothing to write
   */
  async #copy(
    held: ReadonlyMap<number, CellSegments>,
    marks: ReadonlyMap<number, RunsWatermark>,
  ): Promise<{ ids: number; isMore: boolean } | undefined> {
    const { committedIds, onFailpoint } = this.options;
    const due: DueIds[] = [];
    let isLate = false;
    for (const [cell, { closed, releasedId }] of held) {
      const lease = this.#leases.get(cell);
      const mark = marks.get(cell);
      if (lease === undefined || mark === undefined) continue;
      const { runsReachId: from, cursorId } = mark;
      // The watermark of released ids is included, because ids may have been released before Postgres was
      // restored to an earlier state.
      const ends = [releasedId, ...closed].filter((id) => id > from && id <= cursorId);
      const booked = committedIds.areDue ? committedIds.watermarkOf(cell) : undefined;
      const to = booked !== undefined && booked > from && booked <= cursorId ? booked : ends.at(-1);
      if (to !== undefined)
        due.push({ cell, fence: lease.fence, from, to, pairs: committedIds.take(cell, from, to) });
      isLate ||= ends.length >= CLOSED_MAX;
    }
    if (due.length === 0) return undefined;
    const cycle = new DutyCycle(isLate ? 1 : WORKED_SHARE);
    const step = await writeRun(this.sql, due, this.#pauses(cycle), onFailpoint);
    onFailpoint('release.committed');
    return step;
  }

  /** Releases those segments of a cell whose ids are in runs and which are older than the window. */
  async #release(cell: number, read: CellSegments, runsReachId: bigint): Promise<void> {
    const { windowMs, onFailpoint } = this.options;
    const nowMs = await this.nodes.of(cell).timeMs();
    const aged = this.#agedMark(cell).of(runsReachId, Math.min(RELEASE_AFTER_MS, windowMs));
    for (let segments = read; ; ) {
      const lease = this.#leases.get(cell);
      const [oldest] = segments.closed;
      if (lease === undefined || oldest === undefined || oldest > aged) return;
      if (nowMs - entryTimeMs(oldest) < windowMs) return;
      const { first } = segments;
      segments = await releaseSegment(this.nodes, lease, segments);
      onFailpoint('release.released');
      // Another process has changed the segments in the meantime, so this process does nothing.
      if (segments.first === first) return;
    }
  }

  #agedMark(cell: number): AgedMark {
    const known = this.#aged.get(cell) ?? new AgedMark();
    this.#aged.set(cell, known);
    return known;
  }

  /**
   * Advances the binding cut-off every half window, and drops the runs whose request ids are no longer bound.
   */
  async #drop(lease: CellLease, decidedMs: number): Promise<void> {
    const { windowMs, onFailpoint } = this.options;
    // The binding cut-off follows the earlier of the clocks of Redis and this process, so that no run is
    // dropped because one clock is ahead.
    const nowMs = Math.min(Date.now(), await this.nodes.of(lease.cell).timeMs());
    if (nowMs - decidedMs < windowMs / 2) return;
    const bindingMs = await moveBinding(this.sql, lease, nowMs);
    onFailpoint('release.moved');
    const times = await bindingTimes(this.sql);
    for (const run of await requestRuns(this.sql)) {
      if (run.cell !== lease.cell || times.untilMsOf(spanOf(run)) > bindingMs || this.isStopped) continue;
      await dropRun(this.sql, lease, run);
    }
  }

  async #merge(): Promise<void> {
    const spanMsMax = ((await bindingTimes(this.sql)).seconds * 1000) / MERGED_SHARE;
    for (let merges = 0; merges < MERGES_A_TURN && !this.isStopped; merges++) {
      const work = this.#mergeOf(await requestRuns(this.sql), spanMsMax);
      if (work === undefined) return;
      await mergeRuns(this.sql, work.lease, work.runs, this.#pauses(new DutyCycle(WORKED_SHARE)));
      this.options.onFailpoint('release.merged');
    }
  }

  #mergeOf(
    all: readonly RequestRun[],
    spanMsMax: number,
  ): { lease: CellLease; runs: readonly RequestRun[] } | undefined {
    for (const lease of this.#leases.values()) {
      const own = all.filter(({ cell }) => cell === lease.cell);
      const runs = runsToMerge(own, spanMsMax);
      if (runs !== undefined) return { lease, runs };
    }
    return undefined;
  }
}

const spanOf = ({ fromId, toId }: RequestRun): Span => ({
  fromMs: entryTimeMs(fromId),
  beforeMs: entryTimeMs(toId) + 1,
});

/** True if the error means that another worker owns one of the cells. The new owner continues the release. */
const isOutrun = (error: unknown): boolean => error instanceof OutrunError || error instanceof FencedError;

/**
 * Remembers the past values of a cell's watermark with their times, so that it can be found what the
 * watermark was some time ago.
 */
class AgedMark {
  #id = 0n;
  #next: { readonly id: bigint; readonly seenMs: number } | undefined;

  /**
   * @param afterMs minimum age of the returned watermark, in ms
   * @returns an earlier watermark, which never exceeds the current one even if Postgres was restored to an
   * earlier state
   */
  of(id: bigint, afterMs: number): bigint {
    const nowMs = performance.now();
    if (this.#next !== undefined && nowMs - this.#next.seenMs >= afterMs) {
      this.#id = this.#next.id;
      this.#next = undefined;
    }
    if (this.#next === undefined && id > this.#id) this.#next = { id, seenMs: nowMs };
    return id < this.#id ? id : this.#id;
  }
}
