/**
 * Hands request ids over from Redis to runs in Postgres, for the cells that this worker owns.
 *
 *   segment of Redis that is written ──closed, every window──> closed ──all of it booked, its ids written to a run (those that this
 *     process has booked as it kept them, committedRequestIds.ts, others of the ledger), run and watermark in one transaction──> in both ──older than the window──> released: Redis holds it no more
 *     ──no id of the run binds any more (domain/bindingTimes.ts)──> the run is dropped
 *
 * The watermark, cells.handed_over_id, is before the release at each moment, and front ends can't deal until their filters reach as far
 * as was released: no id is ever in neither. Each step is fenced and can be repeated: ended anywhere, the next owner goes on.
 * Runs are merged, so that a front end asks few filters.
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
  requestRuns,
  runsWatermarks,
  writeRun,
} from './requestRuns.store.js';
import { runsToMerge } from './runMerging.js';

export interface SegmentReleaseOptions {
  /** Redis holds a request id for so long at least, milliseconds. */
  readonly windowMs: number;
  /** What the same process has booked. */
  readonly committedIds: CommittedRequestIds;
  readonly events: EventEmitter;
  readonly onFailpoint: OnFailpoint;
}

const TURN_MS_MAX = 5000;
/** While so many closed segments wait to be written, the newest goes on being written: a script reads few. */
const CLOSED_MAX = 2;
const MERGES_A_TURN = 16;
/** A merged run is of a quarter of the time that ids bind at most: it is dropped whole when the newest of them binds no more. */
const MERGED_SHARE = 4;
/** Of the time, so that spins do not wait for a core: at 1 us an id that is above 200,000 ids a second. */
const WORKED_SHARE = 0.25;
/** From the writing of a run to the release of its ids: front ends have read the filters by then, and go on if Postgres goes away. */
const RELEASE_AFTER_MS = 5000;

export class SegmentRelease extends PeriodicService {
  readonly name = 'release of request ids';
  readonly #sql: Sql;
  readonly #nodes: RedisNodes;
  readonly #options: SegmentReleaseOptions;
  readonly #leases = new Map<number, CellLease>();
  readonly #seenMs = new Map<number, number>();
  readonly #aged = new Map<number, AgedMark>();
  /** Since this process began. */
  ids = 0;

  constructor(sql: Sql, nodes: RedisNodes, options: SegmentReleaseOptions) {
    const everyMs = Math.min(TURN_MS_MAX, options.windowMs / 4);
    super({ everyMs, firstAfterMs: everyMs });
    this.#sql = sql;
    this.#nodes = nodes;
    this.#options = options;
  }

  own(lease: CellLease): void {
    this.#leases.set(lease.cell, lease);
  }

  disown(cell: number): void {
    this.#leases.delete(cell);
  }

  protected onTurnFailed(error: unknown): void {
    if (!isOutrun(error)) this.#options.events.emit('TaskFailed', { task: 'request id release', error });
  }

