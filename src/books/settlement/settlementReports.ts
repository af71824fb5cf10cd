/**
 * Generates settlement reports: decides when a day is complete and which days are due, and serves operators'
 * requests.
 *
 * A report is generated from the ledger alone, so the whole day must be committed. That can be established in
 * two ways. Either the partner's ledger watermark lies beyond the day (partners.store.ts), or the Redis
 * server for which the partner's cell was prepared has passed the end of the day and has no uncommitted
 * entries of that day.
 *
 * In both cases the day must have ended by all clocks. Clocks may differ: the clock of Redis may step back,
 * or Redis may be replaced by a server whose clock is behind.
 */

import { DAY_MS, dayOf, shiftDay, startOf } from '../../domain/days.js';
import { firstIdAt } from '../../domain/entryId.js';
import { ApiError, ERRORS } from '../../domain/errors.js';
import { overAfterMs } from '../../domain/settlement.js';
import type { LedgerWatermark } from '../../engine/catalog/partners.store.js';
import type { EngineStore } from '../../engine/engine.store.js';
import type { EventEmitter } from '../../engine/processEvents.js';
import type { Clocks } from '../../engine/redis/clockSkew.js';
import type { RedisNodes } from '../../engine/redis/nodes.js';
import type { BooksStore } from '../books.store.js';
import type { UnsettledDay } from './settledDays.store.js';
import type {
  OnReport,
  ReportedDay,
  ReportPreview,
  StoredReport,
  WantedReport,
} from './settlements.store.js';

export interface SettleObserver {
  /** Returns whether the generation of reports should stop. Called before each report. */
  readonly isStopped: () => boolean;
  /** Called if a report could not be generated. */
  readonly onFault: (error: unknown, day: UnsettledDay) => void;
}

/**
 * Minimum clock difference, in ms, that is assumed of a Redis server that takes over, even if the configured
 * limit is smaller.
 */
const CLOCKS_APART_MS = 5000;
/** Number of days checked at a time, for all partners. */
const DAYS_AT_ONCE = 31;

/** State of a day: whether it has ended by all clocks, and whether all its entries are committed. */
type DayState = Pick<WantedReport, 'isComplete' | 'isOver'>;

/** Who requests a report and why, and the state of its day. */
type RequestOfReport = Pick<WantedReport, 'actor' | 'reason' | 'isDue' | 'isComplete' | 'isOver'>;

/** Whether a cell has passed a day, cached by cell, epoch and day. Each combination is checked once. */
type PassedDays = Map<string, boolean>;

export class SettlementReports {
  constructor(
    private readonly options: {
      readonly store: Pick<BooksStore, 'settlements'> & Pick<EngineStore, 'cells' | 'partners'>;
      readonly nodes: Pick<RedisNodes, 'cell'>;
      readonly now?: () => Date;
      readonly clocks: Pick<Clocks, 'skewMaxMs'>;
      /** Called in the transaction that generates a complete report. Default: notifies the partner. */
      readonly onReport?: OnReport;
      readonly events: EventEmitter;
    },
  ) {}

  now(): Date {
    return this.options.now?.() ?? new Date();
  }

  /**
   * Generates the next revision of a report for an operator. Its status is PENDING if the day is not
   * complete.
   * @param reason reason for the revision, which answers a dispute; a revision without a reason leaves the
   * dispute open
   * @throws ApiError: KS-4209, KS-4214, KS-4301 for a future day or a day before the partner's first,
   * KS-4304.
   */
  async makeNow(
    partnerId: number | undefined,
    date: string,
    actor: string,
    reason?: string,
  ): Promise<StoredReport> {
    const id = await this.#reportablePartner(partnerId, date);
    const state = await this.#stateOf(id, date);
    const made = await this.#make(id, date, { actor, reason, isDue: false, ...state });
    // With isDue false, the store's `make` returns a report or `acknowledged`, never `not-due`.
    if (typeof made === 'string') throw new ApiError(ERRORS.reportStatus);
    return made;
  }