  protected async turn(): Promise<void> {
    const started = performance.now();
    const failures: unknown[] = [];
    /** Of all cells at once: one whose Redis is away holds up no other. */
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
    for (let isMore = true; isMore && !this.isStopped; ) {
      const step = await this.#copy(held);
      isMore = step.isMore;
      ids += step.ids;
    }
    this.ids += ids;
    if (ids > 0) {
      const seconds = (performance.now() - started) / 1000;
      this.#options.events.emit('RunWritten', { ids, seconds });
    }
    const marks = new Map((await runsWatermarks(this.#sql)).map((each) => [each.cell, each]));
    await ofEach(held, ([cell, segments]) =>
      this.#release(cell, segments, marks.get(cell)?.runsReachId ?? 0n),
    );
    await ofEach(this.#leases.values(), (lease) => this.#drop(lease, marks.get(lease.cell)?.bindingMs ?? 0));
    await this.#merge();
    if (failures.length > 0) throw failures.find((error) => !isOutrun(error)) ?? failures[0];
  }

  /** Ends long work in between where the service stops: what is not committed is done again by the next owner. */
  #pauses(cycle: DutyCycle): () => Promise<void> {
    return async () => {
      if (this.isStopped) throw new Error('The release of request ids is stopped');
      await cycle.pieceEnded();
    };
  }

  /** Closes the segment that is written, where it has an entry and its time is over. @returns the segments as they are then */
  async #closed(lease: CellLease): Promise<CellSegments | undefined> {
    const { windowMs, onFailpoint } = this.#options;
    const segments = await requestSegments(this.#nodes, lease.cell);
    if (segments === undefined) return undefined;
    const { closed, newestEntryId, releasedId } = segments;
    const begin = closed.at(-1) ?? releasedId;
    if (closed.length >= CLOSED_MAX || newestEntryId <= begin) return segments;
    const nowMs = await this.#nodes.of(lease.cell).timeMs();
    const beganMs = begin === 0n ? this.#firstSeen(lease.cell, nowMs) : entryTimeMs(begin);
    if (nowMs - beganMs < windowMs) return segments;
    const now = await closeSegment(this.#nodes, lease, segments);
    onFailpoint('release.closed');
    return now;
  }

  /** When entries of a cell were first seen that has handed nothing over yet. */
  #firstSeen(cell: number, nowMs: number): number {
    const known = this.#seenMs.get(cell) ?? nowMs;
    this.#seenMs.set(cell, known);
    return known;
  }

  /** Writes ids of what is closed and booked to runs, or of all that is booked where too many wait; all cells in one pass. */
  async #copy(held: ReadonlyMap<number, CellSegments>): Promise<{ ids: number; isMore: boolean }> {
    const marks = new Map((await runsWatermarks(this.#sql)).map((each) => [each.cell, each]));
    const { committedIds, onFailpoint } = this.#options;
    const due: DueIds[] = [];
    let isLate = false;
    for (const [cell, { closed, releasedId }] of held) {
      const lease = this.#leases.get(cell);
      const mark = marks.get(cell);
      if (lease === undefined || mark === undefined) continue;
      const { runsReachId: from, cursorId } = mark;
      // What is released already: Postgres was put back to an earlier state.
      const ends = [releasedId, ...closed].filter((id) => id > from && id <= cursorId);
      const booked = committedIds.areDue ? committedIds.watermarkOf(cell) : undefined;
      const to = booked !== undefined && booked > from && booked <= cursorId ? booked : ends.at(-1);
      if (to !== undefined)
        due.push({ cell, fence: lease.fence, from, to, pairs: committedIds.take(cell, from, to) });
      isLate ||= ends.length >= CLOSED_MAX;
    }
    if (due.length === 0) return { ids: 0, isMore: false };
    const cycle = new DutyCycle(isLate ? 1 : WORKED_SHARE);
    const step = await writeRun(this.#sql, due, this.#pauses(cycle), onFailpoint);
    onFailpoint('release.committed');
    return step;
  }

  /** Releases what the ledger has of a cell, once it is older than the window. */
  async #release(cell: number, read: CellSegments, runsReachId: bigint): Promise<void> {
    const { windowMs, onFailpoint } = this.#options;
    const nowMs = await this.#nodes.of(cell).timeMs();
    const aged = this.#agedMark(cell).of(runsReachId, Math.min(RELEASE_AFTER_MS, windowMs));
    for (let segments = read; ; ) {
      const lease = this.#leases.get(cell);
      const [oldest] = segments.closed;
      if (lease === undefined || oldest === undefined || oldest > aged) return;
      if (nowMs - entryTimeMs(oldest) < windowMs) return;
      const { first } = segments;
      segments = await releaseSegment(this.#nodes, lease, segments);
      onFailpoint('release.released');
      // Somebody else was there before.
      if (segments.first === first) return;
    }
  }

  #agedMark(cell: number): AgedMark {
    const known = this.#aged.get(cell) ?? new AgedMark();
    this.#aged.set(cell, known);
    return known;
  }

  /** Moves on, every half window, as of when it is decided which ids bind, and drops the runs of which none does. */
  async #drop(lease: CellLease, decidedMs: number): Promise<void> {
    const { windowMs, onFailpoint } = this.#options;
    // A clock that is ahead drops nothing.
    const nowMs = Math.min(Date.now(), await this.#nodes.of(lease.cell).timeMs());
    if (nowMs - decidedMs < windowMs / 2) return;
    const bindingMs = await moveBinding(this.#sql, lease, nowMs);
    onFailpoint('release.moved');
    const times = await bindingTimes(this.#sql);
    for (const run of await requestRuns(this.#sql)) {
      if (run.cell !== lease.cell || times.untilMsOf(spanOf(run)) > bindingMs || this.isStopped) continue;
      await dropRun(this.#sql, lease, run);
    }
  }

  async #merge(): Promise<void> {
    const spanMsMax = ((await bindingTimes(this.#sql)).seconds * 1000) / MERGED_SHARE;
    for (let merges = 0; merges < MERGES_A_TURN && !this.isStopped; merges++) {
      const work = this.#mergeOf(await requestRuns(this.#sql), spanMsMax);
      if (work === undefined) return;
      await mergeRuns(this.#sql, work.lease, work.runs, this.#pauses(new DutyCycle(WORKED_SHARE)));
      this.#options.onFailpoint('release.merged');
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

/** When the ids of a run were bound. */
const spanOf = ({ fromId, toId }: RequestRun): Span => ({
  fromMs: entryTimeMs(fromId),
  beforeMs: entryTimeMs(toId) + 1,
});

/** Another worker has one of the cells: whoever owns them comes to know it by himself. */
const isOutrun = (error: unknown): boolean => error instanceof OutrunError || error instanceof FencedError;

/** The mark of a cell as it was some time ago. */
class AgedMark {
  #id = 0n;
  #next: { readonly id: bigint; readonly seenMs: number } | undefined;

  /**
   * @param id the mark as it is now
   * @param afterMs how long ago a mark was seen first at least, milliseconds
   * @returns a mark of then; never beyond the one that is now, where Postgres was put back to an earlier state
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