  /**
   * Composes the next revision of a report as {@link makeNow} would, and stores nothing.
   * @throws ApiError as {@link makeNow}
   */
  async preview(partnerId: number | undefined, date: string): Promise<ReportPreview> {
    const id = await this.#reportablePartner(partnerId, date);
    const how = { actor: '', isDue: false, ...(await this.#stateOf(id, date)) };
    const preview = await this.options.store.settlements.preview({ ...how, ...this.#dayOf(id, date) });
    if (preview === 'acknowledged') throw new ApiError(ERRORS.reportStatus);
    return preview;
  }

  /**
   * Returns the id of a partner that can have a report of a day.
   * @throws ApiError: KS-4209, KS-4214, KS-4301 for a future day or a day before the partner's first
   */
  async #reportablePartner(partnerId: number | undefined, date: string): Promise<number> {
    const { store } = this.options;
    const partner = partnerId === undefined ? undefined : await store.settlements.partner(partnerId);
    if (partnerId === undefined || partner === undefined) throw new ApiError(ERRORS.partnerNotFound);
    if (!partner.hasGames) throw new ApiError(ERRORS.noGames);
    if (date < partner.firstDay || date > dayOf(this.now().getTime()))
      throw new ApiError(ERRORS.reportNotFound);
    return partnerId;
  }

  /** Composes a preview of today's report. Stores nothing, so the job generates the report as always. */
  previewToday(partnerId: number): ReturnType<BooksStore['settlements']['previewDay']> {
    const today = dayOf(this.now().getTime());
    return this.options.store.settlements.previewDay(this.#dayOf(partnerId, today));
  }

  /**
   * Generates all missing reports of an interval, and completes incomplete reports where possible. A failure
   * for one partner is reported through the observer and does not stop the others.
   * @param after last day up to which all days are settled; undefined if unknown
   * @returns the oldest unsettled day; undefined if all days are settled
   */
  async settle(
    after: string | undefined,
    through: string,
    told: SettleObserver,
  ): Promise<string | undefined> {
    const { store } = this.options;
    let from = after === undefined ? await store.settlements.firstDay() : shiftDay(after, 1);
    let oldest: string | undefined;
    while (from !== undefined && from <= through) {
      const next = shiftDay(from, DAYS_AT_ONCE);
      const last = shiftDay(next, -1);
      const days = await store.settlements.unsettledDays(from, last < through ? last : through);
      const unsettled = await this.#settleDays(days, told);
      oldest ??= unsettled;
      if (told.isStopped()) return oldest ?? next;
      from = next;
    }
    return oldest;
  }

  /** @returns the oldest of these days that is still unsettled */
  async #settleDays(days: readonly UnsettledDay[], told: SettleObserver): Promise<string | undefined> {
    const { store } = this.options;
    const passed: PassedDays = new Map();
    let oldest: string | undefined;
    for (const day of days) {
      if (told.isStopped()) return oldest ?? day.date;
      try {
        const state = day.isBooked
          ? { isComplete: true, isOver: true }
          : await this.#stateOf(day.partnerId, day.date, passed);
        if (!state.isComplete) oldest ??= day.date;
        if (state.isComplete || !day.hasReport) {
          await this.#make(day.partnerId, day.date, { actor: 'worker', isDue: true, ...state });
        }
      } catch (error) {
        oldest ??= day.date;
        told.onFault(error, day);
        // This query rejects if Postgres is unavailable, and that ends the execution of the job. The next
        // execution continues with the remaining days.
        await store.cells.cursors();
      }
    }
    return oldest;
  }

  async #make(
    partnerId: number,
    date: string,
    how: RequestOfReport,
  ): Promise<StoredReport | 'acknowledged' | 'not-due'> {
    const { store, onReport, events } = this.options;
    const made = await store.settlements.make({ ...how, ...this.#dayOf(partnerId, date) }, onReport);
    if (typeof made !== 'string') {
      const { status, integrityHash, report } = made;
      const { reportDate, revision } = report;
      events.emit('SettlementReportMade', { partnerId, reportDate, revision, status, integrityHash });
    }
    return made;
  }

  #dayOf(partnerId: number, date: string): ReportedDay {
    const startMs = startOf(date);
    const endMs = startMs + DAY_MS;
    return {
      partnerId,
      date,
      ids: { from: firstIdAt(startMs), to: firstIdAt(endMs) },
      start: new Date(startMs),
      end: new Date(endMs),
      now: this.now(),
    };
  }

  /**
   * A day is complete if all entries that the partner can ever have on that day are committed, so a complete
   * day stays complete.
   */
  async #stateOf(partnerId: number, date: string, passed: PassedDays = new Map()): Promise<DayState> {
    const { store, clocks } = this.options;
    const { skewMaxMs } = clocks;
    const endMs = startOf(date) + DAY_MS;
    const reach = await store.partners.ledgerWatermark(partnerId);
    const isOver = skewMaxMs >= DAY_MS || Math.min(reach.timeMs, this.now().getTime()) >= endMs + skewMaxMs;
    const isComplete = isOver && (await this.#isBooked(reach, date, passed));
    return { isOver, isComplete };
  }

  async #isBooked(reach: LedgerWatermark, date: string, passed: PassedDays): Promise<boolean> {
    const endMs = startOf(date) + DAY_MS;
    if (reach.toId >= firstIdAt(endMs)) return true;
    const key = `${reach.cell} ${reach.epoch} ${date}`;
    let hasPassed = passed.get(key);
    if (hasPassed === undefined) {
      hasPassed = await this.#hasPassed(reach, endMs);
      passed.set(key, hasPassed);
    }
    return hasPassed;
  }

  /**
   * Returns whether the Redis server for which a cell was prepared has passed a given time, and all earlier
   * entries of the cell are committed.
   */
  async #hasPassed({ cell, epoch }: LedgerWatermark, endMs: number): Promise<boolean> {
    const outbox = this.options.nodes.cell(cell);
    try {
      if (!(await outbox.isOpen(epoch))) return false;
      // The clock is read first, so that everything dealt afterwards has an entry id of a later day.
      const overMs = endMs + Math.max(CLOCKS_APART_MS, overAfterMs(this.options.clocks.skewMaxMs));
      if ((await outbox.node.timeMs()) < overMs) return false;
      // Entries are trimmed from the outbox only after their commit, so entries that the outbox lacks are
      // committed.
      const [oldest] = await outbox.outbox(1);
      if (oldest !== undefined && oldest.timeMs < endMs) return false;
      // The second check proves that the same Redis server returned the clock, the outbox and all other
      // results.
      return await outbox.isOpen(epoch);
    } catch (error) {
      // After an error the day counts as incomplete.
      this.options.events.emit('TaskFailed', { task: 'day completeness check', error });
      return false;
    }
  }
}
